/* What check.c and the files of this folder share. */
#ifndef TDM_CONFIG_CHECKS_H
#define TDM_CONFIG_CHECKS_H

#include "config/config_private.h"

bool tdm__check_is_written(const tdm_config *config, const char *key);
/* "line 12 says `device_ids: [0, 1]`" ("line 12 has KEY" if there are overrides), or "KEY has its default". */
const char *tdm__check_quote(tdm_config *config, const char *key);
/* Files of arrays, one or one for each input; formats that a model with several inputs cannot take. */
void tdm__check_arrays(tdm_config *config, tdm_data_spec *spec, const char *section);
/* The columns of tables: data.eval has those of data.train. */
void tdm__check_tables(tdm_config *config);

#endif
