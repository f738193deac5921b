/* lstm: the kernel of the dnnl module. */
#include "ops/recurrent/recurrent_dnnl.h"

TDM_RECURRENT_DNNL(lstm, false);
