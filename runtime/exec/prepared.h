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

/* Starts to prepare kernels for the plan's number of rows, on a thread of its own, if the device's memory is the
 * host's: making machine code takes as long as opening the data and the run's folder. Without a thread it is done at
 * once. */
tdm_status tdm__prepare_start(tdm_replica *replica);
/* Waits until that is done: from here on the list belongs to the calling thread. */
tdm_status tdm__prepare_wait(tdm_replica *replica);
tdm_status tdm__prepared_find(tdm_replica *replica, int64_t rows, bool training, tdm_prepared **out);
/* Logs what kernels have chosen for `prepared`, which is not in the replica's list yet. Warns, once in a run, about
 * kernels that are slower than they should be. */
void tdm__prepared_log(const tdm_replica *replica, const tdm_prepared *prepared);
/* Prints as JSON what the kernel of each layer has chosen, for each number of rows so far, the last used first. Call
 * tdm__prepare_wait before. */
void tdm__prepared_print(const tdm_replica *replica, tdm_text *text);
void tdm__prepared_free_all(tdm_replica *replica);

#endif
