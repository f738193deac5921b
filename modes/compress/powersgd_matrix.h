/* The arithmetic of PowerSGD on one matrix. Sums are in double, in an order that sizes alone decide, and rounded once:
 * the bits depend neither on the processor nor on threads. Factors lie column after column. */
#ifndef TDM_MODES_POWERSGD_MATRIX_H
#define TDM_MODES_POWERSGD_MATRIX_H

#include <stddef.h>

/* p[k][i] = sum over j of m[i][j] * q[k][j] */
void tdm__power_left(float *p, const float *m, const float *q, size_t rows, size_t columns, size_t rank);
/* q[k][j] = sum over i of m[i][j] * p[k][i] */
void tdm__power_right(float *q, const float *m, const float *p, size_t rows, size_t columns, size_t rank);
/* m[i][j] = sum over k of p[k][i] * q[k][j] */
void tdm__power_product(float *m, const float *p, const float *q, size_t rows, size_t columns, size_t rank);
/* Gram and Schmidt: makes `rank` columns of `length` numbers orthonormal. A column that the ones before it span, such
 * as one of zeros, is replaced by the part of a unit vector that they do not. rank <= length. */
void tdm__power_orthogonalize(float *columns, size_t length, size_t rank);

#endif
