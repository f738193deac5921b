/* What a program wants of data, see tandem/data.h. */
#ifndef TDM_DATA_WANTED_H
#define TDM_DATA_WANTED_H

#include <tandem/data.h>

#include "runtime/data/formats.h"

/* `use` NULL: any samples with class labels. */
tdm_status tdm__data_wanted_from(const tdm_data_use *use, tdm_data_wanted *wanted);

#endif
