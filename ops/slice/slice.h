/* slice: y = x[:, start:end], the items start to end - 1 of the first dimension of each row. */
#ifndef TDM_OPS_SLICE_H
#define TDM_OPS_SLICE_H

#include <stdint.h>

#include <tandem/sys/field.h>

typedef struct tdm_slice_attrs {
    int64_t start, end; /* end TDM_INT_NULL: all behind start */
} tdm_slice_attrs;

#endif
