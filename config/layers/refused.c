/* What the engine refuses while the graph is made. */
#include <tandem/status.h>

#include "config/config_private.h"

tdm_status tdm__engine_fault(tdm_config *config, tdm_status status, tdm_position at, const char *key,
                             const char *hint) {
    if (status != TDM_E_CONFIG && status != TDM_E_UNSUPPORTED) return status;
    const tdm_error *error = tdm_error_last();
    if (error->line > 0 && at.text != NULL && at.text->order == 0) {
        at.line = error->line;
        at.column = error->column;
    }
    TDM_FAULT(config, SHAPE, at, key, hint, "%s", error->message);
    return TDM_OK;
}
