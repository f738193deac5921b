/* tandem/source.h - samples that the embedding program provides itself. */
#ifndef TANDEM_SOURCE_H
#define TANDEM_SOURCE_H

#include <stdint.h>

#include <tandem/status.h>

TDM_BEGIN_DECLS

/* `read` writes sample `index` into `x` and `target`. x: as many floats as the model's input has numbers. target: one
 * int64_t label, or as many floats as the model has outputs. It returns 0, or any other number to stop the run with
 * TDM_E_DATA and a message that names the index.
 *
 * Threads: several threads call `read` at the same time, with any index in [0, count), in any order. The same index
 * must always give the same sample. */
typedef struct tdm_source {
    uint32_t size;  /* sizeof(tdm_source) */
    int64_t count;  /* samples */
    int has_labels; /* 1: the target is an int64_t label; 0: floats */
    int (*read)(void *user, int64_t index, float *x, void *target);
    void *user; /* passed to `read` */
} tdm_source;

TDM_END_DECLS
#endif
