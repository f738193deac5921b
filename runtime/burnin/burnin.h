/* The burn-in's parts: what its threads share, and one device's. */
#ifndef TDM_BURNIN_BURNIN_H
#define TDM_BURNIN_BURNIN_H

#include <pthread.h>
#include <stdatomic.h>

#include <tandem/burnin.h>

#include "runtime/base/memory.h"
#include "runtime/base/call/guard.h"
#include "runtime/base/system/thread.h"

/* One device: opened by the calling thread, then used by its own. */
typedef struct tdm_burnin_worker {
    tdm_burnin *all;
    tdm_job job;            /* of the run */
    tdm_run *run;           /* NULL: it could not be opened */
    tdm_burnin_device seen; /* name, times; verdict and why from verdict.c, or of a failure */
    float *first;           /* [samples, outputs]: the outputs of the first pass */
    float *again;           /* [batch, outputs]: of a later one */
    int64_t covered;        /* samples in `first` */
    tdm_thread thread;
    bool is_running; /* the thread is to be joined */
    atomic_llong samples, wrong;
} tdm_burnin_worker;

struct tdm_burnin {
    tdm_guard guard;
    tdm_zone zone; /* of the job */
    const tdm_host *host;
    tdm_burnin_options options;
    tdm_job job;  /* predicts, on one device */
    tdm_ints ids; /* the devices of the user's job */
    const tdm_graph *graph;
    tdm_burnin_worker *worker;
    int count;
    tdm_run *reader; /* that of the device which was opened first: it has the data */
    int64_t samples, batch, inputs, outputs;
    float *x;            /* [samples, inputs] */
    int64_t iterations;  /* batches for each device; INT64_MAX: no limit */
    int64_t duration_ns; /* INT64_MAX: no limit */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ready, ended; /* workers; under the lock */
    bool has_started; /* under the lock; start_ns is set before */
    int64_t start_ns;
    atomic_bool stops;
    bool was_stopped;
    bool has_lock, has_run, equal_bits;
    double seconds, tolerance;
};

/* worker.c: the thread of a device. */
void tdm__burnin_work(void *worker);
/* The device's verdict is FAILED, for what the thread's error record says. */
void tdm__burnin_fail(tdm_burnin_worker *worker);

/* verdict.c: compares the outputs of all devices, and gives each its verdict. TDM_E_NUMERIC as tdm_burnin_run. */
tdm_status tdm__burnin_judge(tdm_burnin *burnin);

/* arbiter.c: y[outputs] of a sample, computed by the host's processor with other kernels than the devices'. */
tdm_status tdm__burnin_arbitrate(const tdm_burnin *burnin, int64_t sample, float *y);

#endif
