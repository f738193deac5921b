/* Samples that were left out, see bad_samples.h. */
#include "runtime/data/pictures/bad_samples.h"

#include <stdbool.h>
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

void tdm__bad_samples_list(const struct tdm_bad_samples *bad, tdm_left_out out[TDM_BAD_SAMPLES_KEPT]) {
    int64_t row = -1;
    for (int i = 0; i < TDM_BAD_SAMPLES_KEPT; i++) {
        const char *why = tdm__bad_samples_next(bad, row, &row);
        out[i] = (tdm_left_out){.row = why != NULL ? row : -1};
        if (why != NULL) snprintf(out[i].why, sizeof(out[i].why), "%s", why);
    }
}

static bool has(const struct tdm_bad_samples *bad, int64_t row) {
    int64_t at = -1;
    return tdm__bad_samples_next(bad, row - 1, &at) != NULL && at == row;
}

void tdm__bad_samples_merge(struct tdm_bad_samples *bad, const tdm_left_out *others, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (others[i].row >= 0 && !has(bad, others[i].row)) tdm__bad_samples_add(bad, others[i].row, others[i].why);
}
