/* tandem/source.h - the embedder's own samples. */
#ifndef TANDEM_SOURCE_H
#define TANDEM_SOURCE_H

#include <stdint.h>

#include <tandem/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `read` is called from several threads at once, with any index in [0, count), in any order, and must give the same
 * sample for the same index. x: `input` floats; target: one int64_t label, or `width` floats. Return 0, or anything
 * else to stop the run with TDM_E_DATA naming the index. */
typedef struct tdm_source {
    uint32_t size; /* sizeof(tdm_source) */
    int64_t count;
    int has_labels; /* 1: int64_t labels; 0: float targets */
    int (*read)(void *user, int64_t index, float *x, void *target);
    void *user;
} tdm_source;

#ifdef __cplusplus
}
#endif
#endif
