/* embedding in the dnnl module. Threads share the numbers that are looked up; in backward each has some rows of the
 * weight and goes through all numbers, so the additions to a row keep their order. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/embedding/embedding.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

typedef struct {
    const tdm_kernel_args *args;
    int64_t count, vocabulary, dim, padding;
    int64_t parts;           /* of the rows of the weight */
    _Atomic bool has_no_row; /* a number */
} call;

static call call_of(const tdm_kernel_args *args) {
    const tdm_embedding_attrs *attrs = args->desc->attrs;
    return (call){.args = args,
                  .count = tdm__embedding_numbers(args),
                  .vocabulary = attrs->vocabulary,
                  .dim = attrs->dim,
                  .padding = attrs->padding_idx};
}

static void look_up(void *data, int64_t begin, int64_t end) {
    call *j = data;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = tdm__embedding_row(j->args->x[0][i], j->vocabulary);
        if (row < 0)
            j->has_no_row = true;
        else
            memcpy(j->args->y + i * j->dim, j->args->param[0] + row * j->dim, (size_t)j->dim * sizeof(float));
    }
}

static tdm_status forward(const tdm_kernel_args *args) {
    call j = call_of(args);
    const int threads = tdm__dnnl_threads(args->desc->threads, j.count * j.dim);
    TDM_MODULE_TRY(tdm__dnnl_share(args->device, threads, j.count, look_up, &j));
    for (int64_t i = 0; i < j.count && j.has_no_row; i++)
        if (tdm__embedding_row(args->x[0][i], j.vocabulary) < 0)
            TDM_MODULE_FAIL(TDM_E_DATA, TDM_EMBEDDING_ASKS, (double)args->x[0][i], (long long)j.vocabulary,
                            (long long)j.vocabulary - 1);
    return TDM_OK;
}

/* dw[x[i],:] += dy[i,:], in the order of i, which is PyTorch's */
static void add_to_rows(const call *j, int64_t first, int64_t behind) {
    float *dw = j->args->dparam[0];
    memset(dw + first * j->dim, 0, (size_t)((behind - first) * j->dim) * sizeof *dw);
    for (int64_t i = 0; i < j->count; i++) {
        const int64_t row = tdm__embedding_row(j->args->x[0][i], j->vocabulary);
        if (row < first || row >= behind || row == j->padding) continue;
        const float *dy = j->args->dy + i * j->dim;
        float *to = dw + row * j->dim;
        TDM_SAME_OR_APART
        for (int64_t k = 0; k < j->dim; k++) to[k] += dy[k];
    }
}

static void add_parts(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    for (int64_t part = begin; part < end; part++)
        add_to_rows(j, j->vocabulary * part / j->parts, j->vocabulary * (part + 1) / j->parts);
}

static tdm_status backward(const tdm_kernel_args *args) {
    call j = call_of(args);
    if (args->dx[0] != NULL) memset(args->dx[0], 0, (size_t)j.count * sizeof(float));
    if (args->dparam[0] == NULL) return TDM_OK;
    j.parts = tdm__dnnl_threads(args->desc->threads, (j.vocabulary + j.count) * j.dim);
    return tdm__dnnl_share(args->device, (int)j.parts, j.parts, add_parts, &j);
}

const tdm_kernel tdm__embedding_dnnl = {
    .op = "embedding", .variant = "dnnl", .fits = tdm__plain_fits, .forward = forward, .backward = backward};
