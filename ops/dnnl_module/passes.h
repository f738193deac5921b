/* Passes in C for what oneDNN does not do as PyTorch does, or does slower: compiled for three instruction sets from
 * passes.inc.c, with the same results. All are cut into ranges, so that threads can share them. */
#ifndef TDM_OPS_DNNL_PASSES_H
#define TDM_OPS_DNNL_PASSES_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/sys/op.h>

/* A pooling window over planes of `inner` neighbouring channels; axis 0 is height. */
typedef struct tdm_dnnl_pool {
    int64_t inner, in[2], out[2], kernel[2], stride[2], padding[2];
} tdm_dnnl_pool;

/* Batch norm over planes of `inner` neighbouring channels. */
typedef struct tdm_dnnl_norm {
    int64_t rows, channels, points, inner;
    bool relu;          /* forward: y = max(0, y), the last of all */
    const float *other; /* forward: y += other; NULL: nothing is added */
    float *dother;      /* backward: its gradient, dy where the relu was open; NULL: not wanted */
} tdm_dnnl_norm;
enum { TDM_DNNL_LANES = 16 }; /* the most channels that one call of the passes below takes */

typedef struct tdm_dnnl_passes {
    const char *variant;                                                      /* "plain", "AVX2", "AVX-512" */
    void (*relu)(float *y, int64_t count);                                    /* y = max(0, y) */
    void (*mask)(float *out, const float *dy, const float *y, int64_t count); /* out = dy where y > 0 */
    void (*add)(float *sum, const float *x, int64_t count);                   /* sum += x */
    /* Planes [begin, end). `winner`, a byte per output: the place in the window that won; NULL outside training. */
    void (*maxpool_forward)(const tdm_dnnl_pool *pool, const float *x, float *y, uint8_t *winner, int64_t begin,
                            int64_t end);
    void (*maxpool_backward)(const tdm_dnnl_pool *pool, const float *dy, const uint8_t *winner, float *dx,
                             int64_t begin, int64_t end);
    /* The channels [channel, channel + tdm__dnnl_norm_lanes); the arrays hold one value of each. `y` in backward: of
     * the relu, NULL if there is none. */
    void (*norm_moments)(const tdm_dnnl_norm *norm, int64_t channel, const float *x, double *mean, double *variance);
    void (*norm_apply)(const tdm_dnnl_norm *norm, int64_t channel, const float *x, float *y, const float *mean,
                       const float *scale, const float *shift);
    void (*norm_sums)(const tdm_dnnl_norm *norm, int64_t channel, const float *x, const float *dy, const float *y,
                      const double *mean, double *sum, double *dot);
    void (*norm_gradient)(const tdm_dnnl_norm *norm, int64_t channel, const float *x, const float *dy, const float *y,
                          float *dx, const float *mean, const float *level, const float *slope, const float *scale);
} tdm_dnnl_passes;

static inline int64_t tdm__dnnl_norm_lanes(const tdm_dnnl_norm *norm) {
    return norm->inner % 16 == 0 ? 16 : 8;
}

extern const tdm_dnnl_passes tdm__dnnl_passes_plain;
extern const tdm_dnnl_passes tdm__dnnl_passes_avx2;   /* x86-64 only */
extern const tdm_dnnl_passes tdm__dnnl_passes_avx512; /* x86-64 only */

/* The widest one that this processor runs. */
const tdm_dnnl_passes *tdm__dnnl_passes(void);

/* work(data, begin, end) over [0, count), cut into a range for each of `threads`, of which the caller is one. The
 * others are started at the first call; that they cannot be had is the only failure. */
typedef void (*tdm_dnnl_work_fn)(void *data, int64_t begin, int64_t end);
tdm_status tdm__dnnl_share(int threads, int64_t count, tdm_dnnl_work_fn work, void *data);
/* How many of `threads` are worth waking for a pass over so many numbers: all, or 1. */
int tdm__dnnl_threads(int threads, int64_t numbers);

tdm_status tdm__dnnl_mask(float *out, const float *dy, const float *y, int64_t count, int threads);

#endif
