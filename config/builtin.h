/* Networks by name: the layers of model.builtin, as YAML that a user could have written. */
#ifndef TDM_CONFIG_BUILTIN_H
#define TDM_CONFIG_BUILTIN_H

#include "config/table.h"

typedef enum tdm_builtin {
#define TDM_BUILTIN(name) TDM_BUILTIN_##name,
#include "config/builtins.def"
#undef TDM_BUILTIN
} tdm_builtin;

/* Prints the list of layers, with torchvision's names of parameters, in the order of its modules. */
void tdm__builtin_print(const tdm_model_head *model, tdm_text *out);

#endif
