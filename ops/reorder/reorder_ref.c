/* reorder: brings a 4-dimensional value into another layout. It is not a layer: the plan inserts it between kernels
 * whose layouts differ. */
#include "ops/ops.h"
#include "runtime/base/planes.h"

/* Returns where channel c of row n begins; its points are `inner` apart. */
static int64_t channel_at(const tdm_planes *planes, int64_t channels, int64_t n, int64_t c) {
    int64_t plane = n * (channels / planes->inner) + c / planes->inner;
    return plane * planes->height * planes->width * planes->inner + c % planes->inner;
}

static void reorder(float *to, tdm_layout to_layout, const float *from, tdm_layout from_layout, const tdm_shape *shape,
                    int64_t rows) {
    tdm_planes target = tdm__planes_of(shape, rows, to_layout), source = tdm__planes_of(shape, rows, from_layout);
    int64_t channels = shape->dim[1], points = source.height * source.width;
    for (int64_t n = 0; n < rows; n++) {
        for (int64_t c = 0; c < channels; c++) {
            float *out = to + channel_at(&target, channels, n, c);
            const float *in = from + channel_at(&source, channels, n, c);
            for (int64_t i = 0; i < points; i++) out[i * target.inner] = in[i * source.inner];
        }
    }
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = desc->x_layout[0];
    fit->y_layout = desc->y_layout;
    return true;
}

static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    reorder(args->y, desc->y_layout, args->x[0], desc->x_layout[0], &desc->y, args->rows);
    return TDM_OK;
}

static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    reorder(args->dx[0], desc->x_layout[0], args->dy, desc->y_layout, &desc->y, args->rows);
    return TDM_OK;
}

const tdm_op_def tdm__reorder_op = {.name = "reorder", .min_inputs = 1, .max_inputs = 1};

TDM_REF_KERNEL(reorder, fits);
