/* Sums in double over runs of neighbouring floats: of every sixteenth number, and then over these sixteen sums, so every
 * instruction set gives the same bits. */
#ifndef TDM_DNNL_RUNS_H
#define TDM_DNNL_RUNS_H

#include "runtime/backends/dnnl/kit/vectors.h"

enum { RUN_STEP = 16 };

/* Vectors of four doubles are the widest of AVX2; compilers take wider ones through memory. */
typedef struct run_sums {
    doubles_4 of[RUN_STEP / 4];
} run_sums;

/* In this form gcc makes one conversion of it; of __builtin_convertvector two and an insertion. */
static inline doubles_4 widened_4(floats_4 v) {
    return (doubles_4){(double)v[0], (double)v[1], (double)v[2], (double)v[3]};
}

static inline doubles_4 load_doubles(const double *from) {
    doubles_4 v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline doubles_4 low_half(floats_8 v) {
    return (doubles_4){(double)v[0], (double)v[1], (double)v[2], (double)v[3]};
}

static inline doubles_4 high_half(floats_8 v) {
    return (doubles_4){(double)v[4], (double)v[5], (double)v[6], (double)v[7]};
}

static inline double run_total(const run_sums *sums) {
    const doubles_4 v = (sums->of[0] + sums->of[2]) + (sums->of[1] + sums->of[3]);
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
        for (int k = 0; k < RUN_STEP / 4; k++) {
            const doubles_4 d = widened_4(load_4(from + 4 * k)) - (double)origin;
            sum->of[k] += d;
            squares->of[k] += d * d;
        }
    }
}

#endif
