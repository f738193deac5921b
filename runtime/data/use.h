/* What a program wants of data, see tandem/data.h. */
#ifndef TDM_DATA_USE_H
#define TDM_DATA_USE_H

#include <tandem/data.h>

#include "runtime/data/formats.h"

/* `use` NULL: any samples with class labels. */
tdm_status tdm__data_use_take(const tdm_data_use *use, tdm_data_wanted *wanted);

#endif
