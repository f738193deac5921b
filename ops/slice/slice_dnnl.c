/* slice in the dnnl module: threads share the rows. */
#include "runtime/backends/dnnl/kit/rows.h"

TDM_ROWS_DNNL(slice);
