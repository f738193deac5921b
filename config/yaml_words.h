/* What libyaml says, in words for people who do not know YAML's grammar. */
#ifndef TDM_CONFIG_YAML_WORDS_H
#define TDM_CONFIG_YAML_WORDS_H

#include <yaml.h>

#include "config/fault.h"

/* `problem` and `context`: where libyaml noticed, and where the thing began that it was reading. */
void tdm__yaml_explain_error(const yaml_parser_t *parser, tdm_place problem, tdm_place context, tdm_fault_list *faults);

/* Is this UTF-8 text without NUL? Skips a byte order mark. If not, adds a fault that names the byte. */
bool tdm__yaml_check_encoding(tdm_yaml_text *text, tdm_fault_list *faults);

#endif
