/* The header of NumPy's .npy files. */
#ifndef TDM_DATA_NPY_HEADER_H
#define TDM_DATA_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/data/reader.h"

enum { TDM_NPY_MAX_DIMS = 8 };

typedef struct tdm_npy_header {
    char order;   /* of bytes: '<' little-endian, '>' big-endian, '|' single bytes */
    char kind;    /* 'f', 'i', 'u', ... */
    size_t bytes; /* of one element */
    bool fortran_order;
    int ndim;
    size_t dim[TDM_NPY_MAX_DIMS];
    size_t elements; /* product of dim, checked for overflow */
    size_t data_at;  /* where the data begins in the file */
} tdm_npy_header;

/* Reads magic, version and header, and checks the file's size against them. */
tdm_status tdm__npy_header_read(tdm_reader *reader, tdm_npy_header *header);
/* Prints a type such as "<f4" into `out`. Returns `out`. */
const char *tdm__npy_type_print(char out[16], const tdm_npy_header *header);

#endif
