/* sigmoid: its loops, for several instruction sets. */
#include "ops/sigmoid/sigmoid.h"

#include "ops/activation_lanes.h"

TDM_ACTIVATION_LANES(sigmoid);
