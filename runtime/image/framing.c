/* Crops and resizing that are written down before a picture is decoded, see canvas.h. */
#include "runtime/base/status.h"
#include "runtime/image/canvas.h"

void tdm__framing_open(tdm_canvas *canvas, int width, int height) {
    canvas->now.width = width;
    canvas->now.height = height;
    canvas->framing = (tdm_framing){.is_open = true,
                                    .picture = {.width = width, .height = height},
                                    .part = {.width = width, .height = height},
                                    .result = {.width = width, .height = height}};
}

tdm_status tdm__framing_crop(tdm_canvas *canvas, int64_t x, int64_t y, int64_t width, int64_t height) {
    tdm_framing *f = &canvas->framing;
    if (width < 1 || height < 1 || x < 0 || y < 0 || width > canvas->now.width - x || height > canvas->now.height - y)
        TDM_FAIL(TDM_E_UNSUPPORTED, "a crop that reaches beyond the picture");
    f->result.x += x;
    f->result.y += y;
    f->result.width = width;
    f->result.height = height;
    if (!f->is_resized) f->part = f->result;
    canvas->now.width = (int)width;
    canvas->now.height = (int)height;
    return TDM_OK;
}

tdm_status tdm__framing_resize(tdm_canvas *canvas, int width, int height) {
    tdm_framing *f = &canvas->framing;
    if (width == canvas->now.width && height == canvas->now.height) return TDM_OK;
    if (f->is_resized) TDM_FAIL(TDM_E_UNSUPPORTED, "a second resize");
    f->is_resized = true;
    f->width = width;
    f->height = height;
    f->result = (tdm_box){.width = width, .height = height};
    canvas->now.width = width;
    canvas->now.height = height;
    return TDM_OK;
}
