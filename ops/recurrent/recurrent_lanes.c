#include "ops/recurrent/recurrent_lanes.h"

#include <string.h>

#include "ops/elementwise.h"

/* A loop for each cell, and for a first step without a state before it: compilers make vectors only of loops without
 * such choices. */
static inline __attribute__((always_inline)) void units(tdm_recurrent r, bool is_gru, float *now, const float *before) {
    const int64_t hidden = r.hidden;
    r.is_gru = is_gru;
    TDM_SAME_OR_APART
    for (int64_t j = 0; j < hidden; j++) tdm__recurrent_unit(&r, now, before, j);
}

static inline __attribute__((always_inline)) void units_back(tdm_recurrent r, bool is_gru, float *now,
                                                             const float *before, float *carried) {
    const int64_t hidden = r.hidden;
    r.is_gru = is_gru;
    TDM_SAME_OR_APART
    for (int64_t j = 0; j < hidden; j++) tdm__recurrent_unit_back(&r, now, before, carried, j);
}

static __attribute__((flatten)) void forward(const tdm_recurrent *r, float *now, const float *before) {
    if (r->is_gru && before != NULL)
        units(*r, true, now, before);
    else if (r->is_gru)
        units(*r, true, now, NULL);
    else if (before != NULL)
        units(*r, false, now, before);
    else
        units(*r, false, now, NULL);
}

static __attribute__((flatten)) void backward(const tdm_recurrent *r, float *now, const float *before, float *carried) {
    if (r->is_gru && before != NULL)
        units_back(*r, true, now, before, carried);
    else if (r->is_gru)
        units_back(*r, true, now, NULL, carried);
    else if (before != NULL)
        units_back(*r, false, now, before, carried);
    else
        units_back(*r, false, now, NULL, carried);
}

static void columns(float *restrict sums, const float *restrict from, int64_t rows, int64_t count, int64_t stride) {
    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t n = 0; n < rows; n++)
        for (int64_t j = 0; j < count; j++) sums[j] += from[n * stride + j];
}

const tdm_recurrent_lanes TDM_ISA_NAME(tdm__recurrent_lanes) = {forward, backward, columns};
