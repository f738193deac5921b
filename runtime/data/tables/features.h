/* The columns of a table that are inputs of the model, as the data trained on has them: their order, the numbers that
 * stand for categories, means and standard deviations. A checkpoint keeps them, so that every later table is read in
 * the same way. */
#ifndef TDM_DATA_TABLES_FEATURES_H
#define TDM_DATA_TABLES_FEATURES_H

#include <tandem/model.h>

#include "runtime/data/data.h"
#include "runtime/base/text/text.h"

/* Of names and categories together as JSON, since they must fit into the header of a checkpoint. */
enum { TDM_FEATURES_BYTES_MAX = 512 * 1024 };

typedef struct tdm_feature {
    const char *name;   /* NULL: the table has no names */
    double mean, stdev; /* a number becomes (number - mean) / stdev; 0 and 1: it stays */
    double fill;        /* what a missing number counts as; NaN: it is refused */
    tdm_classes values; /* of a category, sorted; of the target: the two names that are 0 and 1, or none */
} tdm_feature;

struct tdm_features {
    /* A sample is the numbers, then the categories, each in the order of the table trained on. A category is the index
     * of its value in `values`, plus 1 if has_unknown: then 0 is any other value. */
    int64_t numbers, categories;
    tdm_feature *item; /* numbers, then categories */
    bool has_unknown;
    tdm_feature target;
};

static inline float tdm__feature_standardized(const tdm_feature *feature, double value) {
    return (float)((value - feature->mean) / feature->stdev);
}
/* row.c: the sample x that the cells of one row are, in the order of the features; NULL is a gap. TDM_E_DATA names the
 * column. */
tdm_status tdm__features_row(const tdm_features *features, const char *const *cell, float *x);
/* What programs are told of the target; NULL: it is no table's. */
tdm_target tdm__features_target(const tdm_features *features);

/* As JSON, for checkpoints. */
void tdm__features_print(const tdm_features *features, tdm_text *out);
/* Reads it again; everything is in the zone. TDM_E_CHECKPOINT if tdm__features_print cannot have written it. */
tdm_status tdm__features_parse(tdm_features *out, tdm_zone *zone, const char *text);
/* For people: a line for the numbers, one for each category, one for the target. */
void tdm__features_report(const tdm_features *features, tdm_text *out);
/* For people: a line for each column of the dataset, a table, that has categories which the data trained on does not
 * have. Its memory is the zone's. */
tdm_status tdm__unseen_report(const tdm_dataset *dataset, tdm_zone *zone, tdm_text *out);

#endif
