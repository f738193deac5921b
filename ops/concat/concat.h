/* concat: the inputs one after another along a dimension. In memory, whatever the layout, each of `outer` runs of y is
 * the runs of the inputs in their order. */
#ifndef TDM_OPS_CONCAT_H
#define TDM_OPS_CONCAT_H

#include <tandem/sys/op.h>

typedef struct tdm_concat_attrs {
    int64_t dim; /* as in torch.cat: 0 is the batch, -1 the last */
} tdm_concat_attrs;

/* The dimension of a value with its batch, of `ndim` in all; may be out of range. */
static inline int tdm__concat_dim(const tdm_concat_attrs *attrs, int ndim) {
    return (int)(attrs->dim < 0 ? attrs->dim + ndim : attrs->dim);
}

typedef struct tdm_concat_runs {
    int64_t outer, length[TDM_MAX_INPUTS], total; /* length: numbers of an input in a run of y; total: of all */
} tdm_concat_runs;

static inline tdm_concat_runs tdm__concat_runs_of(const tdm_kernel_desc *desc, int64_t rows) {
    const int dim = tdm__concat_dim((const tdm_concat_attrs *)desc->attrs, desc->y.ndim);
    const int64_t *x = desc->x[0].dim;
    const tdm_layout layout = desc->y_layout;
    tdm_concat_runs runs = {.outer = rows, .length = {0}, .total = 0};
    if (layout == TDM_LAYOUT_NHWC) {
        for (int i = 2; i < (dim == 1 ? 4 : dim); i++) runs.outer *= x[i];
    } else {
        for (int i = 1; i < dim; i++) runs.outer *= x[i];
        if (dim > 1 && layout == TDM_LAYOUT_C8) runs.outer /= 8;
        if (dim > 1 && layout == TDM_LAYOUT_C16) runs.outer /= 16;
    }
    for (int k = 0; k < desc->input_count; k++) {
        runs.length[k] = rows;
        for (int i = 1; i < desc->x[k].ndim; i++) runs.length[k] *= desc->x[k].dim[i];
        runs.length[k] /= runs.outer;
        runs.total += runs.length[k];
    }
    return runs;
}

#endif
