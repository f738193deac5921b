#include "runtime/onnx/wire_in.h"

#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/base/text/text.h"

tdm_status tdm__wire_take(const tdm_wire_source *source, void *to, size_t count, uint64_t at) {
    if (at > source->bytes || count > source->bytes - at)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: it ends before byte %llu", source->path, (unsigned long long)(at + count));
    if (source->memory == NULL) return tdm__file_read(source->fd, source->path, to, count, at, TDM_E_CHECKPOINT);
    if (count > 0) memcpy(to, source->memory + at, count);
    return TDM_OK;
}

bool tdm__wire_fail(tdm_wire_in *in, uint64_t at, const char *what) {
    if (in->status == TDM_OK)
        in->status =
            tdm__fail(TDM_E_CHECKPOINT, __FILE__, __LINE__, NULL, "%s: at byte %llu %s; it is damaged, or no ONNX file",
                      in->source->path, (unsigned long long)at, what);
    return false;
}

/* The byte at `at`, which lies in the source. */
static bool byte_at(tdm_wire_in *in, uint64_t at, unsigned char *out) {
    if (in->status != TDM_OK) return false;
    if (at < in->from || at - in->from >= in->count) {
        const uint64_t left = in->source->bytes - at;
        in->from = at;
        in->count = left < TDM_WIRE_WINDOW ? (size_t)left : TDM_WIRE_WINDOW;
        in->status = tdm__wire_take(in->source, in->window, in->count, at);
        if (in->status != TDM_OK) in->count = 0;
    }
    if (in->status == TDM_OK) *out = in->window[at - in->from];
    return in->status == TDM_OK;
}

/* Little-endian. */
static bool fixed(tdm_wire_in *in, tdm_wire_span *span, int bytes, uint64_t *out) {
    unsigned char byte;
    *out = 0;
    for (int i = 0; i < bytes; i++, span->at++) {
        if (span->at >= span->end) return tdm__wire_fail(in, span->at, "a number is cut short");
        if (!byte_at(in, span->at, &byte)) return false;
        *out |= (uint64_t)byte << (8 * i);
    }
    return true;
}

bool tdm__wire_varint(tdm_wire_in *in, tdm_wire_span *span, uint64_t *out) {
    enum { MOST_BYTES = 10 };
    unsigned char byte;
    *out = 0;
    for (int i = 0; i < MOST_BYTES; i++) {
        if (span->at >= span->end) return tdm__wire_fail(in, span->at, "a number is cut short");
        if (!byte_at(in, span->at++, &byte)) return false;
        *out |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte < 0x80) return true;
    }
    return tdm__wire_fail(in, span->at, "a number has more than 64 bits");
}

bool tdm__wire_next(tdm_wire_in *in, tdm_wire_span *message, tdm_wire_field *out) {
    const uint64_t begin = message->at;
    uint64_t key;
    if (in->status != TDM_OK || message->at >= message->end || !tdm__wire_varint(in, message, &key)) return false;
    if (key >> 3 == 0 || key >> 3 > INT32_MAX) return tdm__wire_fail(in, begin, "a field has no valid number");
    *out = (tdm_wire_field){.number = (int)(key >> 3), .how = (int)(key & 7), .begin = begin};
    if (out->how == TDM_WIRE_VARINT) return tdm__wire_varint(in, message, &out->value);
    if (out->how == TDM_WIRE_8_BYTES) return fixed(in, message, 8, &out->value);
    if (out->how == TDM_WIRE_4_BYTES) return fixed(in, message, 4, &out->value);
    if (out->how != TDM_WIRE_COUNTED) return tdm__wire_fail(in, begin, "a field is written in an unknown way");
    uint64_t count;
    if (!tdm__wire_varint(in, message, &count)) return false;
    if (count > message->end - message->at) return tdm__wire_fail(in, begin, "a field is longer than what it is in");
    out->span = (tdm_wire_span){message->at, message->at + count};
    message->at += count;
    return true;
}

bool tdm__wire_is(tdm_wire_in *in, const tdm_wire_field *field, int how) {
    return field->how == how || tdm__wire_fail(in, field->begin, "a field is written in the way of another");
}

bool tdm__wire_text_of(tdm_wire_in *in, const tdm_wire_field *field, tdm_zone *zone, size_t most, const char **out) {
    const uint64_t count = field->span.end - field->span.at;
    char *text;
    if (!tdm__wire_is(in, field, TDM_WIRE_COUNTED)) return false;
    if (count > most) return tdm__wire_fail(in, field->span.at, "a text is too long");
    in->status = tdm__zone_new(zone, &text, (size_t)count + 1, 1);
    if (in->status != TDM_OK) return false;
    for (size_t i = 0; i < count; i++)
        if (!byte_at(in, field->span.at + i, (unsigned char *)text + i)) return false;
    if (strlen(text) != count || !tdm__text_is_utf8(text, (size_t)count, NULL))
        return tdm__wire_fail(in, field->span.at, "a text is no UTF-8");
    *out = text;
    return true;
}
