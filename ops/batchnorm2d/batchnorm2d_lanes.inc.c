/* Batch norm of LANES neighbouring channels at a time. batchnorm2d_lanes.c includes this file for 16 and for 8. Sums
 * are in double. */
static inline DOUBLES NAME(widen)(const float *from) {
    return __builtin_convertvector(NAME(load)(from), DOUBLES);
}

static inline FLOATS NAME(narrow)(const double *from) {
    DOUBLES v;
    memcpy(&v, from, sizeof v);
    return __builtin_convertvector(v, FLOATS);
}

/* dy where the relu passed, else 0 */
static inline FLOATS NAME(masked)(const float *dy, const float *y, int64_t at) {
    const FLOATS v = NAME(load)(dy + at);
    if (y == NULL) return v;
    return (FLOATS)((INTS)v & ~(INTS)(NAME(load)(y + at) <= 0.0f));
}

static inline void NAME(prefetch_all)(const float *x, const float *dy, const float *y, int64_t at) {
    tdm__prefetch(x + at, TDM_PREFETCH_BYTES);
    tdm__prefetch(dy + at, TDM_PREFETCH_BYTES);
    if (y != NULL) tdm__prefetch(y + at, TDM_PREFETCH_BYTES);
}

static inline void NAME(put)(const tdm_batchnorm2d_planes *norm, float *to, FLOATS v) {
    if (norm->past_cache)
        NAME(store_past)(to, v);
    else
        memcpy(to, &v, sizeof v);
}

/* The first value, but 0 where it is infinite or NaN: an infinity less itself is NaN, and so the mean would be. */
static inline DOUBLES NAME(origin)(const float *first) {
    const FLOATS v = NAME(load)(first);
    const FLOATS finite = (FLOATS)((INTS)v & (INTS)(v - v == 0.0f));
    return __builtin_convertvector(finite, DOUBLES);
}

/* Sums the distances from the first value: it is close enough to the mean that nothing cancels in double. */
static void NAME(moments)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, double *mean,
                          double *variance) {
    const DOUBLES origin = NAME(origin)(x + norm_start(norm, 0, channel));
    const DOUBLES count = (DOUBLES){0} + (double)(norm->rows * norm->points);
    DOUBLES sum[2] = {{0}, {0}}, squares[2] = {{0}, {0}};
    for (int64_t n = 0; n < norm->rows; n++) {
        const float *from = x + norm_start(norm, n, channel);
        for (int64_t i = 0; i < norm->points; i++, from += norm->inner) {
            tdm__prefetch(from, TDM_PREFETCH_BYTES);
            const DOUBLES d = NAME(widen)(from) - origin;
            sum[i & 1] += d;
            squares[i & 1] += d * d;
        }
    }
    const DOUBLES total = sum[0] + sum[1], shift = total / count;
    const DOUBLES m = origin + shift, v = (squares[0] + squares[1]) / count - shift * shift;
    for (int j = 0; j < LANES; j++) {
        mean[j] = m[j];
        variance[j] = v[j] < 0.0 ? 0.0 : v[j];
    }
}

static void NAME(apply)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, float *y,
                        const double *mean, const double *scale, const double *shift) {
    const FLOATS m = NAME(narrow)(mean), a = NAME(narrow)(scale), b = NAME(narrow)(shift);
    for (int64_t n = 0; n < norm->rows; n++) {
        const int64_t start = norm_start(norm, n, channel), end = start + norm->points * norm->inner;
        for (int64_t at = start; at < end; at += norm->inner) {
            tdm__prefetch(x + at, TDM_PREFETCH_BYTES);
            if (norm->other != NULL) tdm__prefetch(norm->other + at, TDM_PREFETCH_BYTES);
            FLOATS v = (NAME(load)(x + at) - m) * a + b;
            if (norm->other != NULL) v += NAME(load)(norm->other + at);
            if (norm->relu) v = (FLOATS)((INTS)v & ~(INTS)(v < 0.0f));
            NAME(put)(norm, y + at, v);
        }
    }
    if (norm->past_cache) tdm__stores_past_done();
}

/* Of the channels' values at `at`: adds dy to *sum, and dy (x - mean) to *dot. */
static inline __attribute__((always_inline)) void NAME(sum_point)(const tdm_batchnorm2d_planes *norm, const float *x,
                                                                  const float *dy, const float *y, int64_t at,
                                                                  DOUBLES mean, DOUBLES *sum, DOUBLES *dot) {
    NAME(prefetch_all)(x, dy, y, at);
    const FLOATS masked = NAME(masked)(dy, y, at);
    const DOUBLES g = __builtin_convertvector(masked, DOUBLES);
    if (norm->dother != NULL) NAME(put)(norm, norm->dother + at, masked);
    *sum += g;
    *dot += g * (NAME(widen)(x + at) - mean);
}

/* sum of dy and of dy (x - mean); also writes the gradient of `other` */
static void NAME(sums)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy,
                       const float *y, const double *mean, double *sum, double *dot) {
    const tdm_batchnorm2d_planes own = *norm; /* no store changes it */
    DOUBLES m, s[2] = {{0}, {0}}, d[2] = {{0}, {0}};
    memcpy(&m, mean, sizeof m);
    for (int64_t n = 0; n < own.rows; n++) {
        const int64_t start = norm_start(&own, n, channel), end = start + own.points * own.inner;
        int64_t at = start;
        for (; at + own.inner < end; at += 2 * own.inner) {
            NAME(sum_point)(&own, x, dy, y, at, m, &s[0], &d[0]);
            NAME(sum_point)(&own, x, dy, y, at + own.inner, m, &s[1], &d[1]);
        }
        if (at < end) NAME(sum_point)(&own, x, dy, y, at, m, &s[0], &d[0]);
    }
    if (own.past_cache) tdm__stores_past_done();
    s[0] += s[1];
    d[0] += d[1];
    memcpy(sum, &s[0], sizeof s[0]);
    memcpy(dot, &d[0], sizeof d[0]);
}

/* dx = (dy - level - (x - mean) slope) scale */
static void NAME(gradient)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy,
                           const float *y, float *dx, const double *mean, const double *level, const double *slope,
                           const double *scale) {
    const FLOATS m = NAME(narrow)(mean), l = NAME(narrow)(level), k = NAME(narrow)(slope);
    const FLOATS a = NAME(narrow)(scale);
    for (int64_t n = 0; n < norm->rows; n++) {
        const int64_t start = norm_start(norm, n, channel), end = start + norm->points * norm->inner;
        for (int64_t at = start; at < end; at += norm->inner) {
            NAME(prefetch_all)(x, dy, y, at);
            const FLOATS v = (NAME(masked)(dy, y, at) - l - (NAME(load)(x + at) - m) * k) * a;
            NAME(put)(norm, dx + at, v);
        }
    }
    if (norm->past_cache) tdm__stores_past_done();
}

const tdm_batchnorm2d_lanes TDM_ISA_NAME(NAME(tdm__batchnorm2d_lanes)) = {
    .lanes = LANES,
    .moments = NAME(moments),
    .apply = NAME(apply),
    .sums = NAME(sums),
    .gradient = NAME(gradient),
};
