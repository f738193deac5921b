/* relu: its loops, for several instruction sets. */
#include "ops/relu/relu.h"

#include "ops/activation_lanes.h"

TDM_ACTIVATION_LANES(relu);
