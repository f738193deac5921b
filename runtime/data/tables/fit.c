/* What a table teaches: categories, means, standard deviations; and what becomes of its cells by it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/classes.h"
#include "runtime/data/tables/build.h"

static int64_t row_of(const tdm_table_build *b, int64_t index) {
    return tdm__dataset_row(&b->to->table.base, index);
}

static int64_t count_of(const tdm_table_build *b) {
    return b->to->table.base.count;
}

static int64_t width_of(const tdm_table_build *b) {
    return b->numbers + b->categories;
}

/* ---- learning ---- */

/* Two passes in double over the samples in their order. A gap is NaN, and counts in neither. Returns how many are
 * none. */
static int64_t learn_number(const tdm_table_build *b, const float *from, int64_t stride, tdm_feature *out) {
    const int64_t count = count_of(b);
    double sum = 0.0, squares = 0.0;
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        const float value = from[row_of(b, i) * stride];
        if (isnan(value)) continue;
        sum += (double)value;
        found++;
    }
    const double mean = found > 0 ? sum / (double)found : 0.0;
    for (int64_t i = 0; i < count; i++) {
        const float value = from[row_of(b, i) * stride];
        if (!isnan(value)) squares += ((double)value - mean) * ((double)value - mean);
    }
    const double stdev = found > 0 ? sqrt(squares / (double)found) : 0.0;
    out->mean = mean;
    out->stdev = stdev > 0.0 ? stdev : 1.0; /* a column with one value becomes 0 */
    return found;
}

static tdm_status fail_gaps(const tdm_table_build *b, int64_t column, const char *lacks) {
    char number[24];
    const char *name = b->column[column].name;
    snprintf(number, sizeof(number), "%lld", (long long)column);
    TDM_FAIL_TABLE(b,
                   "line %lld, column %lld: all cells of this column that are trained on are gaps, so it has %s; write "
                   "`ignore: [\"%.64s\"]`",
                   (long long)b->first_line, (long long)column + 1, lacks, name != NULL ? name : number);
}

static const char *category_at(const tdm_table_build *b, int64_t row, int64_t which) {
    return b->texts.data + b->category_at[row * b->categories + which];
}

/* The different values of a category, sorted. An empty cell is a gap, and no value. */
static tdm_status learn_category(tdm_table_build *b, int64_t which, tdm_feature *out, size_t *bytes) {
    const int64_t count = count_of(b);
    const char **text, **value;
    int64_t different = 0, given = 0;
    TDM_TRY(tdm__new(b->zone.host, &text, (size_t)count, sizeof(*text), "categories"));
    for (int64_t i = 0; i < count; i++) {
        const char *at = category_at(b, row_of(b, i), which);
        if (at[0] != '\0') text[given++] = at;
    }
    qsort(text, (size_t)given, sizeof(*text), tdm__text_order);
    for (int64_t i = 0; i < given; i++) {
        if (different > 0 && strcmp(text[different - 1], text[i]) == 0) continue;
        *bytes += strlen(text[i]) + 3; /* quotes and a comma */
        text[different++] = text[i];
    }
    tdm_status status = tdm__zone_new(&b->to->zone, &value, (size_t)different, sizeof(*value));
    for (int64_t i = 0; i < different && status == TDM_OK; i++)
        status = tdm__zone_text(&b->to->zone, &value[i], text[i]);
    tdm__delete(b->zone.host, text);
    out->values = (tdm_classes){.count = different, .name = value};
    return status;
}

static tdm_status take_name(tdm_table_build *b, int64_t column, tdm_feature *out, size_t *bytes) {
    if (b->column[column].name == NULL) return TDM_OK;
    *bytes += strlen(b->column[column].name);
    return tdm__zone_text(&b->to->zone, &out->name, b->column[column].name);
}

enum { FEATURE_BYTES = 96 }; /* of a feature as JSON, without its texts */

static tdm_status learn_input(tdm_table_build *b, int64_t column, size_t *bytes) {
    const tdm_table_column *from = &b->column[column];
    tdm_feature *feature = &b->to->features.item[from->item];
    char text[TDM_COLUMN_TEXT];
    *bytes += FEATURE_BYTES;
    TDM_TRY(take_name(b, column, feature, bytes));
    if (from->role == TDM_ROLE_CATEGORY) {
        const int64_t which = from->item - b->numbers;
        TDM_TRY(learn_category(b, which, feature, bytes));
        if (feature->values.count == 0) return fail_gaps(b, column, "no category");
        TDM_TRY(tdm__table_check_blanks(b, column, &feature->values, b->category_at + which, b->categories));
    } else {
        int64_t found = 0;
        if (b->spec->standardize || b->spec->missing == TDM_MISSING_MEAN)
            found = learn_number(b, b->x + from->item, width_of(b), feature);
        if (b->spec->missing == TDM_MISSING_MEAN && found == 0) return fail_gaps(b, column, "no mean");
        if (b->spec->missing == TDM_MISSING_MEAN) feature->fill = feature->mean;
        if (b->spec->missing == TDM_MISSING_ZERO) feature->fill = 0.0;
        if (!b->spec->standardize) feature->mean = 0.0, feature->stdev = 1.0;
    }
    if (*bytes > TDM_FEATURES_BYTES_MAX)
        TDM_FAIL_TABLE(b,
                       "the names and categories up to column %s take more than %d bytes, which a checkpoint keeps; "
                       "put columns whose values are all different into `ignore`",
                       tdm__column_print(text, b, column), TDM_FEATURES_BYTES_MAX);
    return TDM_OK;
}

