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

/* The smaller of two numbers of rows. 0 is no number: the other one is returned. */
static int64_t fewer(int64_t a, int64_t b) {
    return a > 0 && (b == 0 || a < b) ? a : b;
}

/* In a step of `rows`, which are dealt out in turn, or cut into chunks as DataParallel does. */
static int64_t fewest_of_step(const tdm_sampler *sampler, int64_t rows, int64_t parts, bool cut, bool together) {
    int64_t fewest = 0, all = 1, first;
    for (int part = 0; part < parts && all > 0; part++) {
        all = 0;
        for (int r = 0; r < sampler->replicas; r++) {
            const int64_t own =
                cut ? tdm__chunk(rows, sampler->replicas, r, &first) : tdm__sampler_rows_of(sampler, rows, r);
            const int64_t pass = tdm__chunk(own, (int)parts, part, &first);
            all += pass;
            if (!together) fewest = fewer(fewest, pass);
        }
        if (together) fewest = fewer(fewest, all);
    }
    return fewest;
}

int64_t tdm__sampler_fewest_rows(const tdm_sampler *sampler, int64_t per_device, int64_t parts, bool with_tail,
                                 bool together) {
    const int64_t samples = tdm__sampler_per_replica(sampler), last = ceil_div(samples, per_device) - 1;
    int64_t fewest = 0;
    for (int cut = 0; cut < 2; cut++) {
        const int64_t whole = tdm__sampler_step_rows(sampler, per_device, 0);
        if (samples >= per_device) fewest = fewer(fewest, fewest_of_step(sampler, whole, parts, cut, together));
        if (!with_tail || last < 0) continue;
        const int64_t tail = tdm__sampler_step_rows(sampler, per_device, last);
        fewest = fewer(fewest, fewest_of_step(sampler, tail, parts, cut, together));
    }
    return fewest;
}

int64_t tdm__chunk(int64_t rows, int pieces, int piece, int64_t *first) {
    int64_t size = ceil_div(rows, pieces);
    *first = size * piece < rows ? size * piece : rows;
    return rows - *first < size ? rows - *first : size;
}
