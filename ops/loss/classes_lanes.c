/* Rows of a number for each class: the largest, softmax and what follows from it, compiled for each instruction set
 * (base/isa.h). Sums run over sixteen lanes in double, so all give the same bits. */
#include "ops/activation_math.h"
#include "ops/elementwise.h"
#include "ops/loss/classes.h"
#include "runtime/base/isa.h"

enum { LANES = 16, PIECE = 512 }; /* PIECE: of what is computed before it is summed */

/* Number c goes to lane c mod LANES. */
static inline void add(double *lane, const float *x, int64_t count) {
    int64_t c = 0;
    for (; c + LANES <= count; c += LANES)
        for (int k = 0; k < LANES; k++) lane[k] += (double)x[c + k];
    for (int k = 0; c + k < count; k++) lane[k] += (double)x[c + k];
}

static inline void add_doubles(double *lane, const double *x, int64_t count) {
    int64_t c = 0;
    for (; c + LANES <= count; c += LANES)
        for (int k = 0; k < LANES; k++) lane[k] += x[c + k];
    for (int k = 0; c + k < count; k++) lane[k] += x[c + k];
}

static inline double total(const double *lane) {
    double of[4];
    for (int k = 0; k < 4; k++) of[k] = (lane[k] + lane[k + 8]) + (lane[k + 4] + lane[k + 12]);
    return (of[0] + of[2]) + (of[1] + of[3]);
}

/* Larger where tdm__largest prefers x, and equal where it does not: for zeros of both signs, and NaNs. It has no branch,
 * so that compilers make vectors of the loops. */
static inline int32_t rank(float x) {
    const int32_t bits = (int32_t)tdm__bits_of_float(x + 0.0f), size = bits & INT32_MAX;
    const int32_t is_nan = -(int32_t)(size > 0x7f800000);
    return ((bits ^ ((bits >> 31) & INT32_MAX)) & ~is_nan) | (is_nan & INT32_MAX);
}

static int32_t highest(const float *y, int64_t width) {
    int32_t best = INT32_MIN;
    for (int64_t c = 0; c < width; c++) {
        const int32_t r = rank(y[c]);
        best = r > best ? r : best;
    }
    return best;
}

static float of_rank(int32_t rank) {
    return tdm__float_of_bits((uint32_t)(rank ^ ((rank >> 31) & INT32_MAX)));
}

static float max(const float *y, int64_t width) {
    return of_rank(highest(y, width));
}

static float max_and_hit(const float *y, int64_t width, int64_t c, int64_t *hits) {
    const int32_t best = highest(y, width);
    int before = 0;
    if (rank(y[c]) != best) return of_rank(best);
    for (int64_t k = 0; k < c; k++) before |= rank(y[k]) == best;
    *hits += !before;
    return of_rank(best);
}

static double exp_sum(const float *y, int64_t width, float most) {
    float e[PIECE];
    double lane[LANES] = {0};
    for (int64_t at = 0; at < width; at += PIECE) {
        const int64_t count = width - at < PIECE ? width - at : PIECE;
        for (int64_t c = 0; c < count; c++) e[c] = tdm__expf(y[at + c] - most);
        add(lane, e, count);
    }
    return total(lane);
}

static void log_softmax(float *out, const tdm_softmax_row *row) {
    const float *y = row->y, most = row->max, log_total = row->log_total;
    const int64_t width = row->width;
    TDM_SAME_OR_APART
    for (int64_t c = 0; c < width; c++) out[c] = (y[c] - most) - log_total;
}

static void softmax(float *out, const tdm_softmax_row *row, float factor) {
    const float *y = row->y, most = row->max, log_total = row->log_total;
    const int64_t width = row->width;
    TDM_SAME_OR_APART
    for (int64_t c = 0; c < width; c++) out[c] = tdm__expf((y[c] - most) - log_total) * factor;
}

static inline int64_t targets(double *q, const tdm_class_targets *of, int64_t at, int64_t width) {
    const int64_t count = width - at < PIECE ? width - at : PIECE;
    for (int64_t c = 0; c < count; c++) q[c] = of->spread;
    if (of->t != NULL)
        for (int64_t c = 0; c < count; c++) q[c] += of->kept * (double)of->t[at + c];
    if (of->weights.count > 0)
        for (int64_t c = 0; c < count; c++) q[c] *= (double)(float)of->weights.item[at + c];
    return count;
}

static void expected(const tdm_softmax_row *row, const tdm_class_targets *of, double *loss, double *share) {
    const float *y = row->y, most = row->max, log_total = row->log_total;
    double losses[LANES] = {0}, shares[LANES] = {0}, q[PIECE];
    for (int64_t at = 0; at < row->width; at += PIECE) {
        const int64_t count = targets(q, of, at, row->width);
        add_doubles(shares, q, count);
        for (int64_t c = 0; c < count; c++) q[c] *= -(double)((y[at + c] - most) - log_total);
        add_doubles(losses, q, count);
    }
    *loss = total(losses);
    *share = total(shares);
}

static void take_targets(float *dy, int64_t width, const tdm_class_targets *of, float seed) {
    double q[PIECE];
    for (int64_t at = 0; at < width; at += PIECE) {
        const int64_t count = targets(q, of, at, width);
        for (int64_t c = 0; c < count; c++) dy[at + c] -= (float)q[c] * seed;
    }
}

static void log_softmax_gradient(float *dx, const float *y, const float *dy, int64_t width) {
    double lane[LANES] = {0};
    add(lane, dy, width);
    const float all = (float)total(lane);
    TDM_SAME_OR_APART
    for (int64_t c = 0; c < width; c++) dx[c] = fmaf(-tdm__expf(y[c]), all, dy[c]);
}

const tdm_class_lanes TDM_ISA_NAME(tdm__class_lanes) = {max,     max_and_hit, exp_sum,      log_softmax,
                                                        softmax, expected,    take_targets, log_softmax_gradient};
