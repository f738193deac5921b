/* Reading the wire format of Protocol Buffers (wire.h) through a window: a file may be larger than memory. Every length
 * is checked against what is around it before it is used. */
#ifndef TDM_ONNX_WIRE_IN_H
#define TDM_ONNX_WIRE_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/memory.h"

/* Where bytes are: in an open file, or in memory, which is borrowed. */
typedef struct tdm_wire_source {
    const char *path; /* for messages */
    int fd;
    const char *memory; /* NULL: the file */
    uint64_t bytes;
} tdm_wire_source;

enum { TDM_WIRE_WINDOW = 65536 };
typedef struct tdm_wire_in {
    const tdm_wire_source *source;
    tdm_status status; /* once it is not TDM_OK nothing more is read, and the error record says why */
    uint64_t from;     /* of the window in the source */
    size_t count;      /* bytes in the window */
    unsigned char window[TDM_WIRE_WINDOW];
} tdm_wire_in;

/* A part of the source: a message, or the bytes of a field. */
typedef struct tdm_wire_span {
    uint64_t at, end;
} tdm_wire_span;

enum { TDM_WIRE_VARINT = 0, TDM_WIRE_8_BYTES = 1, TDM_WIRE_COUNTED = 2, TDM_WIRE_4_BYTES = 5 }; /* how it is written */
typedef struct tdm_wire_field {
    int number, how;
    uint64_t begin;     /* where it is in the source */
    uint64_t value;     /* but for counted fields */
    tdm_wire_span span; /* of a counted field: its bytes */
} tdm_wire_field;

/* Copies bytes of the source. TDM_E_CHECKPOINT if it ends before that. */
tdm_status tdm__wire_take(const tdm_wire_source *source, void *to, size_t count, uint64_t at);
/* The next field of a message, whose span begins behind it then. False at the end, and after a failure. */
bool tdm__wire_next(tdm_wire_in *in, tdm_wire_span *message, tdm_wire_field *out);
/* The next number of a counted field that holds one behind the other. */
bool tdm__wire_varint(tdm_wire_in *in, tdm_wire_span *span, uint64_t *out);
/* Fails for the byte `at`: "model.onnx: at byte 17 ...". Returns false. */
bool tdm__wire_fail(tdm_wire_in *in, uint64_t at, const char *what);
/* Is the field written so? Else it fails. */
bool tdm__wire_is(tdm_wire_in *in, const tdm_wire_field *field, int how);
/* The text of a counted field, with its NUL, in the zone. Fails if it is longer than `most` bytes, no UTF-8, or has a
 * NUL in it. */
bool tdm__wire_text_of(tdm_wire_in *in, const tdm_wire_field *field, tdm_zone *zone, size_t most, const char **out);

#endif
