/* dropout: in training y = x / (1 - p) where the mask keeps an element, else 0; in evaluation y = x.
 *
 * The mask is a pure function, so that it does not depend on mode, device, batch size or threads. Element e of the row
 * at `position` is dropped if
 *      philox4x32_10(key, {e / 4, position, step, stream})[e % 4] < p * 2^32
 * where e counts in the row's plain layout, position and step are their low 32 bits, stream is the node's own, and key
 * = splitmix64(seed), so that neighbouring seeds have unrelated keys. p = 0 drops nothing, p = 1 everything. */
#ifndef TDM_OPS_DROPOUT_H
#define TDM_OPS_DROPOUT_H

#include <stdint.h>

typedef struct tdm_dropout_attrs {
    double p;
} tdm_dropout_attrs;

typedef struct tdm_dropout_draw {
    double p;
    uint64_t seed, step;
    uint32_t stream;
    int64_t position;
} tdm_dropout_draw;

#endif
