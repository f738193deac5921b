/* avgpool2d in the dnnl module. Threads share the planes. oneDNN's own average pooling sums in floats, PyTorch's and
 * the reference in doubles. */
#include "ops/avgpool2d/avgpool2d_dnnl.h"

#include "ops/avgpool2d/avgpool2d.h"
#include "ops/avgpool2d/avgpool2d_lanes.h"
#include "ops/elementwise.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

typedef struct {
    tdm_average_call of;
    const tdm_kernel_args *args;
} work;

bool tdm__average_dnnl_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->scratch_bytes = (size_t)(desc->y.dim[2] + desc->y.dim[3]) * sizeof(tdm_average_range);
    return tdm__elementwise_fits(desc, fit);
}

static bool is_like(const tdm_average_call *of, int64_t q) {
    return of->columns[q].end - of->columns[q].begin == of->size;
}

/* Windows are cut at the edges alone, if at all. */
static void find_like(tdm_average_call *of) {
    const tdm_average_range *columns = of->columns;
    for (int64_t q = 0; q < of->y.width; q++)
        if (columns[q].end - columns[q].begin > of->size) of->size = columns[q].end - columns[q].begin;
    while (!is_like(of, of->begin)) of->begin++;
    of->end = of->begin + 1;
    if (of->end < of->y.width) of->stride = columns[of->end].begin - columns[of->begin].begin;
    while (of->end < of->y.width && is_like(of, of->end) &&
           columns[of->end].begin == columns[of->end - 1].begin + of->stride)
        of->end++;
}

static work work_of(const tdm_kernel_args *args, tdm_span_fn span) {
    const tdm_kernel_desc *desc = args->desc;
    work w = {.args = args};
    w.of.x = tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]);
    w.of.y = tdm__planes_of(&desc->y, args->rows, desc->y_layout);
    w.of.rows = args->scratch;
    w.of.columns = w.of.rows + w.of.y.height;
    for (int64_t p = 0; p < w.of.y.height; p++) w.of.rows[p] = span(desc->attrs, 0, p, w.of.x.height, w.of.y.height);
    for (int64_t q = 0; q < w.of.y.width; q++) w.of.columns[q] = span(desc->attrs, 1, q, w.of.x.width, w.of.y.width);
    find_like(&w.of);
    return w;
}

static int64_t numbers_of(const tdm_planes *plane) {
    return plane->height * plane->width * plane->inner;
}

static tdm_status share(work *w, tdm_dnnl_work_fn planes) {
    const int threads = tdm__dnnl_threads(w->args->desc->threads, w->of.x.count * numbers_of(&w->of.x));
    return tdm__dnnl_share(w->args->device, threads, w->of.x.count, planes, w);
}

static bool is_whole(const tdm_average_call *of) {
    const int64_t rows = of->rows[0].end - of->rows[0].begin, columns = of->columns[0].end - of->columns[0].begin;
    return numbers_of(&of->y) == 1 && rows == of->x.height && columns == of->x.width;
}

static void forward_planes(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    if (is_whole(&w->of)) {
        const float *x = w->args->x[0] + begin * numbers_of(&w->of.x);
        TDM_LANES(tdm__average_lanes)->whole_forward(&w->of, x, w->args->y + begin, end - begin);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        TDM_LANES(tdm__average_lanes)
            ->forward(&w->of, w->args->x[0] + i * numbers_of(&w->of.x), w->args->y + i * numbers_of(&w->of.y));
}

static void backward_planes(void *data, int64_t begin, int64_t end) {
    const work *w = data;
    if (is_whole(&w->of)) {
        float *dx = w->args->dx[0] + begin * numbers_of(&w->of.x);
        TDM_LANES(tdm__average_lanes)->whole_backward(&w->of, w->args->dy + begin, dx, end - begin);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        TDM_LANES(tdm__average_lanes)
            ->backward(&w->of, w->args->dy + i * numbers_of(&w->of.y), w->args->dx[0] + i * numbers_of(&w->of.x));
}

tdm_status tdm__average_dnnl_forward(const tdm_kernel_args *args, tdm_span_fn span) {
    work w = work_of(args, span);
    return share(&w, forward_planes);
}

tdm_status tdm__average_dnnl_backward(const tdm_kernel_args *args, tdm_span_fn span) {
    work w = work_of(args, span);
    return share(&w, backward_planes);
}

static tdm_status forward(const tdm_kernel_args *args) {
    return tdm__average_dnnl_forward(args, tdm__avgpool2d_span);
}

static tdm_status backward(const tdm_kernel_args *args) {
    return tdm__average_dnnl_backward(args, tdm__avgpool2d_span);
}

const tdm_kernel tdm__avgpool2d_dnnl = {
    .op = "avgpool2d", .variant = "dnnl", .fits = tdm__average_dnnl_fits, .forward = forward, .backward = backward};
