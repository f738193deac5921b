/* What a .npy file says of itself. */
#ifndef TDM_DATA_FORMATS_NPY_H
#define TDM_DATA_FORMATS_NPY_H

#include "runtime/data/formats/array.h"

/* Reads the header alone. `name` begins messages. */
tdm_status tdm__npy_peek(tdm_array *out, const tdm_host *host, const char *name, const char *path);

#endif
