/* Pictures that a program or the command wants predictions for: read, transformed as in evaluation, turned into what
 * the model takes. One thread at a time. */
#ifndef TDM_DATA_PICTURES_PICTURE_INPUT_H
#define TDM_DATA_PICTURES_PICTURE_INPUT_H

#include "runtime/data/data.h"

typedef struct tdm_picture_input tdm_picture_input;

/* `shape` is that of a sample. It and `spec` are borrowed. TDM_E_USAGE if the model takes no pictures, or more inputs. */
tdm_status tdm__picture_input_open(tdm_picture_input **out, const tdm_host *host, const tdm_transform_spec *spec,
                                   const tdm_shape *shape, const tdm_data_inputs *inputs, const char *module_path);
void tdm__picture_input_close(tdm_picture_input *input); /* NULL is fine */
/* x has a number for each element of `shape`. */
tdm_status tdm__picture_input_decode(tdm_picture_input *input, const void *bytes, size_t count, float *x);
/* The same from a file. TDM_E_DATA names it. */
tdm_status tdm__picture_input_read(tdm_picture_input *input, const char *path, float *x);

#endif
