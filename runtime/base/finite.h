/* Finds numbers that are infinite or NaN, by their bits. */
#ifndef TDM_BASE_FINITE_H
#define TDM_BASE_FINITE_H

#include <stddef.h>

/* Formats of floats in memory and in files. TDM_NOT_FLOAT: integers, and floats that are not checked. */
typedef enum tdm_float_form { TDM_NOT_FLOAT, TDM_F16_BITS, TDM_BF16_BITS, TDM_F32_BITS, TDM_F64_BITS } tdm_float_form;

/* The index of the first number that is infinite or NaN; `count` if all are finite. `numbers` must be aligned for its
 * type. Runs at the speed of memory. */
size_t tdm__first_not_finite(tdm_float_form form, const void *numbers, size_t count);
size_t tdm__float_bytes(tdm_float_form form); /* bytes of one number; 0 for TDM_NOT_FLOAT */

#endif
