#include "modes/compress/compress.h"

#include "modes/compress/powersgd.h"
#include "runtime/base/status.h"

tdm_dtype tdm__compressed_type(const tdm_job *job, int replicas) {
    const int type = job->parallel.ddp.compress.type;
    if (replicas == 1) return TDM_DTYPE_F32;
    return type == TDM_COMPRESS_BF16 ? TDM_DTYPE_BF16 : type == TDM_COMPRESS_FP16 ? TDM_DTYPE_F16 : TDM_DTYPE_F32;
}

tdm_status tdm__compress_round(const tdm_replica *replica, tdm_dtype type, float *x, size_t count) {
    if (type == TDM_DTYPE_F32) return TDM_OK;
    return replica->device->ops->arenas->round(replica->device, type, x, count);
}

int64_t tdm__compressed_bytes(const tdm_plan *plan, const tdm_job *job, int replicas, int64_t step) {
    const tdm_compress_section *settings = &job->parallel.ddp.compress;
    const bool factors = settings->type == TDM_COMPRESS_POWERSGD && replicas > 1 && step > settings->start_step;
    size_t floats = 0;
    for (int k = 0; k < plan->stage_count; k++)
        floats += factors ? tdm__powersgd_floats(plan, settings, k) : plan->stages[k].trained_floats;
    return (int64_t)(floats * tdm_dtype_bytes(tdm__compressed_type(job, replicas)));
}

/* Does the job demand a backend that reduces in device memory? */
static bool demands_device(const tdm_job *job) {
#define OF_BUILT_IN(key) (void)0
#define OF_HOSTS_MODULE(key) (void)0
#define OF_DEVICE_MODULE(key) \
    if (job->parallel.ddp.backend == TDM_BACKEND_##key) return true
#define TDM_BACKEND(key, name, source) OF_##source(key);
#include <tandem/sys/backends.def>
#undef TDM_BACKEND
    return false;
}

/* On a GPU, PowerSGD works in host memory, and so does any compression with several stages unless the job demands a
 * backend for device memory. Then it takes no device memory. */
size_t tdm__compression_memory(const tdm_plan *plan, const tdm_job *job, int replicas, int stage) {
    const tdm_compress_section *settings = &job->parallel.ddp.compress;
    const bool factors = settings->type == TDM_COMPRESS_POWERSGD;
    if (replicas == 1 || settings->type == TDM_COMPRESS_NONE) return 0;
    if (plan->options.ingests && (factors || (plan->stage_count > 1 && !demands_device(job)))) return 0;
    return factors ? tdm__powersgd_bytes(plan, settings, stage) : plan->stages[stage].trained_floats * sizeof(uint16_t);
}
