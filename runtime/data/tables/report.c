/* What `tandem data check` prints of the features of a table. */
#include "runtime/base/status.h"
#include "runtime/data/tables/features.h"

enum { COLUMNS_SHOWN = 40, VALUES_SHOWN = 8 };

static void put_name(const tdm_feature *feature, int64_t item, tdm_text *out) {
    if (feature->name != NULL)
        tdm__text_shown(out, feature->name);
    else
        tdm__text_printf(out, "number %lld", (long long)item);
}

static void put_number(const tdm_feature *feature, int64_t item, tdm_text *out) {
    put_name(feature, item, out);
    if (feature->mean != 0.0 || feature->stdev != 1.0)
        tdm__text_printf(out, " (mean %.4g, std %.4g)", feature->mean, feature->stdev);
}

static void put_category(const tdm_features *features, int64_t item, tdm_text *out) {
    const tdm_feature *feature = &features->item[item];
    const tdm_classes *values = &feature->values;
    tdm__text_printf(out, "category    %lld: ", (long long)item);
    put_name(feature, item, out);
    tdm__text_printf(out, ", vocabulary %lld: ", (long long)(values->count + features->has_unknown));
    if (features->has_unknown) tdm__text_puts(out, "any other, ");
    for (int64_t i = 0; i < values->count && i < VALUES_SHOWN; i++) {
        if (i > 0) tdm__text_puts(out, ", ");
        tdm__text_shown(out, values->name[i]);
    }
    if (values->count > VALUES_SHOWN)
        tdm__text_printf(out, ", and %lld more", (long long)(values->count - VALUES_SHOWN));
    tdm__text_puts(out, "\n");
}

void tdm__features_report(const tdm_features *features, tdm_text *out) {
    const int64_t most = features->numbers < COLUMNS_SHOWN ? features->numbers : COLUMNS_SHOWN;
    const int64_t end = features->numbers + features->categories;
    if (features->numbers > 0) tdm__text_printf(out, "numbers     0 to %lld: ", (long long)features->numbers - 1);
    for (int64_t i = 0; i < most; i++) {
        if (i > 0) tdm__text_puts(out, ", ");
        put_number(&features->item[i], i, out);
    }
    if (features->numbers > most) tdm__text_printf(out, ", and %lld more", (long long)(features->numbers - most));
    if (features->numbers > 0) tdm__text_puts(out, "\n");
    for (int64_t i = features->numbers; i < end && i < features->numbers + COLUMNS_SHOWN; i++)
        put_category(features, i, out);
    tdm__text_puts(out, "target      ");
    if (features->target.name != NULL)
        put_number(&features->target, 0, out);
    else
        tdm__text_puts(out, "the column of the label");
    if (features->target.values.count == 2) {
        tdm__text_puts(out, ": ");
        tdm__text_shown(out, features->target.values.name[0]);
        tdm__text_puts(out, " is 0, ");
        tdm__text_shown(out, features->target.values.name[1]);
        tdm__text_puts(out, " is 1");
    }
    tdm__text_puts(out, "\n");
}

tdm_status tdm__unseen_report(const tdm_dataset *dataset, tdm_zone *zone, tdm_text *out) {
    const tdm_features *features = dataset->features;
    const tdm_unseen_cell **first;
    int64_t *rows, shown = 0;
    if (dataset->unseen_count == 0) return TDM_OK;
    const int64_t begin = features->numbers, end = begin + features->categories;
    TDM_TRY(tdm__zone_new(zone, &rows, (size_t)end, sizeof(*rows)));
    TDM_TRY(tdm__zone_new(zone, &first, (size_t)end, sizeof(*first)));
    for (int64_t i = 0; i < dataset->unseen_count; i++) {
        const tdm_unseen_cell *cell = &dataset->unseen[i];
        if (rows[cell->item]++ == 0) first[cell->item] = cell;
    }
    for (int64_t i = begin; i < end; i++) {
        if (rows[i] == 0 || ++shown > COLUMNS_SHOWN) continue;
        tdm__text_puts(out, "unseen      ");
        put_name(&features->item[i], i, out);
        tdm__text_printf(out, ": %lld row%s with categories that data.train does not have; the first is '",
                         (long long)rows[i], rows[i] == 1 ? "" : "s");
        tdm__text_shown(out, first[i]->value);
        tdm__text_printf(out, "', sample %lld\n", (long long)first[i]->index);
    }
    if (shown > COLUMNS_SHOWN)
        tdm__text_printf(out, "unseen      in %lld more columns\n", (long long)(shown - COLUMNS_SHOWN));
    return TDM_OK;
}