static tdm_status learn(tdm_table_build *b) {
    tdm_features *features = &b->to->features;
    size_t bytes = 0;
    *features = (tdm_features){.numbers = b->numbers,
                               .categories = b->categories,
                               .has_unknown = b->categories > 0 && b->spec->unseen == TDM_UNSEEN_UNKNOWN,
                               .target = {.stdev = 1.0, .fill = NAN, .values = features->target.values}};
    TDM_TRY(tdm__zone_new(&b->to->zone, &features->item, (size_t)width_of(b), sizeof(*features->item)));
    for (int64_t i = 0; i < width_of(b); i++) features->item[i] = (tdm_feature){.stdev = 1.0, .fill = NAN};
    for (int64_t i = 0; i < b->columns; i++) {
        if (b->column[i].role == TDM_ROLE_NUMBER || b->column[i].role == TDM_ROLE_CATEGORY)
            TDM_TRY(learn_input(b, i, &bytes));
    }
    TDM_TRY(take_name(b, b->target, &features->target, &bytes));
    if (b->value != NULL && b->spec->standardize_target && features->target.values.count == 0)
        learn_number(b, b->value, 1, &features->target);
    return TDM_OK;
}

/* ---- using ---- */

static bool stays(const tdm_feature *feature) {
    return feature->mean == 0.0 && feature->stdev == 1.0 && isnan(feature->fill);
}

static void use_number(const tdm_table_build *b, const tdm_feature *feature, int64_t item) {
    const int64_t count = count_of(b), width = width_of(b);
    if (stays(feature)) return;
    for (int64_t i = 0; i < count; i++) {
        float *at = &b->x[row_of(b, i) * width + item];
        *at = tdm__feature_standardized(feature, isnan(*at) ? feature->fill : (double)*at);
    }
}

static tdm_status use_category(tdm_table_build *b, const tdm_feature *feature, int64_t column) {
    const int64_t count = count_of(b), which = b->column[column].item - b->numbers;
    const bool has_unknown = b->to->features.has_unknown;
    char text[TDM_COLUMN_TEXT];
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = row_of(b, i);
        const char *value = category_at(b, row, which);
        const int64_t at = value[0] != '\0' ? tdm__classes_find(&feature->values, value) : -1;
        if (at < 0 && !has_unknown)
            TDM_FAIL_TABLE(b, "line %lld, column %s: %s%.64s%s; write `unseen: unknown` to give it a number of its own",
                           (long long)b->line[row], tdm__column_print(text, b, column),
                           value[0] != '\0' ? "the category '" : "",
                           value[0] != '\0' ? value : "the category is missing",
                           value[0] != '\0' ? "' is not in the data trained on" : "");
        b->x[row * width_of(b) + b->column[column].item] = (float)(at + has_unknown);
    }
    return TDM_OK;
}

tdm_status tdm__table_fit(tdm_table_build *b) {
    tdm_features *features = &b->to->features;
    if (b->known != NULL)
        *features = *b->known;
    else
        TDM_TRY(learn(b));
    for (int64_t i = 0; i < b->columns; i++) {
        const tdm_feature *feature = &features->item[b->column[i].item];
        if (b->column[i].role == TDM_ROLE_NUMBER) use_number(b, feature, b->column[i].item);
        if (b->column[i].role == TDM_ROLE_CATEGORY) TDM_TRY(use_category(b, feature, i));
    }
    for (int64_t i = 0; b->value != NULL && b->target >= 0 && i < count_of(b); i++) {
        float *at = &b->value[row_of(b, i)];
        *at = tdm__feature_standardized(&features->target, (double)*at);
    }
    b->to->table.base.features = features;
    return b->known != NULL && features->has_unknown ? tdm__table_find_unseen(b) : TDM_OK;
}

tdm_status tdm__table_check_vocabularies(const tdm_table_build *b, const tdm_data_wanted *wanted) {
    const tdm_features *features = &b->to->features;
    for (int64_t i = 0; i < b->columns; i++) {
        const int64_t item = b->column[i].item;
        if (b->column[i].role != TDM_ROLE_CATEGORY) continue;
        const int64_t needed = features->item[item].values.count + features->has_unknown;
        for (int k = 0; k < wanted->index_count; k++) {
            const tdm_data_index *index = &wanted->index[k];
            char text[TDM_COLUMN_TEXT];
            if (item < index->first || item >= index->first + index->count || needed <= index->below) continue;
            TDM_FAIL_TABLE(b,
                           "column %s has %lld categories%s, and %s has a vocabulary of %lld; write vocabulary: %lld",
                           tdm__column_print(text, b, i), (long long)needed,
                           features->has_unknown ? " with that for unknown ones" : "", index->layer,
                           (long long)index->below, (long long)needed);
        }
    }
    return TDM_OK;
}
