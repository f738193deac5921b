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

int64_t tdm__sampler_step_rows(const tdm_sampler *sampler, int64_t per_device, int64_t step) {
    const int64_t replicas = sampler->replicas;
    const int64_t total =
        sampler->joins && !sampler->drop_last ? sampler->count : tdm__sampler_per_replica(sampler) * replicas;
    const int64_t left = total - step * per_device * replicas;
    return left < per_device * replicas ? left : per_device * replicas;
}

int64_t tdm__sampler_rows_of(const tdm_sampler *sampler, int64_t rows, int replica) {
    return rows > replica ? ceil_div(rows - replica, sampler->replicas) : 0;
}

/* The size of the last chunk that is not empty, when tdm__chunk cuts `rows` rows. */
static int64_t last_chunk(int64_t rows, int64_t parts) {
    int64_t size = ceil_div(rows, parts);
    return size == 0 || rows % size == 0 ? size : rows % size;
}

/* The lesser of two numbers of rows, of which 0 is none. */
static int64_t fewer(int64_t a, int64_t b) {
    return a > 0 && (b == 0 || a < b) ? a : b;
}

/* Of the last, shorter batch; without padding replicas have different numbers of its rows, dealt out or cut. */
static int64_t fewest_of_tail(const tdm_sampler *sampler, int64_t per_device, int64_t parts) {
    const int64_t samples = tdm__sampler_per_replica(sampler), replicas = sampler->replicas;
    const int64_t rows = tdm__sampler_step_rows(sampler, per_device, samples / per_device);
    if (!sampler->joins || sampler->drop_last) return last_chunk(samples % per_device, parts);
    int64_t fewest = fewer(last_chunk(rows / replicas, parts), last_chunk(ceil_div(rows, replicas), parts));
    return fewer(fewest, last_chunk(last_chunk(rows, replicas), parts));
}

int64_t tdm__sampler_fewest_rows(const tdm_sampler *sampler, int64_t per_device, int64_t parts, bool with_tail) {
    const int64_t samples = tdm__sampler_per_replica(sampler);
    const int64_t full = samples >= per_device ? last_chunk(per_device, parts) : 0;
    return with_tail ? fewer(fewest_of_tail(sampler, per_device, parts), full) : full;
}

int64_t tdm__chunk(int64_t rows, int parts, int part, int64_t *first) {
    int64_t size = ceil_div(rows, parts);
    *first = size * part < rows ? size * part : rows;
    return rows - *first < size ? rows - *first : size;
}
