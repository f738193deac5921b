/* Work on bytes from strangers in a process without rights. It can compute, read descriptors that are open already, and
 * write its answer; it cannot open files, start processes or reach the network, whatever the bytes make it do. */
#ifndef TDM_BASE_CONFINED_H
#define TDM_BASE_CONFINED_H

#include <stddef.h>

#include <tandem/host.h>

/* Runs in the child, on a copy of this process's memory. Writes its answer to `out`; 0: it is whole. */
typedef int (*tdm_confined_work)(void *user, int out);

/* Forks, takes all rights from the child (seccomp, limits of time and memory), runs the work there and reads its answer
 * of at most `most` bytes: *answer is the caller's, to be freed with tdm__delete. TDM_E_CHECKPOINT if the child was
 * stopped or the answer is too long; TDM_E_IO if it could not be started. Any thread. */
tdm_status tdm__confined_run(const tdm_host *host, tdm_confined_work work, void *user, size_t most, void **answer,
                             size_t *count);
/* For the work: memory in pages of its own. A lock of any other allocator may be held by a thread that the child does
 * not have; malloc's is safe only in some C libraries, and not under sanitizers. So the work must call nothing that
 * allocates by itself, such as qsort. */
const tdm_host *tdm__confined_host(void);
/* For the work: writes all bytes, or returns false. */
int tdm__confined_write(int out, const void *bytes, size_t count);

#endif
