/* What the formats share: their list, their memory, and the checks that every dataset goes through. */
#ifndef TDM_DATA_FORMATS_H
#define TDM_DATA_FORMATS_H

#include "runtime/data/data.h"
#include "runtime/data/transforms/transforms.h"

/* Files that are read whole into host memory are at most as large. */
#define TDM_DATA_MAX_BYTES ((size_t)4 << 30)
/* Plain files of an array that are larger stay on the disk, and rows are read from there when they are wanted. */
#define TDM_DATA_HELD_BYTES ((size_t)256 << 20)

/* Little-endian formats are copied without conversion. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tandem runs on little-endian machines");

#define TDM_FORMAT(key, name) extern const tdm_dataset_ops tdm__##name##_data;
#include <tandem/sys/formats.def>
#undef TDM_FORMAT

/* Makes an empty dataset of the format. */
tdm_status tdm__dataset_new(tdm_dataset **out, const tdm_host *host, const tdm_dataset_ops *ops);
/* Memory of the dataset: *out = `count * bytes` zeroed bytes, released at its close. At most TDM_DATASET_BLOCKS. */
tdm_status tdm__dataset_take(tdm_dataset *dataset, void *out, size_t count, size_t bytes, const char *what);

/* Reduces the dataset to spec->range, and of that to the part of spec->holdout. `source` names the data in messages. */
tdm_status tdm__dataset_take_part(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                                  const char *source);
/* Sets the shape of samples: to the model's input shape, if samples of shape `found` can be used as that; to `found` if
 * the model has no input shape. */
tdm_status tdm__dataset_take_shape(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                                   const tdm_shape *found, const char *source);
/* Sets the shape of samples that are pictures: bytes [channels, height, width] that are read as `shape` and go through
 * the steps of data.transform. */
tdm_status tdm__dataset_take_pictures(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                                      const tdm_shape *shape, const char *source);
/* Sets `resident_bytes`: a device may keep x of all samples if that is at most `most` bytes. For samples that are
 * drawn, `most` is what can be drawn in seconds. Call it after tdm__dataset_take_part. */
void tdm__dataset_set_resident(tdm_dataset *dataset, size_t most);
/* Sets the classes of the dataset. Fails if the model has fewer outputs than `classes`. */
tdm_status tdm__dataset_take_classes(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                                     int64_t classes, const char *source);

bool tdm__label_fits(const tdm_data_wanted *wanted, int64_t label);
/* The seed of formats that make their samples: spec->seed, or the job's. */
uint64_t tdm__data_seed(const tdm_data_spec *spec, const tdm_data_wanted *wanted);
/* *out is the number of elements of one sample. False if it overflows or a dimension is below 1. */
bool tdm__shape_elements(const tdm_shape *shape, size_t *out);

/* Can samples of shape `found` be used as `wanted`? Yes if only dimensions of 1 differ, or if one of them is flat. Any
 * other change of shape would mix up rows and columns. */
bool tdm__shape_fits(const tdm_shape *found, const tdm_shape *wanted);

enum { TDM_DIMS_TEXT = 160 };
/* Prints "[1, 28, 28]" into `out`. Returns `out`. */
const char *tdm__dims_print(char out[TDM_DIMS_TEXT], const tdm_shape *shape);

/* Which picture sample `row` of the file is, in the reader's epoch. */
tdm_picture_key tdm__sample_key(const tdm_sample_reader *reader, int64_t row);

#endif
