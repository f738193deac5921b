/* Bytes of memory that the process holds of its own: RssAnon. */
#ifndef TDM_ANONYMOUS_H
#define TDM_ANONYMOUS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline size_t tdm_anonymous_bytes(void) {
    char line[256];
    size_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof(line), status) != NULL)
        if (strncmp(line, "RssAnon:", 8) == 0) kib = strtoul(line + 8, NULL, 10);
    if (status != NULL) fclose(status);
    return kib << 10;
}

#endif
