/* linear: y[n,o] = sum_i x[n,i] w[o,i] + b[o] */
#ifndef TDM_OPS_LINEAR_H
#define TDM_OPS_LINEAR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tdm_linear_attrs {
    int64_t out;
    bool bias;
    int64_t in;      /* TDM_INT_NULL: taken from the input */
    double init_std; /* of the first weights; NaN: as torch.nn.Linear */
} tdm_linear_attrs;

#endif
