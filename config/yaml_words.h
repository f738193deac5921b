/* libyaml's errors, translated for users who do not know YAML's grammar. */
#ifndef TDM_CONFIG_YAML_WORDS_H
#define TDM_CONFIG_YAML_WORDS_H

#include <yaml.h>

#include "config/fault.h"

/* `problem`: where libyaml noticed the error. `context`: where the construct began that it was reading. */
void tdm__yaml_explain_error(const yaml_parser_t *parser, tdm_position problem, tdm_position context,
                             tdm_fault_list *faults);

/* True if the text is UTF-8 without NUL. Skips a byte order mark. Otherwise adds a fault that names the byte. */
bool tdm__yaml_check_encoding(tdm_yaml_text *text, tdm_fault_list *faults);

#endif
