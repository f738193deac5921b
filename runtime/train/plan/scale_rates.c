/* Measures what ranks of one host cost one another on this machine: adding gradients in shared memory, and sharing that
 * memory. */
#include <math.h>
#include <stdlib.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/cpus.h"
#include "runtime/comm/comm.h"
#include "runtime/train/plan/plan_scale.h"

enum { RANKS_MOST = 4, WARM_UP = 2, MEASURED = 7, TIMEOUT_MS = 60000, LEAST_BYTES = 1 << 20, MOST_BYTES = 32 << 20 };

/* Each rank's communicator has a thread of its own for calls that are started. */
typedef struct ranks {
    int count, cores;
    tdm_comm *together[RANKS_MOST], *alone[RANKS_MOST]; /* all; of one rank */
    float *numbers[RANKS_MOST];
    size_t added, copied; /* of them; of one half to the other */
} ranks;

typedef tdm_status start_call(ranks *all, int rank, tdm_comm_request **request);

static tdm_status start_adding(ranks *all, int rank, tdm_comm_request **request) {
    const tdm_span span = {all->numbers[rank], all->added, TDM_DTYPE_F32};
    return tdm_comm_start_all_reduce(all->together[rank], span, TDM_REDUCE_SUM, request);
}

/* Among one rank this copies. */
static tdm_status start_copying(ranks *all, int rank, tdm_comm_request **request) {
    const tdm_span from = {all->numbers[rank], all->copied, TDM_DTYPE_F32};
    const tdm_span to = {all->numbers[rank] + all->copied, all->copied, TDM_DTYPE_F32};
    return tdm_comm_start_all_gather(all->alone[rank], from, to, request);
}

/* The first `count` ranks, at once. *ms: of the one that took least, which waited for no other one to begin. */
static tdm_status call_once(ranks *all, int count, start_call *start, double *ms) {
    tdm_comm_request *request[RANKS_MOST] = {NULL};
    tdm_status status = TDM_OK;
    *ms = INFINITY;
    for (int r = 0; r < count && status == TDM_OK; r++) status = start(all, r, &request[r]);
    for (int r = 0; r < count && request[r] != NULL; r++) {
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
static tdm_status call_often(ranks *all, int count, start_call *start, double *seconds) {
    double ms[WARM_UP + MEASURED];
    for (int i = 0; i < WARM_UP + MEASURED; i++) TDM_TRY(call_once(all, count, start, &ms[i]));
    qsort(ms + WARM_UP, MEASURED, sizeof(*ms), by_value);
    *seconds = ms[WARM_UP + MEASURED / 2] / 1e3;
    return TDM_OK;
}

static tdm_status open_ranks(ranks *all, const tdm_host *host) {
    const size_t count = all->added > 2 * all->copied ? all->added : 2 * all->copied;
    TDM_TRY(tdm_comm_open_threads(all->together, all->count, host, TIMEOUT_MS));
    for (int r = 0; r < all->count; r++) {
        TDM_TRY(tdm_comm_open_threads(&all->alone[r], 1, host, TIMEOUT_MS));
        TDM_TRY(tdm__new(host, &all->numbers[r], count, sizeof(float), "gradients to measure with"));
    }
    return TDM_OK;
}

static void close_ranks(ranks *all, const tdm_host *host) {
    for (int r = 0; r < all->count; r++) {
        tdm_comm_close(all->together[r]);
        tdm_comm_close(all->alone[r]);
        tdm__delete(host, all->numbers[r]);
    }
}

/* With fewer cores than ranks these take turns. */
static tdm_status measure(ranks *all, tdm_scale_rates *out) {
    const double bytes = (double)all->added * sizeof(float), turns = (double)all->count / all->cores;
    double adding, copying, one;
    TDM_TRY(call_often(all, all->count, start_adding, &adding));
    TDM_TRY(call_often(all, all->count, start_copying, &copying));
    TDM_TRY(call_often(all, 1, start_copying, &one));
    out->cost = adding / fmax(turns, 1) / bytes;
    out->sharing = 1;
    if (all->cores > 1 && one > 0)
        out->sharing += fmax(copying / one - 1, 0) * (all->cores - 1) / (fmin(all->count, all->cores) - 1);
    return TDM_OK;
}

static size_t numbers_in(double bytes) {
    return (size_t)fmin(fmax(bytes, LEAST_BYTES), MOST_BYTES) / sizeof(float);
}

tdm_status tdm__scale_measure_rates(const tdm_host *host, int devices, double bucket, double update,
                                    tdm_scale_rates *out) {
    ranks all = {.cores = tdm__cpus_available(host), .added = numbers_in(bucket), .copied = numbers_in(update / 2)};
    const int at_once = devices < all.cores ? devices : all.cores;
    all.count = at_once < 2 ? 2 : at_once < RANKS_MOST ? at_once : RANKS_MOST;
    tdm_status status = open_ranks(&all, host);
    if (status == TDM_OK) status = measure(&all, out);
    close_ranks(&all, host);
    return status;
}
