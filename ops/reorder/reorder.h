/* reorder: brings a 4-dimensional value into another layout. It is not a layer: the plan inserts it between kernels
 * whose layouts differ. */
#ifndef TDM_OPS_REORDER_H
#define TDM_OPS_REORDER_H

#include <tandem/sys/op.h>

void tdm__reorder(float *to, tdm_layout to_layout, const float *from, tdm_layout from_layout, const tdm_shape *shape,
                  int64_t rows);

#endif
