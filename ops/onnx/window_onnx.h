/* Windows that slide, in ONNX. `axes`: 2, height and width of an image; 1, the points of a series, which are axis 1 of
 * the window. */
#ifndef TDM_OPS_WINDOW_ONNX_H
#define TDM_OPS_WINDOW_ONNX_H

#include "ops/onnx/onnx.h"
#include "ops/window.h"

/* Gives the last node the attributes of a window; `after`: the padding below and to the right. */
void tdm__onnx_window(tdm_onnx *to, const tdm_window *window, const int64_t after[2], int axes);
/* A node of a pooling layer. Its padding behind the input is what the last window reads there, so that ceil_mode needs
 * no attribute of ONNX's, which readers take in different ways. They refuse a padding of a kernel or more, which the last
 * of dilated windows may reach: there they agree on the attribute, unless a window is dropped. *reaches: some window
 * reaches beyond the padding. */
tdm_status tdm__onnx_pool(tdm_onnx *to, const tdm_onnx_layer *layer, const char *op, const tdm_pool_attrs *attrs,
                          int axes, bool *reaches);
/* A node of an adaptive pooling layer; ONNX has no windows of different sizes. */
tdm_status tdm__onnx_even_windows(tdm_onnx *to, const tdm_onnx_layer *layer, const char *op, int axes);

#endif
