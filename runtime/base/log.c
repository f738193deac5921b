#include "runtime/base/log.h"

#include <stdarg.h>

#include "runtime/base/text/text.h"

void tdm__log(const tdm_host *host, tdm_log_level level, const char *subsystem, const char *format, ...) {
    if (host->log == NULL || level > host->log_level) return;
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    tdm__format(line, sizeof(line), format, arguments);
    va_end(arguments);
    for (char *c = line; *c != '\0'; c++) {
        if (*c == '\n' || *c == '\r') *c = ' ';
    }
    char shown[sizeof(line)];
    (void)tdm_text_printable(shown, sizeof(shown), line, 0);
    host->log(host->user, level, subsystem, shown);
}
