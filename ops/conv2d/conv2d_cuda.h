/* What the parts of conv2d on CUDA share: the sizes of one convolution, its two ways (cuDNN, matrix products over
 * im2col), and the kernels of conv2d.cu. */
#ifndef TDM_OPS_CONV2D_CUDA_H
#define TDM_OPS_CONV2D_CUDA_H

#include "ops/conv2d/conv2d.h"
#include "runtime/backends/cuda/kit/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_conv_sizes {
    int64_t rows, in, height, width; /* x */
    int64_t stored; /* channels of x, and of a tap's weights, in memory: in, or more, with zeros in them */
    int64_t out, out_height, out_width; /* y */
    int64_t groups, taps;
    tdm_window window;
    tdm_cuda_number number; /* of x, y, their gradients and the weights; not of the weights' gradient */
    bool nhwc;              /* channels are neighbours in x, y and the weights; else planes */
    bool bias, relu, training, wants_dx, fast;
} tdm_conv_sizes;

static inline int64_t tdm__conv_in_count(const tdm_conv_sizes *s) {
    return s->stored * s->height * s->width;
}
static inline int64_t tdm__conv_points(const tdm_conv_sizes *s) {
    return s->out_height * s->out_width;
}
static inline int64_t tdm__conv_weight_count(const tdm_conv_sizes *s) {
    return s->out * (s->stored / s->groups) * s->taps;
}

/* A way to convolve. Weights and their gradient lie [out][in / groups][taps], as in PyTorch, or [out][taps][stored]
 * where channels are neighbours; dy is masked already. */
typedef struct tdm_conv_way tdm_conv_way;
typedef struct tdm_conv_way_ops {
    /* *done: bias and relu were done too */
    tdm_status (*forward)(tdm_conv_way *way, const void *x, const void *w, const void *bias, void *y, bool *done);
    /* In bf16 `scratch` has room for tdm__conv_weight_count numbers. */
    tdm_status (*backward)(tdm_conv_way *way, const void *x, const void *w, const void *dy, float *dw, void *dx,
                           void *scratch);
    void (*algorithms)(const tdm_conv_way *way, tdm_algorithms *out);
    void (*close)(tdm_conv_way *way);
} tdm_conv_way_ops;
struct tdm_conv_way {
    const tdm_conv_way_ops *ops;
    tdm_cuda_device *device;
    tdm_conv_sizes sizes;
    char slow[256]; /* why it is not cuDNN's; "": it is */
};

/* Where cuDNN is absent or does not do this one, *out is NULL and `why` a sentence without its first word, "cuDNN". */
tdm_status tdm__conv_cudnn_open(tdm_conv_way **out, tdm_cuda_device *device, const tdm_conv_sizes *sizes, char *why,
                                size_t bytes);
tdm_status tdm__conv_im2col_open(tdm_conv_way **out, tdm_cuda_device *device, const tdm_conv_sizes *sizes);

/* ---- conv2d.cu; pointers to void: `sizes->number` ---- */

/* columns[row][channel][tap][point of y] = what the tap sees of x from there, for rows [0, rows) of x; where channels
 * are neighbours [row][tap][channel][point], as the weights lie */
tdm_status tdm__conv_columns(tdm_cuda_device *device, const tdm_conv_sizes *sizes, int64_t rows, const void *x,
                             void *columns);
/* dx = the sum over taps, in their order, of the columns that see the point */
tdm_status tdm__conv_gather(tdm_cuda_device *device, const tdm_conv_sizes *sizes, int64_t rows, const void *columns,
                            void *dx);
/* sum[i] = (first ? 0 : sum[i]) + part[0][i] + part[1][i] + ... */
tdm_status tdm__conv_add_parts(tdm_cuda_device *device, float *sum, const float *part, int64_t parts, int64_t count,
                               bool first);
/* to = from, which are bf16 */
tdm_status tdm__conv_widen(tdm_cuda_device *device, float *to, const void *from, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
