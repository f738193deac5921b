/* Whether a run fits into host.memory_limit, before its replicas are made. */
#include "runtime/base/call/limit.h"

#include <stdio.h>

#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/train/plan/plan_memory.h"
#include "runtime/train/run.h"

/* What the largest device holds, the largest parts first where a user can change them. */
static void print_parts(char *out, size_t room, const tdm_run *run) {
    char activations[32], parameters[32], optimizer[32];
    const tdm_memory most = tdm__plan_memory(run->plan, run->job, run->replicas, 0);
    snprintf(out, room, "parameters and gradients %s, optimizer %s, activations %s",
             tdm__print_bytes(parameters, most.bytes[TDM_COST_PARAMETERS] + most.bytes[TDM_COST_GRADIENTS]),
             tdm__print_bytes(optimizer, most.bytes[TDM_COST_OPTIMIZER]),
             tdm__print_bytes(activations, most.bytes[TDM_COST_ACTIVATIONS]));
}

tdm_status tdm__run_check_limit(const tdm_run *run) {
    const tdm_limit limit = tdm__limit_of(run->host);
    if (limit.most == 0 || !tdm__device_on_host(run->compute.device)) return TDM_OK;
    const size_t replicas = tdm__replicas_memory(run->plan, run->job, run->replicas);
    size_t batches = 0;
    if (run->train != NULL) batches += tdm__batches_memory(run->plan, run->job, run->train, run->replicas, false);
    if (run->eval != NULL) batches += tdm__batches_memory(run->plan, run->job, run->eval, run->replicas, true);
    const size_t needed = limit.held + replicas + batches;
    if (needed <= limit.most) return TDM_OK;
    char all[32], most[32], held[32], of_replicas[32], of_batches[32], parts[160];
    print_parts(parts, sizeof(parts), run);
    TDM_FAIL(TDM_E_MEMORY,
             "host.memory_limit is %s, and this run needs %s at least: %s of replicas (%s on device 0), %s of batches "
             "read ahead, %s of samples and settings; make train.batch.per_device or data.workers smaller, "
             "train.accumulate larger, freeze layers, use fewer devices or threads, or raise the limit",
             tdm__print_bytes(most, limit.most), tdm__print_bytes(all, needed), tdm__print_bytes(of_replicas, replicas),
             parts, tdm__print_bytes(of_batches, batches), tdm__print_bytes(held, limit.held));
}
