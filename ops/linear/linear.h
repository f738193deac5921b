/* linear: y[n,o] = sum_i x[n,i] w[o,i] + b[o], where n counts all dimensions but the last */
#ifndef TDM_OPS_LINEAR_H
#define TDM_OPS_LINEAR_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/sys/op.h>

typedef struct tdm_linear_attrs {
    int64_t out;
    bool bias;
    int64_t in;      /* TDM_INT_NULL: taken from the input */
    double init_std; /* of the first weights; NaN: as torch.nn.Linear */
} tdm_linear_attrs;

/* x and y as matrices. */
typedef struct tdm_linear_sizes {
    int64_t points, in, out; /* points: their rows; more than the rows of a batch where a row has several dimensions */
} tdm_linear_sizes;

static inline tdm_linear_sizes tdm__linear_sizes_of(const tdm_kernel_desc *desc, int64_t rows) {
    const int last = desc->y.ndim - 1;
    tdm_linear_sizes of = {.points = rows, .in = desc->x[0].dim[last], .out = desc->y.dim[last]};
    for (int i = 1; i < last; i++) of.points *= desc->y.dim[i];
    return of;
}

#endif
