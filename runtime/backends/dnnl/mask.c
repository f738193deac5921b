/* Elementwise passes that threads share. */
#include "runtime/backends/dnnl/kit/dnnl.h"

enum { GRAIN = 16, LEAST_SHARED = 64 * 1024 }; /* ranges begin on whole vectors */

int tdm__dnnl_threads(int threads, int64_t numbers) {
    return numbers < LEAST_SHARED ? 1 : threads;
}

typedef struct {
    float *out;
    const float *dy, *y;
    int64_t count;
} elements;

static int64_t grains(int64_t count) {
    return (count + GRAIN - 1) / GRAIN;
}

static int64_t up_to(const elements *e, int64_t end) {
    return end * GRAIN < e->count ? end * GRAIN : e->count;
}

static void mask_part(void *data, int64_t begin, int64_t end) {
    const elements *e = data;
    const int64_t at = begin * GRAIN;
    TDM_LANES(tdm__dnnl_passes)->mask(e->out + at, e->dy + at, e->y + at, up_to(e, end) - at);
}

tdm_status tdm__dnnl_mask(float *out, const float *dy, const float *y, int64_t count, int threads) {
    elements e = {.out = out, .dy = dy, .y = y, .count = count};
    return tdm__dnnl_share(tdm__dnnl_threads(threads, count), grains(count), mask_part, &e);
}
