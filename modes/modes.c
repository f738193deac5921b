/* The list of modes, in the order of tdm_mode_kind. */
#include "runtime/exec/mode.h"

#define TDM_MODE(name) extern const tdm_mode_ops tdm_mode_##name;
#include "modes/modes.def"
#undef TDM_MODE

const tdm_mode_ops *const tdm_builtin_modes[] = {
#define TDM_MODE(name) &tdm_mode_##name,
#include "modes/modes.def"
#undef TDM_MODE
    NULL,
};
