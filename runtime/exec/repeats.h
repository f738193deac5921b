/* Layers that run again and again on the same tensors, each run timed: for who compares kernels with others, whose
 * tensors are in the cache then too. */
#ifndef TDM_EXEC_REPEATS_H
#define TDM_EXEC_REPEATS_H

#include "runtime/base/text/text.h"
#include "runtime/exec/replica.h"

/* From now on each layer of the replica's training passes runs `count` times. Released with the replica. */
tdm_status tdm__repeats_start(tdm_replica *replica, int64_t count);

/* Do layers run again and again? Not while a device records what it will do. */
static inline bool tdm__repeats(const tdm_replica *replica) {
    return replica->repeats.ms != NULL && !tdm__replica_is_capturing(replica);
}

/* The run number `i` of the plan's step, which began at start_ns, ends when its work on the device has. */
tdm_status tdm__repeats_end(tdm_replica *replica, int step, int64_t i, int64_t start_ns);

/* The times of the last pass, as JSON. */
void tdm__repeats_print(const tdm_replica *replica, tdm_text *text);

#endif
