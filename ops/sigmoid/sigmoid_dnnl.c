/* sigmoid: the kernel of the dnnl module. */
#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(sigmoid, args->y, 0.0f);
