/* Resizing as Pillow does it (bilinear with antialiasing): a horizontal and a vertical pass with weights as fixed-point
 * numbers of 22 bits, bytes between the passes. Where the height shrinks by more than twice what the width does, the
 * vertical pass comes first. */
#include <math.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/twin.h"
#include "runtime/image/resize.h"

enum { BITS = 32 - 8 - 2, LANES = 64, TOGETHER = 8 };

typedef int lanes4 __attribute__((vector_size(16)));
typedef int lanes8 __attribute__((vector_size(32)));
typedef unsigned char bytes4 __attribute__((vector_size(4)));

/* The weights of one axis: output i takes `count[i]` inputs from first[i] on, with `weight + i * most`. */
typedef struct axis {
    const int *first, *count, *weight;
    int size, most;
} axis;

/* How far the weights reach, in inputs: the filter is a triangle, `wide` to each side. */
static double wide_of(const tdm_span *span) {
    const double scale = span->length / span->out;
    return scale < 1.0 ? 1.0 : scale;
}

static double centre_of(const tdm_span *span, int i) {
    return span->from + (i + 0.5) * (span->length / span->out);
}

static tdm_reach reach_of(const tdm_span *span, int i) {
    const double centre = centre_of(span, i), wide = wide_of(span);
    int low = (int)(centre - wide + 0.5), high = (int)(centre + wide + 0.5);
    if (low < 0) low = 0;
    if (high > span->in) high = span->in;
    return (tdm_reach){low, high - low};
}

static bool changes(const tdm_span *span) {
    return span->in != span->out || span->length != (double)span->in;
}

tdm_reach tdm__span_reach(const tdm_span *span) {
    if (!changes(span)) return (tdm_reach){span->first, span->count};
    const tdm_reach first = reach_of(span, span->first), last = reach_of(span, span->first + span->count - 1);
    return (tdm_reach){first.first, last.first + last.count - first.first};
}

/* Pillow's precompute_coeffs with the triangle filter, in double. */
static void fill_axis(const tdm_span *span, int most, int *first, int *count, int *weight) {
    const double narrow = 1.0 / wide_of(span);
    for (int i = 0; i < span->count; i++, weight += most) {
        const double centre = centre_of(span, span->first + i);
        const tdm_reach reach = reach_of(span, span->first + i);
        double sum = 0.0;
        for (int pass = 0; pass < 2; pass++) {
            for (int x = 0; x < reach.count; x++) {
                const double distance = fabs((x + reach.first - centre + 0.5) * narrow);
                const double share = distance < 1.0 ? 1.0 - distance : 0.0;
                if (pass == 0)
                    sum += share;
                else
                    weight[x] = (int)(0.5 + (sum != 0.0 ? share / sum : share) * (1 << BITS));
            }
        }
        first[i] = reach.first - span->held;
        count[i] = reach.count;
    }
}

static size_t most_of(const tdm_span *span) {
    return (size_t)ceil(wide_of(span)) * 2 + 1;
}

static void make_axis(tdm_canvas *canvas, axis *to, const tdm_span *span, size_t *used) {
    const size_t most = most_of(span), out = (size_t)span->count;
    int *at = canvas->coefficients + *used;
    fill_axis(span, (int)most, at, at + out, at + 2 * out);
    *to = (axis){.first = at, .count = at + out, .weight = at + 2 * out, .size = span->count, .most = (int)most};
    *used += out * (most + 2);
}

static size_t axis_numbers(const tdm_span *span) {
    return (size_t)span->count * (most_of(span) + 2);
}

