/* Kernel states of all nodes for one number of rows: made at first use, kept until the replica closes. */
#ifndef TDM_EXEC_PREPARED_H
#define TDM_EXEC_PREPARED_H

#include "runtime/base/system/sync.h"
#include "runtime/base/text/text.h"
#include "runtime/exec/replica.h"

typedef struct tdm_prepared {
    struct tdm_prepared *next;
    int64_t rows;
    bool training;
    void **state; /* by plan node; NULL where the kernel needs none */
} tdm_prepared;

struct tdm_prepared_list {
    tdm_prepared *first; /* the last used */
    tdm_worker *worker;  /* prepares the first while the run is still being opened; NULL: nothing to wait for */
};

/* Begins to prepare for the plan's number of rows on a thread of its own, where the device's memory is the host's:
 * making machine code takes as long as opening the data and the folder, and goes on beside it. */
tdm_status tdm__prepare_start(tdm_replica *replica);
/* Waits until that is done: from here on the list belongs to the calling thread. */
tdm_status tdm__prepare_wait(tdm_replica *replica);
tdm_status tdm__prepared_find(tdm_replica *replica, int64_t rows, bool training, tdm_prepared **out);
/* Into the log: what kernels have chosen for the number of rows of `prepared`, which is not in the replica's list yet;
 * as a warning which are slower than they should be, once for a run. */
void tdm__prepared_log(const tdm_replica *replica, const tdm_prepared *prepared);
/* The kernel of each layer and what it has chosen, for each number of rows so far, the last used first: JSON.
 * Behind tdm__prepare_wait. */
void tdm__prepared_print(const tdm_replica *replica, tdm_text *text);
void tdm__prepared_free_all(tdm_replica *replica);

#endif
