/* Numbers for one step and one sample. */
#ifndef TDM_DATA_TRANSFORMS_DRAWS_H
#define TDM_DATA_TRANSFORMS_DRAWS_H

#include "runtime/base/random/philox.h"

typedef struct tdm_draws {
    uint64_t key;
    uint32_t counter[4]; /* block, position of the step, sample, epoch */
    uint32_t word[4];
    int used;
} tdm_draws;

static inline tdm_draws tdm__draws(uint64_t seed, int64_t epoch, int64_t sample, int position) {
    return (tdm_draws){
        .key = seed ^ UINT64_C(0x7069637475726573), /* not dropout's */
        .counter = {0, (uint32_t)position | (uint32_t)((uint64_t)sample >> 32) << 8, (uint32_t)sample, (uint32_t)epoch},
        .used = 4};
}

static inline uint32_t tdm__draw_word(tdm_draws *draws) {
    if (draws->used == 4) {
        tdm__philox_words(draws->word, draws->key, draws->counter);
        draws->counter[0]++;
        draws->used = 0;
    }
    return draws->word[draws->used++];
}

/* From `low` to below `high`. */
static inline double tdm__draw_between(tdm_draws *draws, double low, double high) {
    return low + (high - low) * ((double)tdm__draw_word(draws) * 0x1p-32);
}

/* From 0 to `count` - 1; `count` is below 2^32. */
static inline int64_t tdm__draw_below(tdm_draws *draws, int64_t count) {
    return (int64_t)((uint64_t)tdm__draw_word(draws) * (uint64_t)count >> 32);
}

#endif
