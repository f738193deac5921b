/* See spans.h. */
#include "runtime/comm/spans.h"

#include <string.h>

/* The next elements of `count` that lie in one piece, of the span in which number *first is; the rest begins in the span
 * behind it, at 0. */
static tdm_span next_piece(const tdm_span **spans, size_t *first, size_t count) {
    while ((*spans)->count <= *first) *first -= (*spans)++->count;
    const tdm_span *span = *spans;
    const size_t left = span->count - *first, n = left < count ? left : count;
    char *data = (char *)span->data + *first * tdm_dtype_bytes(span->dtype);
    *first += n;
    return (tdm_span){data, n, span->dtype};
}

void tdm__spans_read(const tdm_span *spans, size_t first, size_t count, void *to) {
    for (size_t done = 0; done < count;) {
        const tdm_span piece = next_piece(&spans, &first, count - done);
        const size_t width = tdm_dtype_bytes(piece.dtype);
        memcpy((char *)to + done * width, piece.data, piece.count * width);
        done += piece.count;
    }
}

void tdm__spans_write(const tdm_span *spans, size_t first, size_t count, const void *from) {
    for (size_t done = 0; done < count;) {
        const tdm_span piece = next_piece(&spans, &first, count - done);
        const size_t width = tdm_dtype_bytes(piece.dtype);
        memcpy(piece.data, (const char *)from + done * width, piece.count * width);
        done += piece.count;
    }
}
