/* What the model predicts of a row of scores. */
#ifndef TDM_BASE_LARGEST_H
#define TDM_BASE_LARGEST_H

#include <math.h>
#include <stdint.h>

/* The index of the largest element, as torch.argmax gives it: the first of equal ones, and a NaN before everything. */
static inline int64_t tdm__largest(const float *y, int64_t width) {
    int64_t best = 0;
    for (int64_t c = 1; c < width; c++)
        if (y[c] > y[best] || (isnan(y[c]) && !isnan(y[best]))) best = c;
    return best;
}

#endif
