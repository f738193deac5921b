#include "config/config_private.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

tdm_status tdm_config_remarks(const tdm_config *config, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_remarks: out is NULL");
    *out = NULL;
    if (config == NULL || !config->is_good)
        TDM_FAIL(TDM_E_USAGE, "tdm_config_remarks: the config has not passed tdm_config_check");
    const tdm_job *job = tdm_config_job(config);
    tdm_text text;
    char line[TDM_REMARK];
    tdm__text_init(&text, tdm_host_default());
    if (tdm__remark_compression(job, line)) tdm__text_printf(&text, "%s\n", line);
    if (tdm__remark_statistics(job, tdm_config_graph(config), line)) tdm__text_printf(&text, "%s\n", line);
    return tdm__text_take_public(&text, out);
}
