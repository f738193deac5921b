/* Random numbers: PyTorch's CPU generator, bit for bit, and a counter-based one for dropout.
 *
 * The generator is MT19937, as in C++ std::mt19937. Floats, permutations and normals are made as in ATen's CPU kernels
 * (runtime/docs/numerics.md lists each formula). The profiles differ only in normal_: the AVX2 kernels use Cephes
 * polynomials with fused multiply-adds, builds without vector kernels use libm. */
#ifndef TDM_BASE_RNG_H
#define TDM_BASE_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tandem/job.h>

typedef struct tdm_rng {
    uint32_t state[624];
    int next;
    tdm_rng_profile profile;
    bool has_cached_normal; /* the second number of a scalar Box-Muller pair is kept across calls, as in ATen */
    double cached_normal;
} tdm_rng;

void tdm__rng_seed(tdm_rng *rng, uint64_t seed, tdm_rng_profile profile); /* torch.manual_seed: low 32 bits */
uint32_t tdm__rng_u32(tdm_rng *rng);
uint64_t tdm__rng_u64(tdm_rng *rng);                        /* the first draw is the high half */
void tdm__rng_rand(tdm_rng *rng, float *out, size_t count); /* torch.rand */
void tdm__rng_uniform(tdm_rng *rng, float *out, size_t count, double low, double high); /* Tensor.uniform_ */
void tdm__rng_normal(tdm_rng *rng, float *out, size_t count, double mean, double std);  /* Tensor.normal_, randn */
/* torch.randint(low, high) with low < high: a draw modulo the range. Draws have 64 bits if the range is at least 2^28
 * (torch >= 2.7), else 32 bits. */
void tdm__rng_randint(tdm_rng *rng, int64_t *out, size_t count, int64_t low, int64_t high);
/* torch.randperm. From TDM_RANDPERM_LIMIT on torch shuffles in another way. */
enum { TDM_RANDPERM_LIMIT = 214748364 };
void tdm__rng_randperm(tdm_rng *rng, int64_t *out, size_t count);

#endif
