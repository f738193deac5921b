/* linear of one row of floats: a vector by a matrix, which reads every weight once.
 *
 * It adds what oneDNN 2's sgemm adds for one row, in the same order, so the bits are the same and either may be taken
 * (test linear_row_test). oneDNN generates the code of all its products before the first one, which takes 20 ms and
 * some MiB of memory. */
#ifndef TDM_OPS_LINEAR_ROW_LANES_H
#define TDM_OPS_LINEAR_ROW_LANES_H

#include "runtime/backends/dnnl/kit/lanes.h"

/* Which 16 neighbours of x count: step k is x[16 k] and what follows. */
typedef struct tdm_linear_steps {
    const int32_t *at;
    int64_t count;
} tdm_linear_steps;

typedef struct tdm_linear_row_lanes {
    /* y[o] = sum_i x[i] w[o][i] for o in [begin, end). Element i of each 16 is added to lane i % 8 of a sum by one
     * fused multiply-add. Then the lanes of it are added, ((0 + 1) + (4 + 5)) + ((2 + 3) + (6 + 7)); of what remains of
     * x the next 8, 4, 2 and 1 in the same way, each a sum of its own. NULL where there is no AVX2. */
    void (*row)(float *y, const float *x, const float *w, int64_t in, int64_t begin, int64_t end);
    /* The same bits from weights that are all finite, of which those that meet 16 zeros of x are not read. */
    void (*row_of_steps)(float *y, const float *x, const float *w, int64_t in, int64_t begin, int64_t end,
                         const tdm_linear_steps *steps);
    /* Lists the whole steps of x that are not all 0 in at[in / 16]; returns how many. */
    int64_t (*list_steps)(int32_t *at, const float *x, int64_t in);
    bool (*are_finite)(const float *w, int64_t count);
} tdm_linear_row_lanes;
TDM_LANES_TABLES(tdm_linear_row_lanes, tdm__linear_row_lanes);

#endif
