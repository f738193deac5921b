#include "runtime/backends/dnnl/kit/gemm.h"

#include "runtime/backends/dnnl/kit/dnnl.h"

/* How oneDNN cuts matrices for an instruction set (gemm_driver.cpp and gemm_info.cpp of 2.6; its matrices lie column by
 * column, so that its m is our n). unit: sizes are rounded up to it. */
typedef struct {
    int64_t m_unit, n_unit, m_most, n_most, k_most;
} blocks;

enum { SHORT_K = 48, SHORT_K_N = 24, LONG_K = 384, LEAST_K = 128, PAGES = 4 * 4096 };

static int64_t clip(int64_t length, int64_t least, int64_t most) {
    const int64_t longer = length > least ? length : least;
    return longer < most ? longer : most;
}

static int64_t terms_of(const blocks *b, int64_t k) {
    if (k <= LONG_K) return k > LEAST_K ? k : LEAST_K;
    return k < 2 * b->k_most ? (k + 1) / 2 : b->k_most;
}

/* What a thread's heap grows to by blocks of so many bytes, one at a time. In front of an aligned block glibc keeps a
 * small piece in its cache, so that a freed block is too short for the next one, until the cache of 7 is full. Larger
 * blocks go back to the system. */
static size_t heap_of(size_t bytes) {
    enum { BLOCKS = 8, KEPT = 3 << 20 };
    return tdm__larger(bytes, BLOCKS * bytes < KEPT ? BLOCKS * bytes : KEPT);
}

size_t tdm__dnnl_gemm_bytes(int64_t m, int64_t n, int64_t k, size_t element) {
    const bool is_wide = tdm__dnnl_channel_block() == 16, is_narrow = element < sizeof(float);
    const blocks b = is_wide ? (blocks){48, 8, 9984, 384, is_narrow ? 768 : 384} : (blocks){24, 4, 10000, 384, 192};
    const size_t rows = tdm__round_up((size_t)clip(n, b.m_unit, b.m_most), (size_t)b.m_unit);
    const size_t columns =
        tdm__round_up((size_t)clip(m, b.n_unit, k < SHORT_K ? SHORT_K_N : b.n_most), (size_t)b.n_unit);
    return heap_of((size_t)terms_of(&b, k) * (rows + columns) * element + PAGES);
}
