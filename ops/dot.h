/* Sums of the reference kernels: in double, over eight interleaved lanes, so that the order is fixed and the compiler
 * can vectorise. The product of two floats is exact in double. */
#ifndef TDM_OPS_DOT_H
#define TDM_OPS_DOT_H

#include <stdint.h>

static inline double tdm__lanes_total(const double lane[8]) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static inline double tdm__dot(const float *a, const float *b, int64_t count) {
    double lane[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int j = 0; j < 8; j++) lane[j] += (double)a[i + j] * (double)b[i + j];
    for (int j = 0; i < count; i++, j++) lane[j] += (double)a[i] * (double)b[i];
    return tdm__lanes_total(lane);
}

static inline double tdm__sum(const float *a, int64_t count) {
    double lane[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int j = 0; j < 8; j++) lane[j] += (double)a[i + j];
    for (int j = 0; i < count; i++, j++) lane[j] += (double)a[i];
    return tdm__lanes_total(lane);
}

/* acc[i] += factor * x[i]; axpy of the BLAS. */
static inline void tdm__axpy(double *acc, double factor, const float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) acc[i] += factor * (double)x[i];
}

static inline void tdm__to_floats(float *out, const double *acc, int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = (float)acc[i];
}

#endif
