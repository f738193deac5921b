/* tandem/doctor.h - this machine as tandem sees it: system, processor, memory and limits, modules, GPUs. */
#ifndef TANDEM_DOCTOR_H
#define TANDEM_DOCTOR_H

#include <tandem/host.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The form of tdm_environment's report: for people, ready to be pasted; JSON (a run directory's env.json); JSON without
 * the modules and GPUs, for which libraries would be loaded. */
enum { TDM_ENVIRONMENT_TEXT, TDM_ENVIRONMENT_JSON, TDM_ENVIRONMENT_JSON_ALONE };

/* A report on this machine, in the form `json`: one of the above. Released with tdm_free.
 * TDM_E_CHECK, with the report made all the same, when something was found that will stop runs. host NULL:
 * tdm_host_default(). */
TDM_API tdm_status tdm_environment(const tdm_host *host, int json, char **out);
/* Every environment variable that tandem reads, one line each with its meaning. */
TDM_API tdm_status tdm_environment_variables(const tdm_host *host, char **out);

#ifdef __cplusplus
}
#endif
#endif
