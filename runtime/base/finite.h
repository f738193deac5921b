/* Numbers that are infinite or NaN, found by their bits. */
#ifndef TDM_BASE_FINITE_H
#define TDM_BASE_FINITE_H

#include <stddef.h>

/* Floats as they lie in memory and in files, by their bits. TDM_NOT_FLOAT: what cannot be infinite. */
typedef enum tdm_float_form { TDM_NOT_FLOAT, TDM_F16_BITS, TDM_BF16_BITS, TDM_F32_BITS, TDM_F64_BITS } tdm_float_form;

/* The place of the first of these numbers that is infinite or NaN, `count` if none is. `numbers` is aligned for what
 * they are. As fast as memory is read. */
size_t tdm__first_not_finite(tdm_float_form form, const void *numbers, size_t count);
size_t tdm__float_bytes(tdm_float_form form); /* 0 of TDM_NOT_FLOAT */

#endif
