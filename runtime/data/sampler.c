/* The order of samples: torch.utils.data.DistributedSampler, and DataParallel's cut of a batch. */
#include "runtime/data/data.h"

static int64_t ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

int64_t tdm__sampler_per_replica(const tdm_sampler *sampler) {
    if (sampler->drop_last) return sampler->count / sampler->replicas;
    return ceil_div(sampler->count, sampler->replicas);
}

int64_t tdm__sampler_room(const tdm_sampler *sampler) {
    int64_t total = tdm__sampler_per_replica(sampler) * sampler->replicas;
    return total > sampler->count ? total : sampler->count;
}

void tdm__sampler_order(const tdm_sampler *sampler, int64_t epoch, int64_t *order) {
    int64_t total = tdm__sampler_per_replica(sampler) * sampler->replicas;
    if (sampler->shuffle) {
        tdm_rng rng; /* integers only: the profile does not matter */
        tdm__rng_seed(&rng, (uint64_t)sampler->seed + (uint64_t)epoch, TDM_RNG_TORCH_AVX2);
        tdm__rng_randperm(&rng, order, (size_t)sampler->count);
    } else {
        for (int64_t i = 0; i < sampler->count; i++) order[i] = i;
    }
    for (int64_t i = sampler->count; i < total; i++) order[i] = order[i - sampler->count];
}

/* The size of the last chunk that is not empty, when tdm__chunk cuts `rows` rows. */
static int64_t last_chunk(int64_t rows, int64_t parts) {
    int64_t size = ceil_div(rows, parts);
    return size == 0 || rows % size == 0 ? size : rows % size;
}

int64_t tdm__sampler_fewest_rows(const tdm_sampler *sampler, int64_t per_device, int64_t parts, bool with_tail) {
    int64_t samples = tdm__sampler_per_replica(sampler);
    int64_t full = samples >= per_device ? last_chunk(per_device, parts) : 0;
    int64_t tail = with_tail ? last_chunk(samples % per_device, parts) : 0;
    return tail > 0 && (full == 0 || tail < full) ? tail : full;
}

int64_t tdm__chunk(int64_t rows, int parts, int part, int64_t *first) {
    int64_t size = ceil_div(rows, parts);
    *first = size * part < rows ? size * part : rows;
    return rows - *first < size ? rows - *first : size;
}
