#include "ops/avgpool2d/avgpool2d_lanes.h"

#include <string.h>

#include "runtime/backends/dnnl/kit/runs.h"

#define INLINED static inline __attribute__((always_inline))

/* Neighbouring channels of a point, and neighbouring points of a row, whose sums are taken together. */
enum { CHANNELS = 16, POINTS = 64 };

enum { PLANES = 16 }; /* whose sums are taken together */

static int64_t within(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : value > most ? most : value;
}

/* ---- points with neighbouring channels ---- */

INLINED void mean_of(const tdm_average_call *call, int64_t p, int64_t q, const float *restrict x, float *restrict y,
                     int64_t count) {
    const tdm_average_range rows = call->rows[p], columns = call->columns[q];
    double sum[CHANNELS] = {0};
    for (int64_t row = rows.begin; row < rows.end; row++) {
        const float *from = x + (row * call->x.width + columns.begin) * call->x.inner;
        for (int64_t column = columns.begin; column < columns.end; column++, from += call->x.inner)
            for (int64_t j = 0; j < count; j++) sum[j] += (double)from[j];
    }
    const double divisor = (double)(rows.divisor * columns.divisor);
    for (int64_t j = 0; j < count; j++) y[j] = (float)(sum[j] / divisor);
}

/* The same of 16 channels. Written as a loop, gcc makes single divisions of it. */
static void mean_of_16(const tdm_average_call *call, int64_t p, int64_t q, const float *x, float *y) {
    const tdm_average_range rows = call->rows[p], columns = call->columns[q];
    const double divisor = (double)(rows.divisor * columns.divisor);
    run_sums sum = {0};
    for (int64_t row = rows.begin; row < rows.end; row++) {
        const float *from = x + (row * call->x.width + columns.begin) * call->x.inner;
        for (int64_t column = columns.begin; column < columns.end; column++, from += call->x.inner)
            for (int k = 0; k < CHANNELS / RUN_LANES; k++)
                sum.of[k] = run_plus(sum.of[k], run_widened(run_load(from + RUN_LANES * k)));
    }
    for (int k = 0; k < CHANNELS / RUN_LANES; k++) {
        const run_floats mean = __builtin_convertvector(sum.of[k] / divisor, run_floats);
        memcpy(y + RUN_LANES * k, &mean, sizeof mean);
    }
}

INLINED void spread_of(const tdm_average_call *call, int64_t p, int64_t q, const float *restrict dy, float *restrict dx,
                       int64_t count) {
    const tdm_average_range rows = call->rows[p], columns = call->columns[q];
    const float divisor = (float)(rows.divisor * columns.divisor);
    float share[CHANNELS];
    for (int64_t j = 0; j < count; j++) share[j] = dy[j] / divisor;
    for (int64_t row = rows.begin; row < rows.end; row++) {
        float *to = dx + (row * call->x.width + columns.begin) * call->x.inner;
        for (int64_t column = columns.begin; column < columns.end; column++, to += call->x.inner)
            for (int64_t j = 0; j < count; j++) to[j] += share[j];
    }
}

/* With a constant count the sums stay in registers. */
static void mean_channels(const tdm_average_call *call, const float *x, float *y) {
    const int64_t inner = call->y.inner;
    for (int64_t p = 0; p < call->y.height; p++) {
        for (int64_t q = 0; q < call->y.width; q++, y += inner) {
            int64_t j = 0;
            for (; j + CHANNELS <= inner; j += CHANNELS) mean_of_16(call, p, q, x + j, y + j);
            if (j < inner) mean_of(call, p, q, x + j, y + j, inner - j);
        }
    }
}

static void spread_channels(const tdm_average_call *call, const float *dy, float *dx) {
    const int64_t inner = call->y.inner;
    for (int64_t p = 0; p < call->y.height; p++) {
        for (int64_t q = 0; q < call->y.width; q++, dy += inner) {
            int64_t j = 0;
            for (; j + CHANNELS <= inner; j += CHANNELS) spread_of(call, p, q, dy + j, dx + j, CHANNELS);
            if (j < inner) spread_of(call, p, q, dy + j, dx + j, inner - j);
        }
    }
}

/* ---- planes of one channel ---- */

/* Points [first, first + count) of a row of y, at most POINTS; of them those [begin, end) have like windows. */
typedef struct {
    int64_t first, count, begin, end;
} stretch;

static stretch stretch_at(const tdm_average_call *call, int64_t first) {
    stretch s = {.first = first, .count = within(call->y.width - first, 0, POINTS)};
    s.begin = within(call->begin - first, 0, s.count);
    s.end = within(call->end - first, s.begin, s.count);
    return s;
}

static void add_windows(const tdm_average_call *call, double *sum, const float *x, int64_t first, int64_t count) {
    const tdm_average_range *columns = call->columns + first;
    for (int64_t q = 0; q < count; q++)
        for (int64_t column = columns[q].begin; column < columns[q].end; column++) sum[q] += (double)x[column];
}

INLINED void add_like(double *restrict sum, const float *restrict x, int64_t size, int64_t stride, int64_t count) {
    for (int64_t k = 0; k < size; k++)
        for (int64_t q = 0; q < count; q++) sum[q] += (double)x[q * stride + k];
}

