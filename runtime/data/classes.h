/* Names of classes: of folders, or of labels in a table. */
#ifndef TDM_DATA_CLASSES_H
#define TDM_DATA_CLASSES_H

#include "runtime/base/text/text.h"
#include "runtime/data/formats.h"

/* Of the names together, since they must fit into the header of a checkpoint. */
enum { TDM_CLASSES_BYTES_MAX = 256 * 1024 };

/* The number of the class; -1: there is none of that name. */
int64_t tdm__classes_find(const tdm_classes *classes, const char *name);
/* Turns labels as texts into numbers: labels[i] for the text at text + offset[i]. If all are whole numbers, these are
 * the labels. Otherwise they are names: their classes are wanted->class_names, or, if it has none, all different names,
 * sorted, which become the dataset's. TDM_E_DATA names a text that is no class; `source` begins the message. */
tdm_status tdm__classes_from_texts(tdm_dataset *dataset, const tdm_data_wanted *wanted, const char *source,
                                   const char *text, const size_t *offset, int64_t count, int64_t *labels);
/* The same for labels that are names even if they look like numbers, as those of folders. */
tdm_status tdm__classes_from_names(tdm_dataset *dataset, const tdm_data_wanted *wanted, const char *source,
                                   const char *text, const size_t *offset, int64_t count, int64_t *labels);
/* As JSON, for checkpoints: ["cat", "dog"]. */
void tdm__classes_print(const tdm_classes *classes, tdm_text *out);
/* Reads it again; names are in the zone. TDM_E_CHECKPOINT if it is no such list: sorted, each name once. */
tdm_status tdm__classes_parse(tdm_classes *out, tdm_zone *zone, const char *text);
/* Makes copies of these names, which are sorted, the dataset's. `source` begins messages. */
tdm_status tdm__classes_take(tdm_dataset *dataset, const char *source, const char *const *name, int64_t count);

#endif
