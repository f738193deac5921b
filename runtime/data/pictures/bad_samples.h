/* Samples that could not be read and were left out (on_bad_sample: skip). Threads add them; the run's summary lists
 * them. */
#ifndef TDM_DATA_PICTURES_BAD_SAMPLES_H
#define TDM_DATA_PICTURES_BAD_SAMPLES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { TDM_BAD_SAMPLES_KEPT = 100, TDM_BAD_SAMPLE_WHY = 256 };

/* As ranks send it to each other. */
typedef struct tdm_left_out {
    int64_t row; /* in the file of the data; -1: there is none */
    char why[TDM_BAD_SAMPLE_WHY];
} tdm_left_out;

struct tdm_bad_samples {
    atomic_llong count; /* all, also those that are not kept */
    struct {
        atomic_bool is_whole;
        int64_t row; /* in the file of the data */
        char why[TDM_BAD_SAMPLE_WHY];
    } kept[TDM_BAD_SAMPLES_KEPT];
};

/* Any thread. `why` is cut where it is too long. */
void tdm__bad_samples_add(struct tdm_bad_samples *bad, int64_t row, const char *why);
/* The kept sample with the lowest row above `after` (-1: the first); NULL: there is none. *row is set. Any thread. */
const char *tdm__bad_samples_next(const struct tdm_bad_samples *bad, int64_t after, int64_t *row);

/* All that are kept; the rest of `out` has row -1. */
void tdm__bad_samples_list(const struct tdm_bad_samples *bad, tdm_left_out out[TDM_BAD_SAMPLES_KEPT]);
/* Adds those that are not there yet. */
void tdm__bad_samples_merge(struct tdm_bad_samples *bad, const tdm_left_out *others, size_t count);

#endif
