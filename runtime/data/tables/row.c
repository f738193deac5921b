/* One row of a table as a sample, by the features of the table trained on. */
#include <math.h>
#include <stdio.h>

#include "runtime/base/status.h"
#include "runtime/data/classes.h"
#include "runtime/data/tables/build.h"

/* "'rooms'", or the number of a column without a name. */
static const char *print_column(char out[TDM_COLUMN_TEXT], const tdm_features *features, int64_t index) {
    if (features->item[index].name != NULL)
        snprintf(out, TDM_COLUMN_TEXT, "'%.64s'", features->item[index].name);
    else
        snprintf(out, TDM_COLUMN_TEXT, "%lld", (long long)index);
    return out;
}

static tdm_status read_number(const tdm_features *features, int64_t index, const char *cell, float *to) {
    const tdm_feature *feature = &features->item[index];
    const bool is_gap = tdm__cell_is_gap(cell, strlen(cell));
    char column[TDM_COLUMN_TEXT];
    float number = 0;
    if (is_gap && isnan(feature->fill))
        TDM_FAIL(TDM_E_DATA, "column %s: the number is missing, and the data trained on says nothing to fill gaps with",
                 print_column(column, features, index));
    if (!is_gap && !tdm__cell_number(cell, &number))
        TDM_FAIL(TDM_E_DATA, "column %s: expected a number, found '%.64s'", print_column(column, features, index),
                 cell);
    *to = tdm__feature_standardized(feature, is_gap ? feature->fill : (double)number);
    return TDM_OK;
}

static tdm_status read_category(const tdm_features *features, int64_t index, const char *cell, float *to) {
    const int64_t at = cell[0] != '\0' ? tdm__classes_find(&features->item[index].values, cell) : -1;
    char column[TDM_COLUMN_TEXT];
    if (at < 0 && !features->has_unknown)
        TDM_FAIL(TDM_E_DATA, "column %s: the category '%.64s' is not in the data trained on",
                 print_column(column, features, index), cell);
    *to = (float)(at + features->has_unknown);
    return TDM_OK;
}

tdm_status tdm__features_row(const tdm_features *features, const char *const *cell, float *x) {
    for (int64_t i = 0; i < features->numbers + features->categories; i++) {
        const char *text = cell[i] != NULL ? cell[i] : "";
        TDM_TRY(i < features->numbers ? read_number(features, i, text, &x[i])
                                      : read_category(features, i, text, &x[i]));
    }
    return TDM_OK;
}
