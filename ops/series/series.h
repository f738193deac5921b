/* Ops over series, [channels, points]: images whose height is 1. Their kernels are those of an op over images, which
 * get the shapes and attributes of the image. */
#ifndef TDM_OPS_SERIES_H
#define TDM_OPS_SERIES_H

#include <tandem/sys/op.h>

#include "runtime/base/planes.h"

/* Checks that the input is channels x points. */
tdm_status tdm__infer_check_series(const tdm_infer *infer);
/* Computes the points of the output, along axis 1 of the window. Fails if the kernel is larger than the padded input.
 */
tdm_status tdm__series_infer_points(const tdm_infer *infer, const tdm_window *window, int64_t *out);

/* [.., points] with the height in front of the points. */
static inline tdm_shape tdm__series_shape(const tdm_shape *series) {
    tdm_shape image = *series;
    if (series->ndim != 3) return image; /* a bias */
    image.ndim = 4;
    image.dim[2] = 1;
    image.dim[3] = series->dim[2];
    return image;
}

static inline tdm_kernel_desc tdm__series_desc(const tdm_kernel_desc *series, const void *attrs) {
    tdm_kernel_desc image = *series;
    image.attrs = attrs;
    image.y = tdm__series_shape(&series->y);
    for (int i = 0; i < series->input_count; i++) image.x[i] = tdm__series_shape(&series->x[i]);
    for (int i = 0; i < series->param_count; i++) image.param[i] = tdm__series_shape(&series->param[i]);
    return image;
}

/* The functions fits, forward and backward of a kernel of op `name`, by those of `kernel`. tdm__<name>_image gives the
 * attributes of the image, a struct `image_attrs`. */
#define TDM_SERIES_PASSES(name, image_attrs, kernel)                                                  \
    static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {                              \
        const image_attrs attrs = tdm__##name##_image(desc->attrs);                                   \
        const tdm_kernel_desc image = tdm__series_desc(desc, &attrs);                                 \
        return (kernel).fits(&image, fit);                                                            \
    }                                                                                                 \
    static tdm_status run(const tdm_kernel_args *args, tdm_status (*pass)(const tdm_kernel_args *)) { \
        const image_attrs attrs = tdm__##name##_image(args->desc->attrs);                             \
        const tdm_kernel_desc image = tdm__series_desc(args->desc, &attrs);                           \
        tdm_kernel_args of_image = *args;                                                             \
        of_image.desc = &image;                                                                       \
        return pass(&of_image);                                                                       \
    }                                                                                                 \
    static tdm_status forward(const tdm_kernel_args *args) {                                          \
        return run(args, (kernel).forward);                                                           \
    }                                                                                                 \
    static tdm_status backward(const tdm_kernel_args *args) {                                         \
        return run(args, (kernel).backward);                                                          \
    }

/* A kernel on CUDA that needs no more: it is op `image`'s. */
#define TDM_SERIES_CUDA(name, image)                                  \
    extern const tdm_kernel tdm__##image##_cuda;                      \
    TDM_SERIES_PASSES(name, tdm_##image##_attrs, tdm__##image##_cuda) \
    const tdm_kernel tdm__##name##_cuda = {                           \
        .op = #name,                                                  \
        .variant = "cuda",                                            \
        .fits = fits,                                                 \
        .forward = forward,                                           \
        .backward = backward,                                         \
        .takes_bf16 = true,                                           \
    }

/* And open_state and close_state, of a kernel that has a state. */
#define TDM_SERIES_STATE(name, image_attrs, kernel)                                                            \
    static tdm_status open_state(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training, \
                                 void **state) {                                                               \
        const image_attrs attrs = tdm__##name##_image(desc->attrs);                                            \
        const tdm_kernel_desc image = tdm__series_desc(desc, &attrs);                                          \
        return (kernel).open(device, &image, rows, training, state);                                           \
    }                                                                                                          \
    static void close_state(void *state) {                                                                     \
        (kernel).close(state);                                                                                 \
    }

#endif
