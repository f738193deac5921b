/* hardswish: its loops, for several instruction sets. */
#include "ops/hardswish/hardswish.h"

#include "ops/activation_lanes.h"

TDM_ACTIVATION_LANES(hardswish);
