/* tandem/doctor.h - a report on this machine: system, processor, memory and limits, modules, GPUs.
 *
 * Threads: any number of threads may call. The report loads the modules that it names, which stay loaded. */
#ifndef TANDEM_DOCTOR_H
#define TANDEM_DOCTOR_H

#include <tandem/host.h>

TDM_BEGIN_DECLS

/* The forms of the report: text that can be pasted into a bug report; JSON; JSON without the modules and GPUs, so that
 * no library is loaded; JSON with the modules that have kernels, and of the others those that are loaded (a run
 * directory's env.json). */
typedef enum tdm_environment_form {
    TDM_ENVIRONMENT_TEXT,
    TDM_ENVIRONMENT_JSON,
    TDM_ENVIRONMENT_JSON_ALONE,
    TDM_ENVIRONMENT_JSON_LOADED
} tdm_environment_form;

/* Makes a report in the form `json`, one of the above, in *out; free it with tdm_free. host NULL: tdm_host_default().
 * TDM_E_CHECK if something was found that will stop runs; *out holds the report in this case, too. */
TDM_API tdm_status tdm_environment(const tdm_host *host, int json, char **out);
/* Lists every environment variable that tandem reads, one line each with its meaning, in *out; free it with tdm_free.
 * host NULL: tdm_host_default(). */
TDM_API tdm_status tdm_environment_variables(const tdm_host *host, char **out);

TDM_END_DECLS
#endif
