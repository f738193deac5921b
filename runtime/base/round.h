/* Rounding up, in one place. */
#ifndef TDM_BASE_ROUND_H
#define TDM_BASE_ROUND_H

#include <stddef.h>

/* The smallest multiple of `unit` that is at least `size`. `size` must be far below SIZE_MAX. */
static inline size_t tdm__round_up(size_t size, size_t unit) {
    return (size + unit - 1) / unit * unit;
}

#endif
