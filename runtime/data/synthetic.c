/* Random samples, the very numbers of
 *     g = torch.Generator().manual_seed(seed)
 *     x = torch.randn(samples, *input, generator=g)
 *     y = torch.randint(0, classes, (samples,), generator=g)  or  torch.randn(samples, width, generator=g) */
#include "runtime/base/status.h"
#include "runtime/data/table.h"

static tdm_status check_size(const tdm_data_spec *spec, size_t elements, size_t *count) {
    size_t bytes;
    if (spec->samples < 1)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA, "synthetic: samples must be at least 1, got %lld",
                    (long long)spec->samples);
    if (!tdm__mul_fits((size_t)spec->samples, elements, count) || !tdm__mul_fits(*count, sizeof(float), &bytes) ||
        bytes > TDM_DATA_MAX_BYTES)
        TDM_FAIL_AT(
            &spec->origin, TDM_E_DATA,
            "synthetic: %lld samples of %zu floats are more than the %zu bytes that are kept in memory; at most "
            "%zu samples fit",
            (long long)spec->samples, elements, TDM_DATA_MAX_BYTES, TDM_DATA_MAX_BYTES / sizeof(float) / elements);
    return TDM_OK;
}

static tdm_status draw_floats(tdm_table *table, const tdm_data_spec *spec, tdm_rng *rng, size_t width, void **block,
                              tdm_column *column) {
    size_t count;
    float *numbers;
    TDM_TRY(check_size(spec, width, &count));
    TDM_TRY(tdm__new(table->base.host, &numbers, count, sizeof(float), "synthetic samples"));
    *block = numbers;
    tdm__rng_normal(rng, numbers, count, 0.0, 1.0);
    *column = (tdm_column){
        .first = (const unsigned char *)numbers, .stride = width * sizeof(float), .width = width, .cell = TDM_CELL_F32};
    return TDM_OK;
}

static tdm_status draw_targets(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                               tdm_rng *rng) {
    if (wanted->target_kind == TDM_TARGET_VALUES) {
        if (wanted->target_width < 1)
            TDM_FAIL(TDM_E_USAGE, "synthetic: target width must be at least 1, got %lld",
                     (long long)wanted->target_width);
        TDM_TRY(draw_floats(table, spec, rng, (size_t)wanted->target_width, &table->y_block, &table->values));
        table->base.target_kind = TDM_TARGET_VALUES;
        table->base.target_width = wanted->target_width;
        return TDM_OK;
    }
    int64_t classes = spec->classes == TDM_INT_NULL ? wanted->classes : spec->classes;
    if (classes < 1)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA, "synthetic: classes must be at least 1, got %lld", (long long)classes);
    TDM_TRY(tdm__dataset_take_classes(&table->base, spec, wanted, classes, "synthetic"));
    TDM_TRY(tdm__table_new_labels(table));
    tdm__rng_randint(rng, table->labels, (size_t)table->base.count, 0, classes);
    return TDM_OK;
}

tdm_status tdm__synthetic_open(tdm_dataset **out, const tdm_host *host, const tdm_data_spec *spec,
                               const tdm_data_wanted *wanted) {
    tdm_status status = TDM_OK;
    tdm_table *table;
    size_t elements;
    tdm_rng rng;
    if (!tdm__shape_elements(&wanted->input, &elements))
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA,
                    "synthetic: has no shape of its own and wants the model's (model.input)");
    tdm__rng_seed(&rng, tdm__data_seed(spec, wanted), (tdm_rng_profile)wanted->rng_profile);
    TDM_TRY(tdm__table_new(&table, host));
    table->base.count = spec->samples;
    table->base.x_shape = wanted->input;
    TDM_TRY_DONE(draw_floats(table, spec, &rng, elements, &table->x_block, &table->x));
    TDM_TRY_DONE(draw_targets(table, spec, wanted, &rng));
    TDM_TRY_DONE(tdm__table_finish(table, spec, wanted, "synthetic"));
    *out = &table->base;
done:
    if (status != TDM_OK) tdm__dataset_close(&table->base);
    return status;
}
