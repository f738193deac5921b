/* embedding: y[n,k,:] = weight[x[n,k],:]. x holds whole numbers from 0 to vocabulary - 1 as floats, which have all of
 * them up to 2^24. */
#ifndef TDM_OPS_EMBEDDING_H
#define TDM_OPS_EMBEDDING_H

#include <tandem/sys/op.h>

#include "runtime/base/host_device.h"

typedef struct tdm_embedding_attrs {
    int64_t vocabulary, dim;
    int64_t padding_idx; /* TDM_INT_NULL: none */
} tdm_embedding_attrs;

/* The row of the weight that x asks for; -1: there is none. */
TDM_HOST_DEVICE static inline int64_t tdm__embedding_row(float x, int64_t vocabulary) {
    if (!(x >= 0.0f && x < (float)vocabulary)) return -1;
    const int64_t row = (int64_t)x;
    return (float)row == x ? row : -1;
}

#define TDM_EMBEDDING_ASKS \
    "embedding: an input is %g, and with a vocabulary of %lld it must be a whole number from 0 to %lld"

static inline int64_t tdm__embedding_numbers(const tdm_kernel_args *args) {
    int64_t count = args->rows;
    for (int i = 1; i < args->desc->x[0].ndim; i++) count *= args->desc->x[0].dim[i];
    return count;
}

#endif
