/* host.memory_limit: a host between an object and the program's, which counts what the object holds. */
#ifndef TDM_BASE_LIMIT_H
#define TDM_BASE_LIMIT_H

#include <stdbool.h>

#include <tandem/host.h>

/* How much an object may hold, and holds. */
typedef struct tdm_limit {
    size_t most; /* 0: no limit */
    size_t held;
} tdm_limit;

/* Replaces *host, which was checked, by a host with the same functions that grants no more than its limit and `most`
 * bytes (0: as many as that says); without a limit it stays. End it with tdm__limit_close, when nothing that it gave is
 * left. */
tdm_status tdm__limit_open(const tdm_host **host, size_t most);
void tdm__limit_close(const tdm_host *host); /* a host of any kind */
tdm_limit tdm__limit_of(const tdm_host *host);
const tdm_host *tdm__limit_given(const tdm_host *host); /* the program's, without the limit */
/* Counts memory that is not the host's, but of its object. false, and nothing is counted, beyond the limit. */
bool tdm__limit_book(const tdm_host *host, size_t bytes);

#endif
