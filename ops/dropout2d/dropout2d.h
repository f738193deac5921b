/* dropout2d: in training y = x / (1 - p) in the channels that the mask keeps, else 0; in evaluation y = x.
 *
 * The mask is dropout's (dropout.h) with the channel in place of the element. */
#ifndef TDM_OPS_DROPOUT2D_H
#define TDM_OPS_DROPOUT2D_H

#include "ops/dropout/dropout.h"
#include "ops/dropout/dropout_draw.h"

#endif
