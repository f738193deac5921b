/* Layouts of images: sliding windows, and 4-dimensional values as planes. For kernels on every device. */
#ifndef TDM_BASE_PLANES_H
#define TDM_BASE_PLANES_H

#include <tandem/sys/op.h>

/* Axis 0 is height, axis 1 width. */
typedef struct tdm_window {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
} tdm_window;

/* A 4-dimensional value in any layout is `count` planes of height x width points, each with `inner` adjacent channels.
 * A kernel that works on planes serves every layout. */
typedef struct tdm_planes {
    int64_t count, height, width, inner;
} tdm_planes;

static inline tdm_planes tdm__planes_of(const tdm_shape *shape, int64_t rows, tdm_layout layout) {
    int64_t channels = shape->dim[1], inner = 1;
    if (layout == TDM_LAYOUT_NHWC) inner = channels;
    if (layout == TDM_LAYOUT_C8) inner = 8;
    if (layout == TDM_LAYOUT_C16) inner = 16;
    return (tdm_planes){
        .count = rows * (channels / inner), .height = shape->dim[2], .width = shape->dim[3], .inner = inner};
}

#endif
