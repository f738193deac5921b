/* tanh: the kernel of the dnnl module. */
#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(tanh, args->y, 0.0f);
