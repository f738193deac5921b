/* leaky_relu: its loops, for several instruction sets. */
#include "ops/leaky_relu/leaky_relu.h"

#include "ops/activation_lanes.h"

TDM_ACTIVATION_LANES(leaky_relu);
