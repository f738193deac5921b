/* Spans: their bytes, and several of one type as if they were one, element behind element: the data of a coalesced call. */
#ifndef TDM_COMM_SPANS_H
#define TDM_COMM_SPANS_H

#include <tandem/comm.h>

static inline size_t tdm__span_bytes(tdm_span span) {
    return span.count * tdm_dtype_bytes(span.dtype);
}

static inline unsigned char *tdm__bytes_at(void *base, size_t offset) {
    return (unsigned char *)base + offset;
}

/* Copies `count` elements from number `first` on. */
void tdm__spans_read(const tdm_span *spans, size_t first, size_t count, void *to);
void tdm__spans_write(const tdm_span *spans, size_t first, size_t count, const void *from);

#endif
