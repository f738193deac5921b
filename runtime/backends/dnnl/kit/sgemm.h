/* Products of matrices in floats: oneDNN's sgemm, cut into parts that threads share. The number of threads changes no
 * bit. */
#ifndef TDM_DNNL_SGEMM_H
#define TDM_DNNL_SGEMM_H

#include "runtime/backends/dnnl/kit/dnnl.h"

/* c = a b in dnnl_sgemm's terms: c is m x n, and sums have k terms. 'T': the matrix lies transposed. */
typedef struct tdm_dnnl_sgemm {
    char transposed_a, transposed_b; /* 'N' or 'T' */
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    const float *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
    bool adds; /* to what c holds */
} tdm_dnnl_sgemm;

/* Both are called between tdm__dnnl_enter and tdm__dnnl_leave. `what` names the layer in messages. */
dnnl_status_t tdm__dnnl_sgemm_run(const tdm_dnnl_sgemm *product); /* by the calling thread, in one part */
tdm_status tdm__dnnl_sgemm_share(tdm_device *device, int threads, const tdm_dnnl_sgemm *product, const char *what);

/* What oneDNN takes for itself while so many threads share the product. */
size_t tdm__dnnl_sgemm_bytes(const tdm_dnnl_sgemm *product, int threads);

/* c = a^T b ('T', 'N') where sums are long, as gradients of weights over many rows. Without AVX-512, oneDNN's sgemm
 * takes up to twice as long for it as for a b, so a is transposed some rows at a time. `room`: as many numbers as
 * tdm__dnnl_sgemm_room says; NULL if that is 0, and the product runs as any other. */
int64_t tdm__dnnl_sgemm_room(int64_t m, int64_t k);
tdm_status tdm__dnnl_sgemm_share_long(tdm_device *device, int threads, const tdm_dnnl_sgemm *product, float *room,
                                      const char *what);

#endif
