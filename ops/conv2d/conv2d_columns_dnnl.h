/* conv2d in bf16 as products of matrices: for weights that do not fit the second-level cache, which oneDNN's
 * convolutions would read once for every row; and for 1 x 1, where nothing need be copied, and oneDNN 2's gradient of
 * the weights takes twice as long. */
#ifndef TDM_CONV2D_COLUMNS_DNNL_H
#define TDM_CONV2D_COLUMNS_DNNL_H

#include "ops/conv2d/conv2d.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

typedef struct tdm_conv_columns tdm_conv_columns;

bool tdm__conv_columns_wanted(const tdm_kernel_desc *desc);
/* x and y with neighbouring channels. */
bool tdm__conv_columns_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit);
/* Called, as the next two and _pack, between tdm__dnnl_enter and tdm__dnnl_leave. */
tdm_status tdm__conv_columns_open(tdm_conv_columns **out, const tdm_host *host, const tdm_kernel_desc *desc,
                                  int64_t rows, bool training);
tdm_status tdm__conv_columns_forward(tdm_conv_columns *c, const tdm_kernel_args *args);
tdm_status tdm__conv_columns_backward(tdm_conv_columns *c, const tdm_kernel_args *args);
/* As packed_bytes and pack of a kernel. */
size_t tdm__conv_columns_packed_bytes(const tdm_conv_columns *c);
tdm_status tdm__conv_columns_pack(tdm_conv_columns *c, const tdm_kernel_args *args);
void tdm__conv_columns_close(tdm_conv_columns *c); /* NULL is allowed */

#endif
