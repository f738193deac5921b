/* How many threads a replica gets: its share of the CPUs on which its host lets it run. */
#include "runtime/base/call/host.h"
#include "runtime/base/status.h"
#include "runtime/base/system/cpus.h"
#include "runtime/comm/comm.h"
#include "runtime/train/run.h"

/* Returns the number of threads if it does not depend on the CPUs, else 0. */
static int fixed_threads(const tdm_job *job, const tdm_compute *compute) {
    if (job->parallel.threads_per_device != TDM_INT_NULL) return (int)job->parallel.threads_per_device;
    return tdm__device_on_host(compute->device) ? 0 : 1; /* a GPU's replica needs one */
}

static int share(const tdm_job *job, int cpus, int at_once) {
    const int threads = cpus / (at_once * (int)job->parallel.stages);
    return threads < 1 ? 1 : threads;
}

int tdm__threads_of(const tdm_job *job, const tdm_compute *compute, const tdm_host *host, int replicas) {
    const int fixed = fixed_threads(job, compute);
    if (fixed > 0) return fixed;
    return share(job, tdm__cpus_available(host), tdm_builtin_modes[job->parallel.mode]->takes_turns ? 1 : replicas);
}

/* mpirun and srun bind each rank to CPUs of its own, and then it has all of those; torchrun and `tandem train` do not.
 * Where a control group limits the host's ranks together, they share its quota, however they are bound. */
static int sharers_of(const tdm_run *run, const tdm_cpus *cpus) {
    const int local_world = run->options.local_world, local_rank = run->options.local_rank;
    const int here = local_world > 0 ? local_world : run->world, first = local_world > 0 ? run->rank - local_rank : 0;
    if (tdm__host_cpus(run->host) > 0) return 1; /* they are this process's alone */
    if (tdm__cgroup_cpus() > 0) return here;
    return tdm__cpus_sharers(cpus + first, here, run->rank - first);
}

/* The smallest share of all ranks counts for each: the others would wait for that rank in every step, and one number of
 * threads makes one plan. All ranks take part, because each may have a number of threads from its own command line. */
tdm_status tdm__run_threads(tdm_run *run, int *threads) {
    const tdm_job *job = run->job;
    tdm_cpus own, cpus[TDM_REPLICAS_MAX];
    const size_t words = sizeof(own.word) / sizeof(own.word[0]);
    *threads = tdm__threads_of(job, &run->compute, run->host, run->replicas);
    if (run->comm == NULL) return TDM_OK;
    tdm__cpus_read(&own);
    TDM_TRY(tdm_comm_all_gather(run->comm, (tdm_span){own.word, words, TDM_DTYPE_I64},
                                (tdm_span){cpus, words * (size_t)run->world, TDM_DTYPE_I64}));
    const bool is_fixed = fixed_threads(job, &run->compute) > 0;
    int64_t least = is_fixed ? INT64_MAX : share(job, tdm__cpus_available(run->host), sharers_of(run, cpus));
    TDM_TRY(tdm_comm_all_reduce(run->comm, (tdm_span){&least, 1, TDM_DTYPE_I64}, TDM_REDUCE_MIN));
    if (!is_fixed) *threads = (int)least;
    return TDM_OK;
}
