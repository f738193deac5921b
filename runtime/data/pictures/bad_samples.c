/* Samples that were left out, see bad_samples.h. */
#include "runtime/data/pictures/bad_samples.h"

#include <stddef.h>
#include <stdio.h>

void tdm__bad_samples_add(struct tdm_bad_samples *bad, int64_t row, const char *why) {
    const long long at = atomic_fetch_add(&bad->count, 1);
    if (at >= TDM_BAD_SAMPLES_KEPT) return;
    bad->kept[at].row = row;
    snprintf(bad->kept[at].why, sizeof(bad->kept[at].why), "%s", why);
    atomic_store(&bad->kept[at].is_whole, 1);
}

const char *tdm__bad_samples_next(const struct tdm_bad_samples *bad, int64_t after, int64_t *row) {
    const char *why = NULL;
    for (int i = 0; i < TDM_BAD_SAMPLES_KEPT; i++) {
        const int64_t at = bad->kept[i].row;
        if (!atomic_load(&bad->kept[i].is_whole) || at <= after || (why != NULL && at >= *row)) continue;
        why = bad->kept[i].why;
        *row = at;
    }
    return why;
}
