/* reorder: the same 4-dimensional value in another layout. No layer: the plan puts it between kernels that differ. */
#ifndef TDM_OPS_REORDER_H
#define TDM_OPS_REORDER_H

#include <tandem/sys/op.h>

void tdm__reorder(float *to, tdm_layout to_layout, const float *from, tdm_layout from_layout, const tdm_shape *shape,
                  int64_t rows);

#endif
