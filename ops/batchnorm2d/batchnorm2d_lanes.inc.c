/* Batch norm of LANES neighbouring channels at a time. batchnorm2d_lanes.c includes this file for 16 and for 8. Sums
 * are in double. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(name, LANES)

typedef float NAME(norm_floats_) __attribute__((vector_size(LANES * 4)));
typedef int32_t NAME(norm_ints_) __attribute__((vector_size(LANES * 4)));
typedef double NAME(norm_doubles_) __attribute__((vector_size(LANES * 8)));
#define FLOATS NAME(norm_floats_)
#define INTS NAME(norm_ints_)
#define DOUBLES NAME(norm_doubles_)

static inline FLOATS NAME(norm_load_)(const float *from) {
    FLOATS v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline DOUBLES NAME(norm_widen_)(const float *from) {
    return __builtin_convertvector(NAME(norm_load_)(from), DOUBLES);
}

/* dy where the relu passed, else 0 */
static inline FLOATS NAME(norm_masked_)(const float *dy, const float *y, int64_t at) {
    const FLOATS v = NAME(norm_load_)(dy + at);
    if (y == NULL) return v;
    return (FLOATS)((INTS)v & ~(INTS)(NAME(norm_load_)(y + at) <= 0.0f));
}

/* Sums the distances from the first value: it is close enough to the mean that nothing cancels in double. */
static void NAME(norm_moments_)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, double *mean,
                                double *variance) {
    const DOUBLES origin = NAME(norm_widen_)(x + norm_start(norm, 0, channel));
    const DOUBLES count = (DOUBLES){0} + (double)(norm->rows * norm->points);
    DOUBLES sum[2] = {{0}, {0}}, squares[2] = {{0}, {0}};
    for (int64_t n = 0; n < norm->rows; n++) {
        const float *from = x + norm_start(norm, n, channel);
        for (int64_t i = 0; i < norm->points; i++, from += norm->inner) {
            const DOUBLES d = NAME(norm_widen_)(from) - origin;
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

static void NAME(norm_apply_)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, float *y,
                              const float *mean, const float *scale, const float *shift) {
    const FLOATS m = NAME(norm_load_)(mean), a = NAME(norm_load_)(scale), b = NAME(norm_load_)(shift);
    for (int64_t n = 0; n < norm->rows; n++) {
        const int64_t start = norm_start(norm, n, channel), end = start + norm->points * norm->inner;
        for (int64_t at = start; at < end; at += norm->inner) {
            FLOATS v = (NAME(norm_load_)(x + at) - m) * a + b;
            if (norm->other != NULL) v += NAME(norm_load_)(norm->other + at);
            if (norm->relu) v = (FLOATS)((INTS)v & ~(INTS)(v < 0.0f));
            memcpy(y + at, &v, sizeof v);
        }
    }
}

/* sum of dy and of dy (x - mean); also writes the gradient of `other` */
static void NAME(norm_sums_)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy,
                             const float *y, const double *mean, double *sum, double *dot) {
    DOUBLES m, s[2] = {{0}, {0}}, d[2] = {{0}, {0}};
    memcpy(&m, mean, sizeof m);
    for (int64_t n = 0; n < norm->rows; n++) {
        int64_t at = norm_start(norm, n, channel);
        for (int64_t i = 0; i < norm->points; i++, at += norm->inner) {
            const FLOATS masked = NAME(norm_masked_)(dy, y, at);
            const DOUBLES g = __builtin_convertvector(masked, DOUBLES);
            if (norm->dother != NULL) memcpy(norm->dother + at, &masked, sizeof masked);
            s[i & 1] += g;
            d[i & 1] += g * (NAME(norm_widen_)(x + at) - m);
        }
    }
    s[0] += s[1];
    d[0] += d[1];
    memcpy(sum, &s[0], sizeof s[0]);
    memcpy(dot, &d[0], sizeof d[0]);
}

/* dx = (dy - level - (x - mean) slope) scale */
static void NAME(norm_gradient_)(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy,
                                 const float *y, float *dx, const float *mean, const float *level, const float *slope,
                                 const float *scale) {
    const FLOATS m = NAME(norm_load_)(mean), l = NAME(norm_load_)(level), k = NAME(norm_load_)(slope);
    const FLOATS a = NAME(norm_load_)(scale);
    for (int64_t n = 0; n < norm->rows; n++) {
        const int64_t start = norm_start(norm, n, channel), end = start + norm->points * norm->inner;
        for (int64_t at = start; at < end; at += norm->inner) {
            const FLOATS v = (NAME(norm_masked_)(dy, y, at) - l - (NAME(norm_load_)(x + at) - m) * k) * a;
            memcpy(dx + at, &v, sizeof v);
        }
    }
}

#undef FLOATS
#undef INTS
#undef DOUBLES
#undef NAME
#undef JOIN
#undef JOIN_
