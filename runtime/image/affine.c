/* Turning and shearing, by the nearest pixel. Pillow steps in fixed point, 16 bits before the point and 16 behind, and
 * in double where that does not suffice. */
#include <math.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/image/canvas.h"

static int64_t fixed(double v) {
    return (int64_t)floor(v * 65536.0 + 0.5);
}

static bool fits(const double m[6], double x, double y) {
    return fabs(x * m[0] + y * m[1] + m[2]) < 32768.0 && fabs(x * m[3] + y * m[4] + m[5]) < 32768.0;
}

static void copy_pixel(const tdm_pixels *in, int64_t x, int64_t y, unsigned char *to) {
    const size_t channels = (size_t)in->channels;
    memcpy(to, in->data + ((size_t)y * (size_t)in->width + (size_t)x) * channels, channels);
}

static void step_fixed(const tdm_pixels *in, const tdm_pixels *out, const double m[6]) {
    const int64_t a0 = fixed(m[0]), a1 = fixed(m[1]), a3 = fixed(m[3]), a4 = fixed(m[4]);
    int64_t row_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), row_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
    unsigned char *to = out->data;
    for (int y = 0; y < out->height; y++, row_x += a1, row_y += a4) {
        int64_t at_x = row_x, at_y = row_y;
        for (int x = 0; x < out->width; x++, to += out->channels, at_x += a0, at_y += a3) {
            const int64_t from_x = at_x >> 16, from_y = at_y >> 16;
            if (from_x >= 0 && from_x < in->width && from_y >= 0 && from_y < in->height)
                copy_pixel(in, from_x, from_y, to);
        }
    }
}

static int64_t whole(double v) {
    return v < 0.0 ? -1 : (int64_t)v;
}

/* Also for matrices that only scale and move: Pillow takes doubles for these, too. */
static void step_double(const tdm_pixels *in, const tdm_pixels *out, const double m[6]) {
    double row_x = m[2] + m[1] * 0.5 + m[0] * 0.5, row_y = m[5] + m[4] * 0.5 + m[3] * 0.5;
    unsigned char *to = out->data;
    for (int y = 0; y < out->height; y++, row_x += m[1], row_y += m[4]) {
        double at_x = row_x, at_y = row_y;
        for (int x = 0; x < out->width; x++, to += out->channels, at_x += m[0], at_y += m[3]) {
            const int64_t from_x = whole(at_x), from_y = whole(at_y);
            if (from_x >= 0 && from_x < in->width && from_y >= 0 && from_y < in->height)
                copy_pixel(in, from_x, from_y, to);
        }
    }
}

tdm_status tdm__canvas_affine(tdm_canvas *canvas, const double matrix[6]) {
    const double width = canvas->now.width, height = canvas->now.height;
    TDM_TRY(tdm__canvas_other(canvas, canvas->now.width, canvas->now.height));
    memset(canvas->other.data, 0, tdm__pixels_bytes(&canvas->other));
    const bool only_scales = matrix[1] == 0.0 && matrix[3] == 0.0;
    if (!only_scales && fits(matrix, 0, 0) && fits(matrix, width, height) && fits(matrix, 0, height) &&
        fits(matrix, width, 0))
        step_fixed(&canvas->now, &canvas->other, matrix);
    else
        step_double(&canvas->now, &canvas->other, matrix);
    tdm__canvas_swap(canvas);
    return TDM_OK;
}

/* Python's round(x, 15), for numbers of at most 1. */
static double round15(double v) {
    return nearbyint(v * 1e15) / 1e15;
}

static void turn_around(tdm_canvas *canvas) {
    const tdm_pixels *at = &canvas->now;
    const size_t channels = (size_t)at->channels, count = (size_t)at->width * (size_t)at->height;
    unsigned char *front = at->data, *back = at->data + (count - 1) * channels;
    for (; front < back; front += channels, back -= channels) {
        for (size_t c = 0; c < channels; c++) {
            const unsigned char byte = front[c];
            front[c] = back[c];
            back[c] = byte;
        }
    }
}

/* A square picture by a right angle. */
static tdm_status turn_square(tdm_canvas *canvas, bool clockwise) {
    const int side = canvas->now.width;
    TDM_TRY(tdm__canvas_other(canvas, side, side));
    unsigned char *to = canvas->other.data;
    for (int y = 0; y < side; y++) {
        for (int x = 0; x < side; x++, to += canvas->now.channels)
            copy_pixel(&canvas->now, clockwise ? y : side - 1 - y, clockwise ? side - 1 - x : x, to);
    }
    tdm__canvas_swap(canvas);
    return TDM_OK;
}

tdm_status tdm__canvas_rotate(tdm_canvas *canvas, double degrees) {
    double angle = fmod(degrees, 360.0);
    if (angle < 0) angle += 360.0;
    if (angle == 0.0) return TDM_OK;
    if (angle == 180.0) {
        turn_around(canvas);
        return TDM_OK;
    }
    if ((angle == 90.0 || angle == 270.0) && canvas->now.width == canvas->now.height)
        return turn_square(canvas, angle == 270.0);
    const double radians = -(angle * (M_PI / 180.0)), cx = canvas->now.width / 2.0, cy = canvas->now.height / 2.0;
    double m[6] = {round15(cos(radians)),  round15(sin(radians)), 0.0,
                   round15(-sin(radians)), round15(cos(radians)), 0.0};
    m[2] = m[0] * -cx + m[1] * -cy + cx;
    m[5] = m[3] * -cx + m[4] * -cy + cy;
    return tdm__canvas_affine(canvas, m);
}