TDM_INLINE unsigned char clip(int sum) {
    const int value = sum >> BITS;
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Three channels: four bytes at once, the last of which belongs to the next pixel and is dropped. */
TDM_INLINE void rgb_row(const unsigned char *in, unsigned char *out, const axis *a) {
    for (int i = 0; i < a->size; i++, out += 3) {
        const unsigned char *at = in + 3 * (size_t)a->first[i];
        const int *weight = a->weight + (size_t)i * (size_t)a->most;
        lanes4 sum = {1 << (BITS - 1), 1 << (BITS - 1), 1 << (BITS - 1), 0};
        for (int k = 0; k < a->count[i]; k++, at += 3) {
            bytes4 four;
            memcpy(&four, at, sizeof(four));
            sum += __builtin_convertvector(four, lanes4) * weight[k];
        }
        for (int c = 0; c < 3; c++) out[c] = clip(sum[c]);
    }
}

/* Vectors of 32 bytes are passed by address: the calling convention for them depends on the processor. */
TDM_INLINE void clip_lanes(lanes8 *sum) {
    const lanes8 value = *sum >> BITS, positive = value & (value > 0), over = positive > 255;
    *sum = (positive & ~over) | (over & 255);
}

TDM_INLINE int word_at(const unsigned char *at) {
    int word;
    memcpy(&word, at, sizeof(word));
    return word;
}

/* A pixel of each of TOGETHER rows. The fourth byte is overwritten by the next pixel, except in the last column. */
TDM_INLINE void put_pixels(unsigned char *out, size_t row, lanes8 sums[3], bool is_last) {
    for (int c = 0; c < 3; c++) clip_lanes(&sums[c]);
    const lanes8 words = sums[0] | sums[1] << 8 | sums[2] << 16;
    for (int r = 0; r < TOGETHER; r++, out += row) {
        const int word = words[r];
        if (is_last)
            memcpy(out, &word, 3);
        else
            memcpy(out, &word, 4);
    }
}

/* Three channels of TOGETHER rows, a lane for each row. */
TDM_INLINE void rgb_rows(const unsigned char *in, size_t row, unsigned char *out, size_t out_row, const axis *a) {
    const lanes8 half = (lanes8){0} + (1 << (BITS - 1));
    for (int i = 0; i < a->size; i++, out += 3) {
        const unsigned char *at = in + 3 * (size_t)a->first[i];
        const int *weight = a->weight + (size_t)i * (size_t)a->most;
        lanes8 sums[3] = {half, half, half};
        for (int k = 0; k < a->count[i]; k++, at += 3) {
            const lanes8 words = {word_at(at),           word_at(at + row),     word_at(at + 2 * row),
                                  word_at(at + 3 * row), word_at(at + 4 * row), word_at(at + 5 * row),
                                  word_at(at + 6 * row), word_at(at + 7 * row)};
            sums[0] += (words & 255) * weight[k];
            sums[1] += (words >> 8 & 255) * weight[k];
            sums[2] += (words >> 16 & 255) * weight[k];
        }
        put_pixels(out, out_row, sums, i + 1 == a->size);
    }
}

TDM_INLINE void grey_row(const unsigned char *in, unsigned char *out, const axis *a) {
    for (int i = 0; i < a->size; i++) {
        const unsigned char *at = in + a->first[i];
        const int *weight = a->weight + (size_t)i * (size_t)a->most;
        int sum = 1 << (BITS - 1);
        for (int k = 0; k < a->count[i]; k++) sum += at[k] * weight[k];
        out[i] = clip(sum);
    }
}

TDM_INLINE void horizontal(const tdm_pixels *in, const tdm_pixels *out, const axis *a, int first_row) {
    const size_t in_row = (size_t)in->width * (size_t)in->channels, out_row = (size_t)out->width * (size_t)in->channels;
    int y = 0;
    for (; in->channels == 3 && y + TOGETHER <= out->height; y += TOGETHER)
        rgb_rows(in->data + (size_t)(first_row + y) * in_row, in_row, out->data + (size_t)y * out_row, out_row, a);
    for (; y < out->height; y++) {
        const unsigned char *from = in->data + (size_t)(first_row + y) * in_row;
        if (in->channels == 3)
            rgb_row(from, out->data + (size_t)y * out_row, a);
        else
            grey_row(from, out->data + (size_t)y * out_row, a);
    }
}

/* One row of the output, `bytes` of it from `at` on. */
TDM_INLINE void blend_rows(const unsigned char *in, size_t row, unsigned char *out, const int *weight, int count,
                           size_t bytes) {
    int sum[LANES];
    for (size_t i = 0; i < bytes; i++) sum[i] = 1 << (BITS - 1);
    for (int k = 0; k < count; k++, in += row) {
        const int w = weight[k];
        for (size_t i = 0; i < bytes; i++) sum[i] += in[i] * w;
    }
    for (size_t i = 0; i < bytes; i++) out[i] = clip(sum[i]);
}

TDM_INLINE void vertical(const tdm_pixels *in, const tdm_pixels *out, const axis *a, int first_row) {
    const size_t row = (size_t)in->width * (size_t)in->channels;
    for (int y = 0; y < a->size; y++) {
        const unsigned char *from = in->data + (size_t)(a->first[y] - first_row) * row;
        const int *weight = a->weight + (size_t)y * (size_t)a->most;
        unsigned char *to = out->data + (size_t)y * row;
        size_t at = 0;
        for (; at + LANES <= row; at += LANES) blend_rows(from + at, row, to + at, weight, a->count[y], LANES);
        if (at < row) blend_rows(from + at, row, to + at, weight, a->count[y], row - at);
    }
}

TDM_FMA_TWIN static void horizontal_fast(const tdm_pixels *in, const tdm_pixels *out, const axis *a, int first_row) {
    horizontal(in, out, a, first_row);
}

TDM_FMA_TWIN static void vertical_fast(const tdm_pixels *in, const tdm_pixels *out, const axis *a, int first_row) {
    vertical(in, out, a, first_row);
}

static void run_horizontal(const tdm_pixels *in, const tdm_pixels *out, const axis *a, int first_row) {
    if (tdm__cpu_has_fma())
        horizontal_fast(in, out, a, first_row);
    else
        horizontal(in, out, a, first_row);
}

static void run_vertical(const tdm_pixels *in, const tdm_pixels *out, const axis *a, int first_row) {
    if (tdm__cpu_has_fma())
        vertical_fast(in, out, a, first_row);
    else
        vertical(in, out, a, first_row);
}

/* Both passes, through the picture `between`. */
static tdm_status run_both(tdm_canvas *canvas, const axis *x, const axis *y, bool vertical_first) {
    const tdm_pixels *in = &canvas->now, *out = &canvas->other;
    tdm_host host = *canvas->host;
    const int top = y->first[0], bottom = y->first[y->size - 1] + y->count[y->size - 1];
    tdm_pixels *between = &canvas->work;
    between->channels = in->channels;
    between->width = vertical_first ? in->width : out->width;
    between->height = vertical_first ? out->height : bottom - top;
    TDM_TRY(tdm__pixels_room(&host, between, tdm__pixels_bytes(between)));
    if (vertical_first) {
        run_vertical(in, between, y, 0);
        run_horizontal(between, out, x, 0);
    } else {
        run_horizontal(in, between, x, top);
        run_vertical(between, out, y, top);
    }
    return TDM_OK;
}

tdm_status tdm__canvas_resize_span(tdm_canvas *canvas, const tdm_span *over, const tdm_span *down) {
    const tdm_pixels *in = &canvas->now;
    const bool changes_x = changes(over), changes_y = changes(down);
    axis x = {.size = 0}, y = {.size = 0};
    size_t used = 0;
    if (!changes_x && !changes_y) return TDM_OK;
    TDM_TRY(tdm__canvas_other(canvas, over->count, down->count));
    TDM_TRY(tdm__grow(canvas->host, &canvas->coefficients, &canvas->coefficient_room,
                      axis_numbers(over) + axis_numbers(down), sizeof(int), "resize"));
    make_axis(canvas, &x, over, &used);
    make_axis(canvas, &y, down, &used);
    if (changes_x && changes_y) {
        TDM_TRY(run_both(canvas, &x, &y, down->in > down->out && down->in - down->out > (over->in - over->out) * 2));
    } else if (changes_x) {
        run_horizontal(in, &canvas->other, &x, 0);
    } else {
        run_vertical(in, &canvas->other, &y, 0);
    }
    tdm__canvas_swap(canvas);
    return TDM_OK;
}

static tdm_span all_of(int in, int out) {
    return (tdm_span){.in = in, .out = out, .count = out, .length = in};
}

tdm_status tdm__canvas_resize(tdm_canvas *canvas, int width, int height) {
    if (canvas->framing.is_open) return tdm__framing_resize(canvas, width, height);
    const tdm_span x = all_of(canvas->now.width, width), y = all_of(canvas->now.height, height);
    return tdm__canvas_resize_span(canvas, &x, &y);
}
