/* Log lines. They go to the host's log function and nowhere else. */
#ifndef TDM_BASE_LOG_H
#define TDM_BASE_LOG_H

#include <tandem/host.h>

void tdm__log(const tdm_host *host, tdm_log_level level, const char *subsystem, const char *format, ...)
    TDM_PRINTF(4, 5);

#define TDM_INFO(host, subsystem, ...) tdm__log((host), TDM_LOG_INFO, (subsystem), __VA_ARGS__)
#define TDM_WARN(host, subsystem, ...) tdm__log((host), TDM_LOG_WARNING, (subsystem), __VA_ARGS__)
#define TDM_DEBUG(host, subsystem, ...) tdm__log((host), TDM_LOG_DEBUG, (subsystem), __VA_ARGS__)

#endif
