/* What the parts of conv2d on CUDA share: the sizes of one convolution, the interface of its two implementations
 * (cuDNN, matrix products over im2col), and the kernels of conv2d.cu. */
#ifndef TDM_OPS_CONV2D_CUDA_H
#define TDM_OPS_CONV2D_CUDA_H

#include "ops/conv2d/conv2d.h"
#include "runtime/backends/cuda/kit/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_conv_sizes {
    int64_t rows, in, height, width; /* x */
    int64_t stored; /* channels of x and of a tap's weights in memory: `in`, or more, padded with zeros */
    int64_t out, out_height, out_width; /* y */
    int64_t groups, taps;
    tdm_window window;
    bool is_uneven;         /* more zeros below or to the right than above or to the left */
    tdm_cuda_number number; /* type of x, y, their gradients and the weights; the weights' gradient is always float */
    bool nhwc;              /* channels are contiguous in x, y and the weights; else planes */
    bool bias, relu, training, needs_dx, fast;
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

/* One implementation of a convolution. Weights and their gradient are [out][in / groups][taps], as in PyTorch, or
 * [out][taps][stored] with nhwc. dy comes with the relu's mask applied. */
typedef struct tdm_conv_method tdm_conv_method;
typedef struct tdm_conv_method_ops {
    /* *done: bias and relu were applied, too */
    tdm_status (*forward)(tdm_conv_method *method, const void *x, const void *w, const void *bias, void *y, bool *done);
    /* In bf16 `scratch` has room for tdm__conv_weight_count elements. */
    tdm_status (*backward)(tdm_conv_method *method, const void *x, const void *w, const void *dy, float *dw, void *dx,
                           void *scratch);
    void (*algorithms)(const tdm_conv_method *method, tdm_algorithms *out);
    void (*close)(tdm_conv_method *method);
} tdm_conv_method_ops;
struct tdm_conv_method {
    const tdm_conv_method_ops *ops;
    tdm_cuda_device *device;
    tdm_conv_sizes sizes;
    char slow[256]; /* why cuDNN does not run it; "": it does */
};

/* *out is NULL if cuDNN is absent or cannot run this convolution; `why` is then a sentence without its first word,
 * "cuDNN". */
tdm_status tdm__conv_cudnn_open(tdm_conv_method **out, tdm_cuda_device *device, const tdm_conv_sizes *sizes, char *why,
                                size_t bytes);
tdm_status tdm__conv_im2col_open(tdm_conv_method **out, tdm_cuda_device *device, const tdm_conv_sizes *sizes);

/* ---- conv2d.cu; a pointer to void has the type `sizes->number` ---- */

/* columns[row][channel][tap][point of y] = the element of x that the tap reads for that point, for rows [0, rows) of x;
 * with nhwc columns is [row][tap][channel][point], the order of the weights */
tdm_status tdm__conv_columns(tdm_cuda_device *device, const tdm_conv_sizes *sizes, int64_t rows, const void *x,
                             void *columns);
/* dx[point] = the sum of the columns that read the point, in the order of the taps */
tdm_status tdm__conv_gather(tdm_cuda_device *device, const tdm_conv_sizes *sizes, int64_t rows, const void *columns,
                            void *dx);
/* sum[i] = (first ? 0 : sum[i]) + part[0][i] + part[1][i] + ... */
tdm_status tdm__conv_add_parts(tdm_cuda_device *device, float *sum, const float *part, int64_t parts, int64_t count,
                               bool first);
/* to = from, where `from` is bf16 */
tdm_status tdm__conv_widen(tdm_cuda_device *device, float *to, const void *from, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
