/* How messages list the ranks that rank 0 waits for. */
#ifndef TDM_COMM_MISSING_H
#define TDM_COMM_MISSING_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TDM_MISSING_TEXT = 160 };

/* The end of "rank 1", "ranks 1, 3" or "ranks 1, 2, ... and more", after "rank". */
static inline void tdm__print_missing(char out[TDM_MISSING_TEXT], int world, int missing,
                                      bool (*has_come)(const void *who, int rank), const void *who) {
    size_t used = (size_t)snprintf(out, TDM_MISSING_TEXT, "%s ", missing == 1 ? "" : "s");
    const size_t begin = used;
    for (int rank = 1; rank < world; rank++) {
        if (has_come(who, rank)) continue;
        if (used >= TDM_MISSING_TEXT - 24) {
            snprintf(out + used, TDM_MISSING_TEXT - used, " and more");
            return;
        }
        used += (size_t)snprintf(out + used, TDM_MISSING_TEXT - used, "%s%d", used > begin ? ", " : "", rank);
    }
}

#endif
