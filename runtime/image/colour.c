/* Colours: blending with a degenerate picture (ImageEnhance), and the hue. */
#include <math.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/image/canvas.h"

/* Image.blend of a byte with one of a degenerate picture: factor 0 gives the latter. */
static unsigned char blend(int degenerate, int byte, float factor) {
    const float value = (float)degenerate + factor * (float)(byte - degenerate);
    return value <= 0.0f ? 0 : value >= 255.0f ? 255 : (unsigned char)value;
}

/* ITU-R 601-2, as convert("L"). */
static int luma(const unsigned char *rgb) {
    return (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16;
}

static int gray_of(const tdm_pixels *at, size_t pixel) {
    return at->channels == 1 ? at->data[pixel] : luma(at->data + 3 * pixel);
}

static size_t pixel_count(const tdm_pixels *at) {
    return (size_t)at->width * (size_t)at->height;
}

static void blend_with(tdm_canvas *canvas, int degenerate, float factor) {
    const size_t bytes = tdm__pixels_bytes(&canvas->now);
    unsigned char table[256];
    if (factor == 1.0f) return;
    for (int i = 0; i < 256; i++) table[i] = blend(degenerate, i, factor);
    for (size_t i = 0; i < bytes; i++) canvas->now.data[i] = table[canvas->now.data[i]];
}

void tdm__canvas_brightness(tdm_canvas *canvas, float factor) {
    blend_with(canvas, 0, factor);
}

/* The degenerate picture is the mean of the grey one. */
void tdm__canvas_contrast(tdm_canvas *canvas, float factor) {
    const size_t count = pixel_count(&canvas->now);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += (uint64_t)gray_of(&canvas->now, i);
    blend_with(canvas, (int)((double)sum / (double)count + 0.5), factor);
}

void tdm__canvas_saturation(tdm_canvas *canvas, float factor) {
    const size_t count = pixel_count(&canvas->now);
    if (canvas->now.channels == 1 || factor == 1.0f) return;
    for (size_t i = 0; i < count; i++) {
        unsigned char *rgb = canvas->now.data + 3 * i;
        const int grey = luma(rgb);
        for (int c = 0; c < 3; c++) rgb[c] = blend(grey, rgb[c], factor);
    }
}

void tdm__canvas_gray(tdm_canvas *canvas) {
    const size_t count = pixel_count(&canvas->now);
    if (canvas->now.channels == 1) return;
    for (size_t i = 0; i < count; i++) memset(canvas->now.data + 3 * i, luma(canvas->now.data + 3 * i), 3);
}

/* ---- sharpness: the degenerate picture is a smoothed one ---- */

static float three(const unsigned char *at, size_t step, float side, float middle) {
    return (float)at[-(ptrdiff_t)step] * side + (float)at[0] * middle + (float)at[step] * side;
}

/* ImageFilter.SMOOTH: 3 x 3, weight 5 in the middle, divided by 13; the rim stays. */
static unsigned char smooth(const unsigned char *at, size_t row, size_t step) {
    const float one = 1.0f / 13.0f, five = 5.0f / 13.0f;
    float sum = 0.5f;
    sum += three(at + row, step, one, one);
    sum += three(at, step, one, five);
    sum += three(at - row, step, one, one);
    return sum <= 0.0f ? 0 : sum >= 255.0f ? 255 : (unsigned char)sum;
}

tdm_status tdm__canvas_sharpness(tdm_canvas *canvas, float factor) {
    const tdm_pixels *in = &canvas->now;
    TDM_TRY(tdm__canvas_other(canvas, in->width, in->height));
    unsigned char *out = canvas->other.data;
    const size_t step = (size_t)in->channels, row = (size_t)in->width * step;
    memcpy(out, in->data, tdm__pixels_bytes(in));
    for (size_t y = 1; y + 1 < (size_t)in->height; y++) {
        for (size_t i = step; i + step < row; i++) {
            const unsigned char *at = in->data + y * row + i;
            out[y * row + i] = blend(smooth(at, row, step), *at, factor);
        }
    }
    tdm__canvas_swap(canvas);
    return TDM_OK;
}

/* ---- hue: convert("HSV"), a shift modulo 256, convert("RGB"), with Pillow's mixture of float and double ---- */

typedef struct hsv {
    unsigned char h, s, v;
} hsv;

static hsv to_hsv(const unsigned char *rgb) {
    const int r = rgb[0], g = rgb[1], b = rgb[2];
    const int most = r > g ? (r > b ? r : b) : (g > b ? g : b), least = r < g ? (r < b ? r : b) : (g < b ? g : b);
    if (most == least) return (hsv){0, 0, (unsigned char)most};
    const float range = (float)(most - least), s = range / (float)most;
    const float rc = (float)(most - r) / range, gc = (float)(most - g) / range, bc = (float)(most - b) / range;
    float h = r == most ? bc - gc : g == most ? (float)(2.0 + rc - bc) : (float)(4.0 + gc - rc);
    h = (float)fmod(h / 6.0 + 1.0, 1.0);
    return (hsv){(unsigned char)(int)(h * 255.0), (unsigned char)(int)(s * 255.0), (unsigned char)most};
}

static unsigned char rounded(double value) {
    const int v = (int)round(value);
    return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void to_rgb(hsv in, unsigned char *rgb) {
    if (in.s == 0) {
        memset(rgb, in.v, 3);
        return;
    }
    const int i = (int)floor((float)in.h * 6.0 / 255.0);
    const float f = (float)((float)in.h * 6.0 / 255.0 - (float)i), fs = (float)((float)in.s / 255.0);
    const unsigned char p = rounded((float)in.v * (1.0 - fs)), q = rounded((float)in.v * (1.0 - fs * f)),
                        t = rounded((float)in.v * (1.0 - fs * (1.0 - f)));
    const unsigned char colours[6][3] = {{in.v, t, p}, {q, in.v, p}, {p, in.v, t},
                                         {p, q, in.v}, {t, p, in.v}, {in.v, p, q}};
    memcpy(rgb, colours[i % 6], 3);
}

void tdm__canvas_hue(tdm_canvas *canvas, double turn) {
    const size_t count = pixel_count(&canvas->now);
    const unsigned char shift = (unsigned char)(int)(turn * 255);
    if (canvas->now.channels == 1) return;
    for (size_t i = 0; i < count; i++) {
        unsigned char *rgb = canvas->now.data + 3 * i;
        hsv value = to_hsv(rgb);
        value.h = (unsigned char)(value.h + shift);
        to_rgb(value, rgb);
    }
}
