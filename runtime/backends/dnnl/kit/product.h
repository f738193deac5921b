/* Products of matrices in bf16, cut into parts that threads share. Sums are in float. The sizes alone decide the order
 * of sums and the parts, so the number of threads changes no bit. */
#ifndef TDM_DNNL_PRODUCT_H
#define TDM_DNNL_PRODUCT_H

#include "runtime/backends/dnnl/kit/dnnl.h"

/* c = a b + bias: c is m x n, and sums have k terms. Strides of rows and columns, in elements. */
typedef struct tdm_dnnl_product {
    int64_t m, n, k;
    int64_t a[2], b[2], c[2];
    bool floats;  /* c is floats, not rounded to bf16 */
    bool biased;  /* bias: n numbers in bf16 */
    bool by_rows; /* cut along the rows of c, else along its columns */
} tdm_dnnl_product;

enum { TDM_DNNL_MOST_PARTS = 8 };

/* A prepared product. Zeroed, it may be closed. */
typedef struct tdm_dnnl_parts {
    int64_t count;
    size_t step[4]; /* bytes from one part to the next: of a, b, the bias and c */
    size_t pad;     /* bytes of scratch of one part */
    struct {
        tdm_dnnl_context context; /* engine and attributes belong to the caller */
        tdm_dnnl_call call;
        dnnl_status_t status;
    } part[TDM_DNNL_MOST_PARTS];
} tdm_dnnl_parts;

/* What products need that run one after another, forward first. */
typedef struct tdm_dnnl_needs {
    size_t scratch, call; /* of the largest; call: what oneDNN takes for itself meanwhile */
    size_t kept;          /* of forward, as tdm__dnnl_kept_bytes says */
} tdm_dnnl_needs;

/* Adds what the product needs on so many threads. dnnl_unimplemented if oneDNN has only slow code for it. */
dnnl_status_t tdm__dnnl_product_needs(tdm_dnnl_needs *needs, const tdm_dnnl_context *context,
                                      const tdm_dnnl_product *whole, int threads);
dnnl_status_t tdm__dnnl_parts_open(tdm_dnnl_parts *out, const tdm_dnnl_context *context, const tdm_dnnl_product *whole);
void tdm__dnnl_parts_close(tdm_dnnl_parts *parts);
/* bias: NULL if there is none. `what` names the layer in messages. */
tdm_status tdm__dnnl_parts_run(tdm_dnnl_parts *parts, tdm_device *device, int threads, void *scratch, const void *a,
                               const void *b, const void *bias, void *c, const char *what);

#endif
