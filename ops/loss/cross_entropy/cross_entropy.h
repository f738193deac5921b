/* cross_entropy: softmax and negative log-likelihood of the labels, mean over the rows that count. */
#ifndef TDM_OPS_CROSS_ENTROPY_H
#define TDM_OPS_CROSS_ENTROPY_H

#include <stdint.h>

typedef struct tdm_cross_entropy_attrs {
    double label_smoothing;
    int64_t ignore_index; /* rows with this label have no loss and no gradient, and do not count in the mean */
} tdm_cross_entropy_attrs;

#endif
