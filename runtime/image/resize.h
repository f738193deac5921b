/* Resizing a part of a picture, for window.c. */
#ifndef TDM_IMAGE_RESIZE_H
#define TDM_IMAGE_RESIZE_H

#include "runtime/image/canvas.h"

/* One direction of a resize: of `in` pixels, those from `from` on, `length` of them, would become `out` pixels, of
 * which `count` from `first` on are made. The canvas holds the input from pixel `held` on. */
typedef struct tdm_resize_span {
    int origin; /* of the `in` pixels, in the picture; not used by resize.c */
    int in, out, first, count, held;
    double from, length;
} tdm_resize_span;

/* The inputs that the outputs of a span take: `count` from `first` on. */
typedef struct tdm_resize_reach {
    int first, count;
} tdm_resize_reach;
tdm_resize_reach tdm__resize_span_reach(const tdm_resize_span *span);
/* As tdm__canvas_resize; the bits of an output do not depend on which others are made. */
tdm_status tdm__canvas_resize_span(tdm_canvas *canvas, const tdm_resize_span *x, const tdm_resize_span *y);

#endif
