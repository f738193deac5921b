/* Spans: their bytes, and several of one type as if they were one, element behind element: the data of a coalesced
 * call. */
#ifndef TDM_COMM_SPANS_H
#define TDM_COMM_SPANS_H

#include <tandem/comm.h>

static inline size_t tdm__span_bytes(tdm_span span) {
    return span.count * tdm_dtype_bytes(span.dtype);
}

static inline unsigned char *tdm__bytes_at(void *base, size_t offset) {
    return (unsigned char *)base + offset;
}

/* The next elements of `count` that lie in one piece, of the span in which number *first is; the rest begins in the
 * span behind it, at 0. */
tdm_span tdm__spans_next(const tdm_span **spans, size_t *first, size_t count);
/* Copies `count` elements from number `first` on. */
void tdm__spans_read(const tdm_span *spans, size_t first, size_t count, void *to);
void tdm__spans_write(const tdm_span *spans, size_t first, size_t count, const void *from);
/* The same of spans that have `parts` equal parts each, as if they had only part number `part`. */
void tdm__spans_read_part(const tdm_span *spans, int part, int parts, size_t first, size_t count, void *to);
void tdm__spans_write_part(const tdm_span *spans, int part, int parts, size_t first, size_t count, const void *from);

#endif
