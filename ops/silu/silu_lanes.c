/* silu: its loops, for several instruction sets. */
#include "ops/silu/silu.h"

#include "ops/activation_lanes.h"

TDM_ACTIVATION_LANES(silu);
