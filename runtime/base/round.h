/* Sizes: rounding up, and the larger of two. */
#ifndef TDM_BASE_ROUND_H
#define TDM_BASE_ROUND_H

#include <stddef.h>

/* The smallest multiple of `unit` that is at least `size`. `size` must be far below SIZE_MAX. */
static inline size_t tdm__round_up(size_t size, size_t unit) {
    return (size + unit - 1) / unit * unit;
}

static inline size_t tdm__smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t tdm__larger(size_t a, size_t b) {
    return a > b ? a : b;
}

#endif
