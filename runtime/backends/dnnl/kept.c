/* What oneDNN keeps for what it prepares. It does not say, so these are bounds, for each kind of its implementations, of
 * what was measured with 2.6.3: 15,000 convolutions, 1,500 products and 1,500 reorders of drawn sizes, each alone in a
 * process, for SSE4.1, AVX, AVX2, AVX-512 and bf16. Its library, its engine and all code of its sgemm are 4.9 MiB. */
#include "runtime/backends/dnnl/kit/dnnl.h"

/* FIRST: descriptions, and an operation whose code is that of sgemm; 24 KiB. OTHER: one more of the same code; 4.5 KiB.
 * CODE: the buffer that oneDNN has for the code of one kernel; with its descriptions 172 KiB were the most. */
enum { FIRST = 32 << 10, OTHER = 8 << 10, CODE = 256 << 10 };

static size_t code_bytes(dnnl_primitive_desc_t plan, size_t many) {
    const char *name = tdm__dnnl_name(plan);
    if (name == NULL || strncmp(name, "brg", 3) == 0) return many;
    return tdm__dnnl_is_gemm(plan) ? 0 : CODE;
}

/* oneDNN shares code between equal operations, if it may remember any. */
size_t tdm__dnnl_kept_bytes(dnnl_primitive_desc_t plan, size_t many, int64_t count) {
    int remembered = 0;
    const bool shares = dnnl_get_primitive_cache_capacity(&remembered) == dnnl_success && remembered > 0;
    return FIRST + (size_t)(count - 1) * OTHER + (size_t)(shares ? 1 : count) * code_bytes(plan, many);
}
