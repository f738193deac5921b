/* Measures what adding gradients in shared memory costs ranks of one host on this machine. */
#include <math.h>
#include <stdlib.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/cpus.h"
#include "runtime/comm/comm.h"
#include "runtime/train/plan/plan_scale.h"

enum { RANKS_MOST = 4, WARM_UP = 2, CALLS = 23, TIMEOUT_MS = 60000 };
enum { LEAST_BYTES = 1 << 20, MOST_BYTES = 32 << 20, TOUCHED_MOST = 64 << 20 };

typedef struct ranks {
    int count;
    tdm_comm *comm[RANKS_MOST]; /* each with a thread of its own for calls that are started */
    float *numbers[RANKS_MOST];
    size_t added, all; /* of them: in a call, from another place each time; all */
} ranks;

/* *ms: of the rank that took least, which waited for no other one to begin. */
static tdm_status add_once(ranks *all, size_t first, double *ms) {
    tdm_comm_request *request[RANKS_MOST] = {NULL};
    tdm_status status = TDM_OK;
    *ms = INFINITY;
    for (int r = 0; r < all->count && status == TDM_OK; r++) {
        const tdm_span span = {all->numbers[r] + first, all->added, TDM_DTYPE_F32};
        status = tdm_comm_start_all_reduce(all->comm[r], span, TDM_REDUCE_SUM, &request[r]);
    }
    for (int r = 0; r < all->count && request[r] != NULL; r++) {
        double own = 0;
        const tdm_status waited = tdm_comm_wait(request[r], &own);
        if (status == TDM_OK) status = waited;
        *ms = fmin(*ms, own);
    }
    return status;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* *seconds: the median. */
static tdm_status add_often(ranks *all, double *seconds) {
    double ms[CALLS];
    const size_t places = all->all / all->added;
    for (size_t i = 0; i < CALLS; i++) TDM_TRY(add_once(all, i % places * all->added, &ms[i]));
    qsort(ms + WARM_UP, CALLS - WARM_UP, sizeof(*ms), by_value);
    *seconds = ms[WARM_UP + (CALLS - WARM_UP) / 2] / 1e3;
    return TDM_OK;
}

static tdm_status open_ranks(ranks *all, const tdm_host *host) {
    TDM_TRY(tdm_comm_open_threads(all->comm, all->count, host, TIMEOUT_MS));
    for (int r = 0; r < all->count; r++)
        TDM_TRY(tdm__new(host, &all->numbers[r], all->all, sizeof(float), "gradients to measure with"));
    return TDM_OK;
}

static void close_ranks(ranks *all, const tdm_host *host) {
    for (int r = 0; r < all->count; r++) {
        tdm_comm_close(all->comm[r]);
        tdm__delete(host, all->numbers[r]);
    }
}

tdm_status tdm__scale_measure_cost(const tdm_host *host, int devices, double bucket, double touched, double *cost) {
    const int cores = tdm__cpus_available(host), at_once = devices < cores ? devices : cores;
    const double bytes = fmin(fmax(bucket, LEAST_BYTES), MOST_BYTES);
    const double room = fmax(bytes, fmin(touched, TOUCHED_MOST));
    ranks all = {.count = at_once < 2            ? 2
                          : at_once < RANKS_MOST ? at_once
                                                 : RANKS_MOST,
                 .added = (size_t)bytes / sizeof(float),
                 .all = (size_t)room / sizeof(float)};
    double seconds = 0;
    tdm_status status = open_ranks(&all, host);
    if (status == TDM_OK) status = add_often(&all, &seconds);
    close_ranks(&all, host);
    *cost = seconds / fmax((double)all.count / cores, 1) / ((double)all.added * sizeof(float)); /* in turns */
    return status;
}
