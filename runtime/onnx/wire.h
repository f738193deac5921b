/* The wire format of Protocol Buffers, as far as ONNX files need it: a message is a series of fields, each a key (its
 * number and how it is written) and a value. Additions to a text cannot fail; see tdm_text. */
#ifndef TDM_ONNX_WIRE_H
#define TDM_ONNX_WIRE_H

#include "runtime/base/text/text.h"

void tdm__wire_integer(tdm_text *to, int field, int64_t value);
void tdm__wire_float(tdm_text *to, int field, float value);
void tdm__wire_text(tdm_text *to, int field, const char *value);
void tdm__wire_message(tdm_text *to, int field, const tdm_text *message); /* which may be empty */
/* What stands in front of so many bytes, which are written elsewhere. */
void tdm__wire_head(tdm_text *to, int field, uint64_t count);

#endif
