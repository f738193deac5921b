/* Windows that slide over height and width: convolution and pooling. Axis 0 is height, axis 1 width. */
#ifndef TDM_OPS_WINDOW_H
#define TDM_OPS_WINDOW_H

#include "runtime/base/planes.h"

/* The attributes that every pooling layer has. */
typedef struct tdm_pool_attrs {
    int64_t kernel[2];
    int64_t stride[2]; /* null: the kernel size */
    int64_t padding[2];
    int64_t dilation[2]; /* 0 where the layer has no such key: 1 */
    bool ceil_mode;
} tdm_pool_attrs;

/* Their fields, for a struct with the member `pool`; the help texts of the padding differ. */
#define POOL_STRIDE_HELP \
    HELP("step from one window to the next; null: the kernel size", "相邻窗口之间的步幅；null 表示等于窗口大小")
#define POOL_CEIL_HELP                                                              \
    HELP("a last window that begins inside the input may reach beyond its padding", \
         "最后一个窗口只要从输入内部开始，就可以超出填充的边缘")
#define POOL_FIELDS(struct_, padding_en, padding_zh)                                                                  \
    {FIELD_IN(PAIR, struct_, pool, kernel, NULL), RANGE(1, TDM_MAX_WINDOW), FLAGS(REQUIRED | MAIN),                   \
     HELP("height and width of the window", "窗口的高和宽")},                                                         \
        {FIELD_IN(PAIR, struct_, pool, stride, "null"), RANGE(1, TDM_MAX_WINDOW), FLAGS(NULLABLE), POOL_STRIDE_HELP}, \
        {FIELD_IN(PAIR, struct_, pool, padding, "0"), RANGE(0, TDM_MAX_WINDOW), HELP(padding_en, padding_zh)}, {      \
        FIELD_IN(BOOL, struct_, pool, ceil_mode, "false"), POOL_CEIL_HELP                                             \
    }

/* Returns a pooling layer's window: a stride of null means the kernel size, as in PyTorch. */
static inline tdm_window tdm__pool_window(const tdm_pool_attrs *pool) {
    const int64_t *kernel = pool->kernel, *stride = pool->stride;
    const bool is_null = stride[0] < 1; /* a null pair never holds a valid stride */
    return (tdm_window){
        .kernel = {kernel[0], kernel[1]},
        .stride = {is_null ? kernel[0] : stride[0], is_null ? kernel[1] : stride[1]},
        .padding = {pool->padding[0], pool->padding[1]},
        .dilation = {pool->dilation[0] > 0 ? pool->dilation[0] : 1, pool->dilation[1] > 0 ? pool->dilation[1] : 1}};
}

/* From a window's first point to behind its last, along one axis. */
static inline int64_t tdm__window_reach(const tdm_window *window, int axis) {
    return window->dilation[axis] * (window->kernel[axis] - 1) + 1;
}

/* The part of a window that is inside the image, along one axis. Its points are one dilation apart. */
typedef struct tdm_window_part {
    int64_t corner, begin, end; /* input coordinates; corner: the window's first point, perhaps in the padding */
} tdm_window_part;

/* Returns that of output `at` of an axis with `in` points. */
static inline tdm_window_part tdm__window_part(const tdm_window *window, int axis, int64_t at, int64_t in) {
    const int64_t corner = at * window->stride[axis] - window->padding[axis], step = window->dilation[axis];
    const int64_t begin = corner < 0 ? corner + (step - 1 - corner) / step * step : corner;
    const int64_t end = corner + tdm__window_reach(window, axis);
    return (tdm_window_part){corner, begin, end < in ? end : in};
}

/* The share in a mean of window `corner` of an axis with `in` points if padding counts: the part of the window that is
 * inside the padded axis, as in PyTorch. With ceil_mode a window may reach further. */
static inline int64_t tdm__window_padded(const tdm_window *window, int axis, int64_t corner, int64_t in) {
    const int64_t end = corner + window->kernel[axis], most = in + window->padding[axis];
    return (end < most ? end : most) - corner;
}

/* The attributes of adaptive pooling, and its one field: the help texts differ. */
typedef struct tdm_adaptive_attrs {
    int64_t out[2];
} tdm_adaptive_attrs;
#define ADAPTIVE_OUT(help_en, help_zh) \
    FIELD(PAIR, tdm_adaptive_attrs, out, NULL), RANGE(1, TDM_MAX_WINDOW), FLAGS(REQUIRED | MAIN), HELP(help_en, help_zh)

/* Checks that the input is channels x height x width. */
tdm_status tdm__infer_check_image(const tdm_infer *infer);
/* Computes height and width of the output. Fails if the kernel is larger than the padded input. */
tdm_status tdm__window_infer(const tdm_infer *infer, const tdm_window *window, int64_t out[2]);
/* Infers the output of a pooling layer: with ceil_mode as many windows as begin inside the input or the padding before
 * it (torch's pooling_output_shape). Also checks PyTorch's rule that the padding is at most half the kernel, and that
 * no window is empty. */
tdm_status tdm__pool_infer(tdm_infer *infer, const tdm_pool_attrs *pool);
/* The output of adaptive pooling. Where it is larger than the input, windows share points. */
tdm_status tdm__adaptive_infer(tdm_infer *infer);

#endif
