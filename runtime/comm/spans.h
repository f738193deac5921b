/* Spans of one type as if they were one, element behind element: the data of a coalesced call. */
#ifndef TDM_COMM_SPANS_H
#define TDM_COMM_SPANS_H

#include <tandem/comm.h>

/* Copies `count` elements from number `first` on. */
void tdm__spans_read(const tdm_span *spans, size_t first, size_t count, void *to);
void tdm__spans_write(const tdm_span *spans, size_t first, size_t count, const void *from);

#endif
