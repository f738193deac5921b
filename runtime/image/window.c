/* What a framing needs of a picture, and how its result is made of that, see canvas.h. */
#include "runtime/image/resize.h"

/* A smaller picture would be visible: twice the result in each direction. */
enum { GAP = 2 };

/* One direction: `part` of a picture reduced by `reduce` becomes `out` pixels, of which `count` from `first` on are
 * wanted. A part's sides are rounded outwards; what it covers of the pixels there is exact. */
static tdm_resize_span span_of(int64_t side, int64_t at, int64_t part, int reduce, int64_t out, int64_t first,
                               int64_t count) {
    const int64_t begin = at / reduce, end = (at + part + reduce - 1) / reduce;
    const bool is_whole = part == side;
    return (tdm_resize_span){.origin = (int)begin,
                             .in = (int)(end - begin),
                             .from = is_whole ? 0.0 : (double)at / reduce - (double)begin,
                             .length = is_whole ? (double)(end - begin) : (double)part / reduce,
                             .out = (int)out,
                             .first = (int)first,
                             .count = (int)count};
}

static void make_spans(const tdm_framing *f, tdm_resize_span *x, tdm_resize_span *y) {
    *x = span_of(f->picture.width, f->part.x, f->part.width, f->reduce, f->width, f->result.x, f->result.width);
    *y = span_of(f->picture.height, f->part.y, f->part.height, f->reduce, f->height, f->result.y, f->result.height);
}

void tdm__framing_window(tdm_canvas *canvas, int most, tdm_image_window *out) {
    tdm_framing *f = &canvas->framing;
    tdm_resize_span x, y;
    f->is_open = false;
    f->reduce = 1;
    f->window = f->result;
    if (f->is_resized) {
        while (f->reduce < most && f->part.width >= f->width * GAP * f->reduce * 2 &&
               f->part.height >= f->height * GAP * f->reduce * 2)
            f->reduce *= 2;
        make_spans(f, &x, &y);
        const tdm_resize_reach over = tdm__resize_span_reach(&x), down = tdm__resize_span_reach(&y);
        f->window = (tdm_box){x.origin + over.first, y.origin + down.first, over.count, down.count};
    }
    *out = (tdm_image_window){.reduce = f->reduce,
                              .x = (int)f->window.x,
                              .y = (int)f->window.y,
                              .width = (int)f->window.width,
                              .height = (int)f->window.height};
}

tdm_status tdm__framing_finish(tdm_canvas *canvas) {
    const tdm_framing *f = &canvas->framing;
    tdm_resize_span x, y;
    if (!f->is_resized) return TDM_OK;
    make_spans(f, &x, &y);
    x.held = (int)f->window.x - x.origin;
    y.held = (int)f->window.y - y.origin;
    return tdm__canvas_resize_span(canvas, &x, &y);
}
