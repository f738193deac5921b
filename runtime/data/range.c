/* Parts of a dataset: `range`, and the split into samples to train on and samples that are held out. */
#include "runtime/base/status.h"
#include "runtime/data/formats.h"

static tdm_status take_range(tdm_dataset *dataset, const tdm_data_spec *spec, const char *source) {
    dataset->first = 0;
    if (spec->range.count == 0) return TDM_OK;
    if (spec->range.count != 2)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA, "data range must have two numbers, [first, end), got %d",
                    spec->range.count);
    int64_t first = spec->range.item[0], end = spec->range.item[1];
    if (first < 0 || first >= end)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA, "data range [%lld, %lld) must have 0 <= first < end", (long long)first,
                    (long long)end);
    if (end > dataset->count)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA, "data range [%lld, %lld) reaches beyond the %lld samples of %s",
                    (long long)first, (long long)end, (long long)dataset->count, source);
    dataset->first = first;
    dataset->count = end - first;
    return TDM_OK;
}

/* torch.utils.data.random_split(samples, [1 - h, h], torch.Generator().manual_seed(seed)): the parts are rounded down,
 * and the sample that may be left goes to the first. */
static tdm_status hold_out(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                           const char *source) {
    const double all = (double)dataset->count;
    const int64_t held = (int64_t)(all * spec->holdout), kept = (int64_t)(all * (1.0 - spec->holdout));
    const int64_t trained = kept + (dataset->count - kept - held);
    const bool is_held = spec->split == TDM_SPLIT_TEST || (spec->split == TDM_SPLIT_AUTO && wanted->evaluates);
    int64_t *rows;
    tdm_rng rng; /* integers only: the profile does not matter */
    if (dataset->count >= TDM_RANDPERM_LIMIT)
        TDM_FAIL_AT(&spec->origin, TDM_E_UNSUPPORTED, "data holdout needs fewer than %d samples, found %lld; use range",
                    TDM_RANDPERM_LIMIT, (long long)dataset->count);
    if (held < 1 || trained < 1)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA,
                    "%s: holdout %g of %lld samples leaves %lld to train on and %lld to test", source, spec->holdout,
                    (long long)dataset->count, (long long)trained, (long long)held);
    TDM_TRY(tdm__dataset_take(dataset, &rows, (size_t)dataset->count, sizeof(*rows), "order of samples"));
    tdm__rng_seed(&rng, tdm__data_seed(spec, wanted), TDM_RNG_TORCH_AVX2);
    tdm__rng_randperm(&rng, rows, (size_t)dataset->count);
    for (int64_t i = 0; i < dataset->count; i++) rows[i] += dataset->first;
    dataset->rows = is_held ? rows + trained : rows;
    dataset->count = is_held ? held : trained;
    return TDM_OK;
}

tdm_status tdm__dataset_take_part(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                                  const char *source) {
    TDM_TRY(take_range(dataset, spec, source));
    dataset->range_count = dataset->count;
    if (spec->holdout == 0.0) return TDM_OK;
    if (!(spec->holdout > 0.0 && spec->holdout < 1.0))
        TDM_FAIL_AT(&spec->origin, TDM_E_CONFIG, "data holdout must be above 0 and below 1, got %g", spec->holdout);
    return hold_out(dataset, spec, wanted, source);
}
