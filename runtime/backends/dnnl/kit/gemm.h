/* What oneDNN's multiplication of matrices takes for itself. */
#ifndef TDM_DNNL_GEMM_H
#define TDM_DNNL_GEMM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that the heap of a thread grows to by calls of oneDNN, which copies blocks of both matrices before it
 * multiplies them. It neither says how many, nor takes them from the caller. c = a b is m x n row by row, sums have k
 * terms, and `element` is the size of a number of a and b. */
size_t tdm__dnnl_gemm_bytes(int64_t m, int64_t n, int64_t k, size_t element);

#endif
