/* What a library's call does beside a product or a convolution, for people: tdm_algorithm.fused. */
#ifndef TDM_OPS_FUSED_H
#define TDM_OPS_FUSED_H

/* By bias + 2 * relu. */
static const char *const tdm__fused_names[4] = {"", "bias", "relu", "bias and relu"};

#endif
