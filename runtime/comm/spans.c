/* See spans.h. */
#include "runtime/comm/spans.h"

#include <string.h>

static tdm_span next_of_part(const tdm_span **spans, int part, int parts, size_t *first, size_t count) {
    while ((*spans)->count / (size_t)parts <= *first) *first -= (*spans)++->count / (size_t)parts;
    const tdm_span *span = *spans;
    const size_t own = span->count / (size_t)parts, left = own - *first, n = left < count ? left : count;
    char *data = (char *)span->data + ((size_t)part * own + *first) * tdm_dtype_bytes(span->dtype);
    *first += n;
    return (tdm_span){data, n, span->dtype};
}

tdm_span tdm__spans_next(const tdm_span **spans, size_t *first, size_t count) {
    return next_of_part(spans, 0, 1, first, count);
}

void tdm__spans_read_part(const tdm_span *spans, int part, int parts, size_t first, size_t count, void *to) {
    for (size_t done = 0; done < count;) {
        const tdm_span piece = next_of_part(&spans, part, parts, &first, count - done);
        const size_t width = tdm_dtype_bytes(piece.dtype);
        memcpy((char *)to + done * width, piece.data, piece.count * width);
        done += piece.count;
    }
}

void tdm__spans_write_part(const tdm_span *spans, int part, int parts, size_t first, size_t count, const void *from) {
    for (size_t done = 0; done < count;) {
        const tdm_span piece = next_of_part(&spans, part, parts, &first, count - done);
        const size_t width = tdm_dtype_bytes(piece.dtype);
        memcpy(piece.data, (const char *)from + done * width, piece.count * width);
        done += piece.count;
    }
}

void tdm__spans_read(const tdm_span *spans, size_t first, size_t count, void *to) {
    tdm__spans_read_part(spans, 0, 1, first, count, to);
}

void tdm__spans_write(const tdm_span *spans, size_t first, size_t count, const void *from) {
    tdm__spans_write_part(spans, 0, 1, first, count, from);
}
