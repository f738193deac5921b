/* One number of a data file, in any of the types that NumPy writes: b1, i1 to i8, u1 to u8, f2, f4, f8. */
#ifndef TDM_DATA_CELLS_H
#define TDM_DATA_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tdm_cell_type {
    char order;   /* of bytes: '<' little-endian, '>' big-endian, '|' single bytes */
    char kind;    /* 'b' bool, 'i', 'u', 'f' */
    size_t bytes; /* 1, 2, 4 or 8 */
} tdm_cell_type;

#define TDM_CELLS_INTEGERS "u1 i1 u2 i2 u4 i4 u8 i8 b1"
#define TDM_CELLS_ALL "f2 f4 f8 " TDM_CELLS_INTEGERS

/* Is the type one of `types`, a list such as TDM_CELLS_ALL? */
bool tdm__cell_type_is(const tdm_cell_type *type, const char *types);
/* Rounded to nearest, as numpy.astype(float32). */
void tdm__cells_to_floats(const tdm_cell_type *type, const unsigned char *from, size_t count, float *to);
/* Of integers and bools. One beyond int64_t becomes -1, which is no label either. */
int64_t tdm__cell_integer(const tdm_cell_type *type, const unsigned char *at);

#endif