static void add_row(const tdm_average_call *call, const stretch *s, double *sum, const float *x) {
    const float *from = x + call->columns[s->first + s->begin].begin;
    const int64_t like = s->end - s->begin;
    add_windows(call, sum, x, s->first, s->begin);
    if (call->stride == 1)
        add_like(sum + s->begin, from, call->size, 1, like);
    else if (call->stride == 2)
        add_like(sum + s->begin, from, call->size, 2, like);
    else
        add_like(sum + s->begin, from, call->size, call->stride, like);
    add_windows(call, sum + s->end, x, s->first + s->end, s->count - s->end);
}

static void mean_points(const tdm_average_call *call, const float *x, float *y) {
    for (int64_t p = 0; p < call->y.height; p++) {
        const tdm_average_range rows = call->rows[p];
        for (int64_t first = 0; first < call->y.width; first += POINTS) {
            const stretch s = stretch_at(call, first);
            double sum[POINTS] = {0};
            for (int64_t row = rows.begin; row < rows.end; row++) add_row(call, &s, sum, x + row * call->x.width);
            for (int64_t q = 0; q < s.count; q++)
                *y++ = (float)(sum[q] / (double)(rows.divisor * call->columns[first + q].divisor));
        }
    }
}

static void spread_windows(const tdm_average_call *call, const float *share, float *dx, int64_t first, int64_t count) {
    const tdm_average_range *columns = call->columns + first;
    for (int64_t q = 0; q < count; q++)
        for (int64_t column = columns[q].begin; column < columns[q].end; column++) dx[column] += share[q];
}

/* A point of dx gets its shares in the order of q, as it does window after window: the last column of a window meets
 * the first of later ones. */
INLINED void spread_like(const float *restrict share, float *restrict dx, int64_t size, int64_t stride, int64_t count) {
    for (int64_t k = size - 1; k >= 0; k--)
        for (int64_t q = 0; q < count; q++) dx[q * stride + k] += share[q];
}

static void spread_row(const tdm_average_call *call, const stretch *s, const float *share, float *dx) {
    float *to = dx + call->columns[s->first + s->begin].begin;
    const int64_t like = s->end - s->begin;
    spread_windows(call, share, dx, s->first, s->begin);
    if (call->stride == 1)
        spread_like(share + s->begin, to, call->size, 1, like);
    else if (call->stride == 2)
        spread_like(share + s->begin, to, call->size, 2, like);
    else
        spread_like(share + s->begin, to, call->size, call->stride, like);
    spread_windows(call, share + s->end, dx, s->first + s->end, s->count - s->end);
}

static void spread_points(const tdm_average_call *call, const float *dy, float *dx) {
    for (int64_t p = 0; p < call->y.height; p++) {
        const tdm_average_range rows = call->rows[p];
        for (int64_t first = 0; first < call->y.width; first += POINTS) {
            const stretch s = stretch_at(call, first);
            float share[POINTS];
            for (int64_t q = 0; q < s.count; q++)
                share[q] = *dy++ / (float)(rows.divisor * call->columns[first + q].divisor);
            for (int64_t row = rows.begin; row < rows.end; row++) spread_row(call, &s, share, dx + row * call->x.width);
        }
    }
}

/* ---- planes of one channel and one window ---- */

/* Of several planes at once: a plane's sum is in the order of its points, so each addition waits for the one before. */
INLINED void mean_planes(const float *restrict x, float *restrict y, int64_t numbers, double divisor, int64_t count) {
    double sum[PLANES] = {0};
    for (int64_t i = 0; i < numbers; i++)
        for (int64_t k = 0; k < count; k++) sum[k] += (double)x[k * numbers + i];
    for (int64_t k = 0; k < count; k++) y[k] = (float)(sum[k] / divisor);
}

static void whole_forward(const tdm_average_call *call, const float *x, float *y, int64_t planes) {
    const int64_t numbers = call->x.height * call->x.width;
    const double divisor = (double)(call->rows[0].divisor * call->columns[0].divisor);
    for (; planes >= PLANES; planes -= PLANES, x += PLANES * numbers, y += PLANES)
        mean_planes(x, y, numbers, divisor, PLANES);
    mean_planes(x, y, numbers, divisor, planes);
}

static void whole_backward(const tdm_average_call *call, const float *dy, float *dx, int64_t planes) {
    const int64_t numbers = call->x.height * call->x.width;
    const float divisor = (float)(call->rows[0].divisor * call->columns[0].divisor);
    for (int64_t k = 0; k < planes; k++, dx += numbers) {
        const float share = 0.0f + dy[k] / divisor; /* of -0, too, the sum with the 0 that was there */
        for (int64_t i = 0; i < numbers; i++) dx[i] = share;
    }
}

/* ---- planes ---- */

static void forward(const tdm_average_call *call, const float *x, float *y) {
    (call->x.inner == 1 ? mean_points : mean_channels)(call, x, y);
}

static void backward(const tdm_average_call *call, const float *dy, float *dx) {
    memset(dx, 0, (size_t)(call->x.height * call->x.width * call->x.inner) * sizeof *dx);
    (call->x.inner == 1 ? spread_points : spread_channels)(call, dy, dx);
}

const tdm_average_lanes TDM_ISA_NAME(tdm__average_lanes) = {forward, backward, whole_forward, whole_backward};
