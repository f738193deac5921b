/* Box-Muller on blocks of 16 uniform floats, in place: the first eight become radii, the last eight angles. */
#ifndef TDM_BASE_RNG_NORMAL_H
#define TDM_BASE_RNG_NORMAL_H

#include "runtime/base/random/rng.h"

enum { TDM_NORMAL_BLOCK = 16 };

void tdm__normal_blocks(float *values, size_t blocks, float mean, float std, tdm_rng_profile profile);

#endif
