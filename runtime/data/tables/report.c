/* Features of a table for people: what `tandem data check` prints. */
#include "runtime/data/tables/features.h"

enum { COLUMNS_SHOWN = 40, VALUES_SHOWN = 8 };

static void put_name(const tdm_feature *feature, int64_t place, tdm_text *out) {
    if (feature->name != NULL)
        tdm__text_shown(out, feature->name);
    else
        tdm__text_printf(out, "number %lld", (long long)place);
}

static void put_number(const tdm_feature *feature, int64_t place, tdm_text *out) {
    put_name(feature, place, out);
    if (feature->mean != 0.0 || feature->stdev != 1.0)
        tdm__text_printf(out, " (mean %.4g, std %.4g)", feature->mean, feature->stdev);
}

static void put_category(const tdm_features *features, int64_t place, tdm_text *out) {
    const tdm_feature *feature = &features->item[place];
    const tdm_classes *values = &feature->values;
    tdm__text_printf(out, "category    %lld: ", (long long)place);
    put_name(feature, place, out);
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
