#include "runtime/onnx/wire.h"

enum { VARINT = 0, COUNTED = 2, FOUR_BYTES = 5 }; /* how a value is written */

/* Seven bits a byte, the lowest first; the highest bit says that more follow. */
static void add_varint(tdm_text *to, uint64_t value) {
    do {
        const char byte = (char)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
        tdm__text_add(to, &byte, 1);
        value >>= 7;
    } while (value != 0);
}

static void add_key(tdm_text *to, int field, int how) {
    add_varint(to, (uint64_t)field << 3 | (uint64_t)how);
}

void tdm__wire_integer(tdm_text *to, int field, int64_t value) {
    add_key(to, field, VARINT);
    add_varint(to, (uint64_t)value);
}

void tdm__wire_float(tdm_text *to, int field, float value) {
    add_key(to, field, FOUR_BYTES);
    tdm__text_add(to, (const char *)&value, sizeof(value));
}

void tdm__wire_head(tdm_text *to, int field, uint64_t count) {
    add_key(to, field, COUNTED);
    add_varint(to, count);
}

static void add_bytes(tdm_text *to, int field, const void *bytes, size_t count) {
    tdm__wire_head(to, field, count);
    tdm__text_add(to, bytes, count);
}

void tdm__wire_text(tdm_text *to, int field, const char *value) {
    add_bytes(to, field, value, strlen(value));
}

void tdm__wire_message(tdm_text *to, int field, const tdm_text *message) {
    to->failed = to->failed || message->failed;
    add_bytes(to, field, message->data != NULL ? message->data : "", message->length);
}
