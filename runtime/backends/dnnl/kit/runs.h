/* Sums in double over runs of neighbouring floats: of every sixteenth number, and then over these sixteen sums, so
 * every instruction set gives the same bits. */
#ifndef TDM_DNNL_RUNS_H
#define TDM_DNNL_RUNS_H

#include "runtime/backends/dnnl/kit/vectors.h"

#if defined(__FMA__)
#include <immintrin.h>
#endif

enum { RUN_STEP = 16 };

/* Half of a run_pair widens to run_doubles. Compilers take vectors wider than the registers through memory, so the
 * width is that of the instruction set; the sums are the same. */
#if defined(__AVX512F__)
enum { RUN_LANES = 8 };
typedef floats_8 run_floats;
typedef ints_8 run_ints;
typedef doubles_8 run_doubles;
typedef floats_16 run_pair;

static inline run_doubles run_widened(run_floats v) {
    return (run_doubles)_mm512_cvtps_pd((__m256)v);
}

static inline run_doubles low_half(run_pair v) {
    return run_widened((run_floats)_mm512_castps512_ps256((__m512)v));
}

static inline run_doubles high_half(run_pair v) {
    return run_widened((run_floats)_mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)v, 1)));
}

/* a b + sum, for products that double holds without rounding, as those of floats: the sum is then that of two steps. */
static inline run_doubles run_fused(run_doubles a, run_doubles b, run_doubles sum) {
    return (run_doubles)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum);
}
#else
enum { RUN_LANES = 4 };
typedef floats_4 run_floats;
typedef ints_4 run_ints;
typedef doubles_4 run_doubles;
typedef floats_8 run_pair;

/* In this form gcc makes one conversion of it; of __builtin_convertvector two and an insertion. */
static inline run_doubles run_widened(run_floats v) {
    return (run_doubles){(double)v[0], (double)v[1], (double)v[2], (double)v[3]};
}

static inline run_doubles low_half(run_pair v) {
    return (run_doubles){(double)v[0], (double)v[1], (double)v[2], (double)v[3]};
}

static inline run_doubles high_half(run_pair v) {
    return (run_doubles){(double)v[4], (double)v[5], (double)v[6], (double)v[7]};
}

static inline run_doubles run_fused(run_doubles a, run_doubles b, run_doubles sum) {
#if defined(__FMA__)
    return (run_doubles)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)sum);
#else
    return sum + a * b;
#endif
}
#endif

/* sum + v, in the units that multiply: some processors add where they widen, and those units are busy. */
static inline run_doubles run_plus(run_doubles sum, run_doubles v) {
    return run_fused(v, (run_doubles){0} + 1.0, sum);
}

typedef struct run_sums {
    run_doubles of[RUN_STEP / RUN_LANES];
} run_sums;

static inline run_floats run_load(const float *from) {
    run_floats v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline run_pair load_pair(const float *from) {
    run_pair v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline run_doubles load_doubles(const double *from) {
    run_doubles v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void store_doubles(double *to, run_doubles v) {
    memcpy(to, &v, sizeof v);
}

static inline double run_total(const run_sums *sums) {
    double of[RUN_STEP], v[4];
    memcpy(of, sums->of, sizeof of);
    for (int i = 0; i < 4; i++) v[i] = (of[i] + of[i + 8]) + (of[i + 4] + of[i + 12]);
    return (v[0] + v[2]) + (v[1] + v[3]);
}

/* The next sixteen of `left` numbers: where they are, or if there are fewer in `room`, with `filler` behind them. */
static inline const float *run_next(float *room, const float *from, int64_t left, float filler) {
    if (left >= RUN_STEP) return from;
    for (int k = 0; k < RUN_STEP; k++) room[k] = k < left ? from[k] : filler;
    return room;
}

/* Adds the distances of `count` numbers from `origin`, and their squares. */
static inline void run_moments(run_sums *sum, run_sums *squares, const float *x, int64_t count, float origin) {
    float room[RUN_STEP];
    for (int64_t i = 0; i < count; i += RUN_STEP) {
        const float *from = run_next(room, x + i, count - i, origin);
        for (int k = 0; k < RUN_STEP / RUN_LANES; k++) {
            const run_doubles d = run_widened(run_load(from + RUN_LANES * k)) - (double)origin;
            sum->of[k] = run_plus(sum->of[k], d);
            squares->of[k] += d * d;
        }
    }
}

#endif
