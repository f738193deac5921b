/* The canvas's memory, and operations that move pixels. */
#include "runtime/image/canvas.h"

#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/twin.h"

enum { BEYOND = 64 };

void tdm__canvas_init(tdm_canvas *canvas, const tdm_host *host) {
    *canvas = (tdm_canvas){.host = host};
}

void tdm__canvas_deinit(tdm_canvas *canvas) {
    if (canvas->host == NULL) return;
    tdm__delete(canvas->host, canvas->now.data);
    tdm__delete(canvas->host, canvas->other.data);
    tdm__delete(canvas->host, canvas->work.data);
    tdm__delete(canvas->host, canvas->coefficients);
    *canvas = (tdm_canvas){.host = NULL};
}

tdm_status tdm__pixels_room(const tdm_host *host, tdm_pixels *pixels, size_t bytes) {
    if (bytes <= pixels->room) return TDM_OK;
    tdm__delete(host, pixels->data);
    pixels->data = NULL;
    pixels->room = 0;
    TDM_TRY(tdm__new(host, &pixels->data, bytes + BEYOND, 1, "picture"));
    pixels->room = bytes;
    return TDM_OK;
}

tdm_status tdm__canvas_take_planes(tdm_canvas *canvas, const int64_t size[3], const unsigned char *planes) {
    tdm_pixels *now = &canvas->now;
    now->channels = (int)size[0];
    now->height = (int)size[1];
    now->width = (int)size[2];
    const size_t channels = (size_t)now->channels, plane = (size_t)now->width * (size_t)now->height;
    TDM_TRY(tdm__pixels_room(canvas->host, now, plane * channels));
    for (size_t c = 0; c < channels; c++) {
        for (size_t i = 0; i < plane; i++) now->data[i * channels + c] = planes[c * plane + i];
    }
    return TDM_OK;
}

tdm_status tdm__canvas_other(tdm_canvas *canvas, int64_t width, int64_t height) {
    size_t bytes;
    if (width < 1 || height < 1 || width > TDM_CANVAS_SIDE_MAX || height > TDM_CANVAS_SIDE_MAX ||
        !tdm__mul_fits((size_t)width, (size_t)height, &bytes) ||
        !tdm__mul_fits(bytes, (size_t)canvas->now.channels, &bytes))
        TDM_FAIL(TDM_E_DATA, "a picture cannot become %lld x %lld pixels", (long long)width, (long long)height);
    TDM_TRY(tdm__pixels_room(canvas->host, &canvas->other, bytes));
    canvas->other.width = (int)width;
    canvas->other.height = (int)height;
    canvas->other.channels = canvas->now.channels;
    return TDM_OK;
}

void tdm__canvas_swap(tdm_canvas *canvas) {
    const tdm_pixels before = canvas->now;
    canvas->now = canvas->other;
    canvas->other = before;
}

tdm_status tdm__canvas_crop(tdm_canvas *canvas, int64_t x, int64_t y, int64_t width, int64_t height) {
    const tdm_pixels *in = &canvas->now;
    if (canvas->framing.is_open) return tdm__framing_crop(canvas, x, y, width, height);
    TDM_TRY(tdm__canvas_other(canvas, width, height));
    const tdm_pixels *out = &canvas->other;
    const size_t channels = (size_t)in->channels, row = (size_t)width * channels;
    const int64_t left = x < 0 ? -x : 0, right = width < in->width - x ? width : in->width - x;
    for (int64_t to = 0; to < height; to++) {
        unsigned char *at = out->data + (size_t)to * row;
        const int64_t from = y + to;
        memset(at, 0, row);
        if (from < 0 || from >= in->height || right <= left) continue;
        const size_t first = ((size_t)from * (size_t)in->width + (size_t)(x + left)) * channels;
        memcpy(at + (size_t)left * channels, in->data + first, (size_t)(right - left) * channels);
    }
    tdm__canvas_swap(canvas);
    return TDM_OK;
}

void tdm__canvas_erase(tdm_canvas *canvas, int x, int y, int width, int height, const unsigned char value[3]) {
    const tdm_pixels *at = &canvas->now;
    for (int row = y; row < y + height; row++) {
        unsigned char *to = at->data + ((size_t)row * (size_t)at->width + (size_t)x) * (size_t)at->channels;
        for (int i = 0; i < width; i++) {
            for (int c = 0; c < at->channels; c++) *to++ = value[c];
        }
    }
}

TDM_INLINE void split(const unsigned char *restrict in, unsigned char *restrict out, size_t plane) {
    for (size_t i = 0; i < plane; i++) {
        out[i] = in[3 * i];
        out[plane + i] = in[3 * i + 1];
        out[2 * plane + i] = in[3 * i + 2];
    }
}

TDM_FMA_TWIN static void split_fast(const unsigned char *in, unsigned char *out, size_t plane) {
    split(in, out, plane);
}

void tdm__canvas_planes(const tdm_canvas *canvas, unsigned char *out) {
    const tdm_pixels *at = &canvas->now;
    const size_t plane = (size_t)at->width * (size_t)at->height;
    if (at->channels == 1)
        memcpy(out, at->data, plane);
    else if (tdm__cpu_has_fma())
        split_fast(at->data, out, plane);
    else
        split(at->data, out, plane);
}
