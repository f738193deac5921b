/* relu6: its loops, for several instruction sets. */
#include "ops/relu6/relu6.h"

#include "ops/activation_lanes.h"

TDM_ACTIVATION_LANES(relu6);
