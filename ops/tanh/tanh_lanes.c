/* tanh: its loops, for several instruction sets. */
#include "ops/tanh/tanh.h"

#include "ops/activation_lanes.h"

TDM_ACTIVATION_LANES(tanh);
