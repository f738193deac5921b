/* dropout: when training, y = x / (1 - p) where the mask keeps, 0 elsewhere; in evaluation y = x.
 *
 * The mask is a pure function, so that it does not depend on mode, device, batch size or threads. Element e of the row
 * at `position` is dropped when
 *     philox4x32_10(key, {e / 4, position, step, stream})[e % 4] < p * 2^32
 * with e counted in the row's plain layout, the low 32 bits of position and step, the node's own stream, and
 * key = splitmix64(seed), so that neighbouring seeds have unrelated keys. p = 0 drops nothing, p = 1 everything. */
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

/* One row of the mask: 1 where kept. */
void tdm__dropout_mask(uint8_t *keep, int64_t count, const tdm_dropout_draw *draw);
/* What kept elements are multiplied by: 1 / (1 - p), rounded as ATen does; 0 for p = 1. */
float tdm__dropout_scale(double p);

#endif
