/* The loops of activations, compiled for each instruction set: see activation.h. */
#ifndef TDM_OPS_ACTIVATION_LANES_H
#define TDM_OPS_ACTIVATION_LANES_H

#include "ops/elementwise.h"
#include "runtime/backends/dnnl/kit/lanes.h"

/* y and x may be the same memory, and dx and dy. */
typedef struct tdm_activation_lanes {
    void (*forward)(const float *x, float p, float *y, int64_t count);
    void (*backward)(const float *v, const float *dy, float p, float *dx, int64_t count);
} tdm_activation_lanes;

#define TDM_ACTIVATION_LOOP(out, count, value)                \
    do {                                                      \
        TDM_SAME_OR_APART                                     \
        for (int64_t i = 0; i < count; i++) out[i] = (value); \
    } while (0)
#define TDM_ACTIVATION_TABLE(op)                               \
    TDM_LANES_TABLES(tdm_activation_lanes, tdm__##op##_lanes); \
    const tdm_activation_lanes TDM_ISA_NAME(tdm__##op##_lanes) = {forward, backward}

#define TDM_ACTIVATION_LANES(op)                                                               \
    static void forward(const float *x, float p, float *y, int64_t count) {                    \
        TDM_ACTIVATION_LOOP(y, count, tdm__##op(x[i], p));                                     \
    }                                                                                          \
    static void backward(const float *v, const float *dy, float p, float *dx, int64_t count) { \
        TDM_ACTIVATION_LOOP(dx, count, tdm__##op##_gradient(v[i], dy[i], p));                  \
    }                                                                                          \
    TDM_ACTIVATION_TABLE(op)

/* For an op whose p, 0 or 1, chooses one of two formulas, as gelu's does; every other op takes TDM_ACTIVATION_LANES. A
 * loop for each formula: of one loop compilers would make code that computes both for every number. */
#define TDM_ACTIVATION_LANES_OF_FORMS(op)                                                      \
    static void forward(const float *x, float p, float *y, int64_t count) {                    \
        if (p == 0.0f)                                                                         \
            TDM_ACTIVATION_LOOP(y, count, tdm__##op(x[i], 0.0f));                              \
        else                                                                                   \
            TDM_ACTIVATION_LOOP(y, count, tdm__##op(x[i], 1.0f));                              \
    }                                                                                          \
    static void backward(const float *v, const float *dy, float p, float *dx, int64_t count) { \
        if (p == 0.0f)                                                                         \
            TDM_ACTIVATION_LOOP(dx, count, tdm__##op##_gradient(v[i], dy[i], 0.0f));           \
        else                                                                                   \
            TDM_ACTIVATION_LOOP(dx, count, tdm__##op##_gradient(v[i], dy[i], 1.0f));           \
    }                                                                                          \
    TDM_ACTIVATION_TABLE(op)

#endif
