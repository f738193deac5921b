/* Elementwise passes, and how threads share the work of a kernel. */
#ifndef TDM_DNNL_PASSES_H
#define TDM_DNNL_PASSES_H

#include <stdint.h>

#include <tandem/sys/op.h>

#include "runtime/backends/dnnl/kit/lanes.h"

typedef struct tdm_dnnl_passes {
    void (*clamp)(float *y, int64_t count);                                   /* y = max(0, y) */
    void (*mask)(float *out, const float *dy, const float *y, int64_t count); /* out = 0 where y <= 0, else dy */
    void (*add)(float *sum, const float *x, int64_t count);                   /* sum += x */
    /* to[c][r] = from[r][c] of rows x columns numbers; `stride` numbers lie from row to row of `from` */
    void (*transpose)(float *to, const float *from, int64_t rows, int64_t columns, int64_t stride);
    /* sum[c][r] += x[r][c]; `apart` numbers lie from row to row of `sum` */
    void (*add_transposed)(float *sum, int64_t apart, const float *x, int64_t rows, int64_t columns);
    /* clamp and mask of numbers in bf16. */
    void (*clamp_bf16)(uint16_t *y, int64_t count);
    void (*mask_bf16)(uint16_t *out, const uint16_t *dy, const uint16_t *y, int64_t count);
} tdm_dnnl_passes;
TDM_LANES_TABLES(tdm_dnnl_passes, tdm__dnnl_passes);

/* As tdm_host_calls.share. threads: those of the device, or 1, the calling one alone. */
typedef void (*tdm_dnnl_work_fn)(void *data, int64_t begin, int64_t end);
tdm_status tdm__dnnl_share(tdm_device *device, int threads, int64_t count, tdm_dnnl_work_fn work, void *data);
/* Returns how many of `threads` a pass over `numbers` elements should use: all, or 1 if waking them does not pay. */
static inline int tdm__dnnl_threads(int threads, int64_t numbers) {
    return numbers < 64 * 1024 ? 1 : threads;
}

#endif
