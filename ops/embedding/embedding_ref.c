/* embedding: reference kernel. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/embedding/embedding.h"
#include "ops/ops.h"

/* y[i,:] = w[x[i],:] */
static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_embedding_attrs *attrs = args->desc->attrs;
    const int64_t count = tdm__embedding_numbers(args), dim = attrs->dim;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = tdm__embedding_row(args->x[0][i], attrs->vocabulary);
        if (row < 0)
            TDM_FAIL(TDM_E_DATA, TDM_EMBEDDING_ASKS, (double)args->x[0][i], (long long)attrs->vocabulary,
                     (long long)attrs->vocabulary - 1);
        memcpy(args->y + i * dim, args->param[0] + row * dim, (size_t)dim * sizeof(float));
    }
    return TDM_OK;
}

/* dw[x[i],:] += dy[i,:], in the order of i, which is PyTorch's; a whole number has no gradient. */
static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_embedding_attrs *attrs = args->desc->attrs;
    const int64_t count = tdm__embedding_numbers(args), dim = attrs->dim;
    float *dw = args->dparam[0];
    if (args->dx[0] != NULL) memset(args->dx[0], 0, (size_t)count * sizeof(float));
    if (dw == NULL) return TDM_OK;
    memset(dw, 0, (size_t)(attrs->vocabulary * dim) * sizeof(float));
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = tdm__embedding_row(args->x[0][i], attrs->vocabulary);
        if (row < 0 || row == attrs->padding_idx) continue;
        for (int64_t k = 0; k < dim; k++) dw[row * dim + k] += args->dy[i * dim + k];
    }
    return TDM_OK;
}

TDM_REF_KERNEL(embedding, tdm__plain_fits);
