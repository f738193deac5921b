/* gelu: its loops, for several instruction sets. */
#include "ops/gelu/gelu.h"

#include "ops/activation_lanes.h"

TDM_ACTIVATION_LANES_OF_FORMS(gelu);
