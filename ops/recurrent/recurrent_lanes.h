/* Loops over the units of lstm and gru, and sums of columns, for several instruction sets. */
#ifndef TDM_OPS_RECURRENT_LANES_H
#define TDM_OPS_RECURRENT_LANES_H

#include "ops/recurrent/recurrent.h"
#include "runtime/backends/dnnl/kit/lanes.h"

typedef struct tdm_recurrent_lanes {
    /* One step of a row, as tdm__recurrent_unit and tdm__recurrent_unit_back for each unit. */
    void (*forward)(const tdm_recurrent *r, float *now, const float *before);
    void (*backward)(const tdm_recurrent *r, float *now, const float *before, float *carried);
    /* sums[j] = from[0][j] + from[1][j] + ..., by rising row; `stride` numbers lie from row to row */
    void (*columns)(float *sums, const float *from, int64_t rows, int64_t columns, int64_t stride);
} tdm_recurrent_lanes;
TDM_LANES_TABLES(tdm_recurrent_lanes, tdm__recurrent_lanes);

#endif
