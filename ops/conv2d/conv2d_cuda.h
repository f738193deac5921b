/* What the parts of conv2d on CUDA share: the sizes of one convolution, its two ways (cuDNN, matrix products over
 * im2col), and the kernels of conv2d.cu. */
#ifndef TDM_OPS_CONV2D_CUDA_H
#define TDM_OPS_CONV2D_CUDA_H

#include "ops/conv2d/conv2d.h"
#include "ops/cuda_module/cuda_module.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_conv_sizes {
    int64_t rows, in, height, width;    /* x */
    int64_t out, out_height, out_width; /* y */
    int64_t groups, taps;
    tdm_window window;
    bool nhwc; /* x and y; else planes */
    bool bias, relu, training, wants_dx, fast;
} tdm_conv_sizes;

static inline int64_t tdm__conv_in_count(const tdm_conv_sizes *s) {
    return s->in * s->height * s->width;
}
static inline int64_t tdm__conv_points(const tdm_conv_sizes *s) {
    return s->out_height * s->out_width;
}
static inline int64_t tdm__conv_weight_count(const tdm_conv_sizes *s) {
    return s->out * (s->in / s->groups) * s->taps;
}

/* A way to convolve. Weights and their gradient are PyTorch's, [out][in / groups][taps]; dy is masked already. */
typedef struct tdm_conv_way tdm_conv_way;
typedef struct tdm_conv_way_ops {
    /* *done: bias and relu were done too */
    tdm_status (*forward)(tdm_conv_way *way, const float *x, const float *w, const float *bias, float *y, void *saved,
                          bool *done);
    tdm_status (*backward)(tdm_conv_way *way, const float *x, const float *w, const float *dy, float *dw, float *dx,
                           void *saved, void *scratch);
    void (*close)(tdm_conv_way *way);
} tdm_conv_way_ops;
struct tdm_conv_way {
    const tdm_conv_way_ops *ops;
    tdm_cuda_device *device;
    tdm_conv_sizes sizes;
};

/* Where cuDNN is absent or does not do this one, *out is NULL. It keeps the weights in its own layout in `saved`, and
 * their gradient in `scratch` (each of the weights' bytes), where channels are neighbours. */
tdm_status tdm__conv_cudnn_open(tdm_conv_way **out, tdm_cuda_device *device, const tdm_conv_sizes *sizes);
tdm_status tdm__conv_im2col_open(tdm_conv_way **out, tdm_cuda_device *device, const tdm_conv_sizes *sizes);

/* ---- conv2d.cu ---- */

/* columns[row][channel][tap][point of y] = what the tap sees of x from there, for rows [0, rows) of x */
tdm_status tdm__conv_columns(tdm_cuda_device *device, const tdm_conv_sizes *sizes, int64_t rows, const float *x,
                             float *columns);
/* dx = the sum over taps, in their order, of the columns that see the point */
tdm_status tdm__conv_gather(tdm_cuda_device *device, const tdm_conv_sizes *sizes, int64_t rows, const float *columns,
                            float *dx);
/* sum[i] = (first ? 0 : sum[i]) + part[0][i] + part[1][i] + ... */
tdm_status tdm__conv_add_parts(tdm_cuda_device *device, float *sum, const float *part, int64_t parts, int64_t count,
                               bool first);
/* to[o][b][a] = from[o][a][b] */
tdm_status tdm__conv_transpose(tdm_cuda_device *device, float *to, const float *from, int64_t outer, int64_t a,
                               int64_t b);

#ifdef __cplusplus
}
#endif
#endif
