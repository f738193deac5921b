/* Resizing as Pillow does it (bilinear with antialiasing): a horizontal and a vertical pass with weights as fixed-point
 * numbers of 22 bits, bytes between the passes. Where the height shrinks by more than twice what the width does, the
 * vertical pass comes first. */
#include <math.h>
#include <string.h>

#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/image/resize.h"
#include "runtime/image/resize_pass.h"

/* How far the weights reach to each side of the centre, in inputs: the filter is a triangle. */
static double half_width_of(const tdm_resize_span *span) {
    const double scale = span->length / span->out;
    return scale < 1.0 ? 1.0 : scale;
}

static double centre_of(const tdm_resize_span *span, int i) {
    return span->from + (i + 0.5) * (span->length / span->out);
}

static tdm_resize_reach reach_of(const tdm_resize_span *span, int i) {
    const double centre = centre_of(span, i), half_width = half_width_of(span);
    int low = (int)(centre - half_width + 0.5), high = (int)(centre + half_width + 0.5);
    if (low < 0) low = 0;
    if (high > span->in) high = span->in;
    return (tdm_resize_reach){low, high - low};
}

static bool changes(const tdm_resize_span *span) {
    return span->in != span->out || span->length != (double)span->in;
}

tdm_resize_reach tdm__resize_span_reach(const tdm_resize_span *span) {
    if (!changes(span)) return (tdm_resize_reach){span->first, span->count};
    const tdm_resize_reach first = reach_of(span, span->first), last = reach_of(span, span->first + span->count - 1);
    return (tdm_resize_reach){first.first, last.first + last.count - first.first};
}

/* Pillow's precompute_coeffs with the triangle filter, in double. */
static void fill_axis(const tdm_resize_span *span, int most, int *first, int *count, int *weight) {
    const double inverse_width = 1.0 / half_width_of(span);
    for (int i = 0; i < span->count; i++, weight += most) {
        const double centre = centre_of(span, span->first + i);
        const tdm_resize_reach reach = reach_of(span, span->first + i);
        double sum = 0.0;
        for (int pass = 0; pass < 2; pass++) {
            for (int x = 0; x < reach.count; x++) {
                const double distance = fabs((x + reach.first - centre + 0.5) * inverse_width);
                const double share = distance < 1.0 ? 1.0 - distance : 0.0;
                if (pass == 0)
                    sum += share;
                else
                    weight[x] = (int)(0.5 + (sum != 0.0 ? share / sum : share) * (1 << TDM_AXIS_BITS));
            }
        }
        first[i] = reach.first - span->held;
        count[i] = reach.count;
    }
}

static size_t most_of(const tdm_resize_span *span) {
    return (size_t)ceil(half_width_of(span)) * 2 + 1;
}

/* Writes `weight` as digits, a block of TDM_FOUR outputs apart. */
static void put_digits(signed char *at, int weight) {
    for (int d = 0; d < TDM_DIGITS; d++, at += TDM_FOUR * TDM_FOUR) {
        const int digit = ((weight + 128) & 255) - 128;
        *at = (signed char)digit;
        weight = (weight - digit) / 256;
    }
}

/* All outputs get as many inputs as the one with most, rounded up; those at the end begin earlier. Beyond the last
 * output, blocks are filled up with outputs that weigh 0. */
static void fill_fours(const tdm_axis *axis, int blocks, int *from, signed char *digits) {
    const int last = axis->size - 1, end = axis->first[last] + axis->count[last] - TDM_FOUR * blocks;
    memset(digits, 0, (size_t)(last / TDM_FOUR + 1) * (size_t)blocks * TDM_FOURS_BLOCK);
    for (int i = 0; i <= (last | (TDM_FOUR - 1)); i++) {
        const int output = i < last ? i : last;
        from[i] = axis->first[output] < end ? axis->first[output] : end;
        for (int k = 0; i <= last && k < axis->count[i]; k++) {
            const int input = axis->first[i] - from[i] + k;
            const size_t block = (size_t)(i / TDM_FOUR) * (size_t)blocks + (size_t)(input / TDM_FOUR);
            put_digits(digits + block * TDM_FOURS_BLOCK + (size_t)(i % TDM_FOUR * TDM_FOUR + input % TDM_FOUR),
                       axis->weight[(size_t)i * (size_t)axis->most + (size_t)k]);
        }
    }
}

