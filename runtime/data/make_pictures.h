/* Small folders of pictures, for trials. */
#ifndef TDM_DATA_MAKE_PICTURES_H
#define TDM_DATA_MAKE_PICTURES_H

#include "runtime/data/data.h"

/* PNG files of 32 x 32 pixels, in sub-folders named zero to nine. No file is overwritten. */
tdm_status tdm__make_pictures(const tdm_host *host, const char *folder, int64_t samples, int64_t seed);

#endif
