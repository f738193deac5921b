/* See adaptive_maxpool2d_lanes.h. The rule is that of the reference kernel: of equal maxima the first wins, of several
 * NaN the last. */
#include "ops/adaptive_maxpool2d/adaptive_maxpool2d_lanes.h"

#include <math.h>

#include "ops/adaptive_maxpool2d/adaptive_maxpool2d.h"

#define LANES 8
#include "runtime/backends/dnnl/kit/vectors.h"

/* A window of a plane. */
typedef struct {
    const float *plane;
    int64_t inner, width; /* of the plane */
    tdm_average_range rows, columns;
} window;

typedef struct {
    FLOATS value;
    INTS point;
} best;

/* Points come in rising order, so a later one wins only if it is larger. */
static inline best better(best of, FLOATS v, INTS point) {
    const INTS wins = (INTS)(v > of.value) | (INTS)(v != v);
    return (best){(FLOATS)((wins & (INTS)v) | (~wins & (INTS)of.value)), (wins & point) | (~wins & of.point)};
}

/* The maxima of eight channels from `j` on. */
static best largest_of_channels(const window *w, int64_t j) {
    best of = {(FLOATS){0} - INFINITY, (INTS){0} + (int32_t)(w->rows.begin * w->width + w->columns.begin)};
    for (int64_t row = w->rows.begin; row < w->rows.end; row++) {
        const int64_t start = row * w->width;
        for (int64_t point = start + w->columns.begin; point < start + w->columns.end; point++)
            of = better(of, load_8(w->plane + point * w->inner + j), (INTS){0} + (int32_t)point);
    }
    return of;
}

/* The maximum of channel `j`, from point to point. */
static float largest(const window *w, int64_t j, int32_t *winner) {
    float value = -INFINITY;
    *winner = (int32_t)(w->rows.begin * w->width + w->columns.begin);
    for (int64_t row = w->rows.begin; row < w->rows.end; row++) {
        const int64_t start = row * w->width;
        for (int64_t point = start + w->columns.begin; point < start + w->columns.end; point++) {
            const float v = w->plane[point * w->inner + j];
            if (!(v > value || v != v)) continue;
            value = v;
            *winner = (int32_t)point;
        }
    }
    return value;
}

/* Of several lanes, each with its first maximum, or with its last NaN. */
static float largest_of_lanes(best of, int32_t *winner) {
    int at = 0;
    for (int i = 1; i < LANES; i++) {
        const float v = of.value[i], most = of.value[at];
        const bool earlier = of.point[i] < of.point[at];
        if (v != v ? most == most || !earlier : v > most || (v == most && earlier)) at = i;
    }
    *winner = of.point[at];
    return of.value[at];
}

/* The same without branches, which would be taken at random; of NaN by the function above. */
static float quick_largest_of_lanes(best of, int32_t *winner) {
    const INTS nan = (INTS)(of.value != of.value);
    float most = of.value[0];
    int32_t any = 0, first = INT32_MAX;
    for (int i = 0; i < LANES; i++) any |= nan[i];
    if (any != 0) return largest_of_lanes(of, winner);
    for (int i = 1; i < LANES; i++) most = of.value[i] > most ? of.value[i] : most;
    const INTS is_most = (INTS)(of.value == most);
    const INTS point = (is_most & of.point) | (~is_most & INT32_MAX);
    for (int i = 0; i < LANES; i++) first = point[i] < first ? point[i] : first;
    *winner = first;
    return most;
}

/* The same of a channel whose points are neighbours, eight at a time. The last eight of a row lie over those before,
 * which changes nothing: a point that comes twice does not win over itself, and a NaN has the same index. */
static float largest_of_points(const window *w, int32_t *winner) {
    const INTS steps = {0, 1, 2, 3, 4, 5, 6, 7};
    best of = {(FLOATS){0} - INFINITY, (INTS){0} + (int32_t)(w->rows.begin * w->width + w->columns.begin)};
    for (int64_t row = w->rows.begin; row < w->rows.end; row++) {
        const int64_t start = row * w->width, last = start + w->columns.end - LANES;
        for (int64_t at = start + w->columns.begin; at < last + LANES; at += LANES) {
            const int64_t from = at < last ? at : last;
            of = better(of, load_8(w->plane + from), (INTS){0} + (int32_t)from + steps);
        }
    }
    return quick_largest_of_lanes(of, winner);
}

static void of_points(const window *w, float *to, int32_t *winner) {
    int32_t point;
    *to = w->columns.end - w->columns.begin < LANES ? largest(w, 0, &point) : largest_of_points(w, &point);
    if (winner != NULL) *winner = point;
}

static void of_channels(const window *w, float *to, int32_t *winner) {
    int64_t j = 0;
    for (; j + LANES <= w->inner; j += LANES) {
        const best of = largest_of_channels(w, j);
        memcpy(to + j, &of.value, sizeof of.value);
        if (winner != NULL) memcpy(winner + j, &of.point, sizeof of.point);
    }
    for (; j < w->inner; j++) {
        int32_t point;
        to[j] = largest(w, j, &point);
        if (winner != NULL) winner[j] = point;
    }
}

static void forward(const tdm_planes *x, const tdm_planes *y, const float *from, float *to, int32_t *winner) {
    window w = {.plane = from, .inner = x->inner, .width = x->width};
    for (int64_t p = 0; p < y->height; p++) {
        w.rows = tdm__adaptive_range(p, x->height, y->height);
        for (int64_t q = 0; q < y->width; q++, to += y->inner) {
            w.columns = tdm__adaptive_range(q, x->width, y->width);
            if (x->inner == 1)
                of_points(&w, to, winner);
            else
                of_channels(&w, to, winner);
            if (winner != NULL) winner += y->inner;
        }
    }
}

const tdm_adaptive_maxpool2d_lanes TDM_ISA_NAME(tdm__adaptive_maxpool2d_lanes) = {forward};
