/* adaptive_maxpool2d: the largest x in window [floor(i*in/out), ceil((i+1)*in/out)) of each axis. */
#ifndef TDM_OPS_ADAPTIVE_MAXPOOL2D_H
#define TDM_OPS_ADAPTIVE_MAXPOOL2D_H

#include <stdint.h>

typedef struct tdm_adaptive_maxpool2d_attrs {
    int64_t out[2];
} tdm_adaptive_maxpool2d_attrs;

/* Along one axis: the points [begin, end) of a window. */
typedef struct tdm_adaptive_span {
    int64_t begin, end;
} tdm_adaptive_span;

/* That of output `at`. */
static inline tdm_adaptive_span tdm__adaptive_span_of(int64_t at, int64_t in, int64_t out) {
    return (tdm_adaptive_span){at * in / out, ((at + 1) * in + out - 1) / out};
}

#endif