/* Returns how many ints the fours of an axis take. */
static size_t fours_numbers(size_t outputs, size_t most) {
    return tdm__round_up(outputs, TDM_FOUR) * (1 + tdm__round_up(most, TDM_FOUR) * TDM_DIGITS / sizeof(int));
}

static void make_fours(tdm_axis *axis, int *at) {
    const int last = axis->size - 1, inputs = axis->first[last] + axis->count[last] - axis->first[0];
    int most = 0;
    for (int i = 0; i < axis->size; i++) most = axis->count[i] > most ? axis->count[i] : most;
    const int blocks = (most + TDM_FOUR - 1) / TDM_FOUR;
    if (TDM_FOUR * blocks > inputs) return;
    signed char *digits = (signed char *)(at + tdm__round_up((size_t)axis->size, TDM_FOUR));
    fill_fours(axis, blocks, at, digits);
    axis->fours = (tdm_fours){.digits = digits, .from = at, .blocks = blocks};
    for (int i = 0; i <= last; i += TDM_FOUR) {
        const int reach = at[i + TDM_FOUR - 1] - at[i];
        if (reach > axis->fours.reach) axis->fours.reach = reach;
    }
}

static size_t axis_numbers(const tdm_resize_span *span) {
    const size_t most = most_of(span), out = (size_t)span->count;
    return out * (most + 2) + fours_numbers(out, most);
}

static void make_axis(tdm_canvas *canvas, tdm_axis *to, const tdm_resize_span *span, size_t *used) {
    const size_t most = most_of(span), out = (size_t)span->count;
    int *at = canvas->coefficients + *used;
    fill_axis(span, (int)most, at, at + out, at + 2 * out);
    *to = (tdm_axis){.first = at, .count = at + out, .weight = at + 2 * out, .size = span->count, .most = (int)most};
    if (tdm__resize_vnni() != NULL) make_fours(to, at + out * (most + 2));
    *used += axis_numbers(span);
}

/* Both passes, through the picture `between`. */
static tdm_status run_both(tdm_canvas *canvas, const tdm_axis *x, const tdm_axis *y, bool vertical_first) {
    const tdm_pixels *in = &canvas->now, *out = &canvas->other;
    const int top = y->first[0], bottom = y->first[y->size - 1] + y->count[y->size - 1];
    tdm_pixels *between = &canvas->work;
    between->channels = in->channels;
    between->width = vertical_first ? in->width : out->width;
    between->height = vertical_first ? out->height : bottom - top;
    TDM_TRY(tdm__pixels_room(canvas->host, between, tdm__pixels_bytes(between)));
    if (vertical_first) {
        tdm__resize_down(in, between, y, 0);
        tdm__resize_across(between, out, x, 0);
    } else {
        tdm__resize_across(in, between, x, top);
        tdm__resize_down(between, out, y, top);
    }
    return TDM_OK;
}

tdm_status tdm__canvas_resize_span(tdm_canvas *canvas, const tdm_resize_span *over, const tdm_resize_span *down) {
    const tdm_pixels *in = &canvas->now;
    const bool changes_x = changes(over), changes_y = changes(down);
    tdm_axis x = {.size = 0}, y = {.size = 0};
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
        tdm__resize_across(in, &canvas->other, &x, 0);
    } else {
        tdm__resize_down(in, &canvas->other, &y, 0);
    }
    tdm__canvas_swap(canvas);
    return TDM_OK;
}

static tdm_resize_span all_of(int in, int out) {
    return (tdm_resize_span){.in = in, .out = out, .count = out, .length = in};
}

tdm_status tdm__canvas_resize(tdm_canvas *canvas, int width, int height) {
    if (canvas->framing.is_open) return tdm__framing_resize(canvas, width, height);
    const tdm_resize_span x = all_of(canvas->now.width, width), y = all_of(canvas->now.height, height);
    return tdm__canvas_resize_span(canvas, &x, &y);
}
