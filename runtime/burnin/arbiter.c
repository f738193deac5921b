/* Who is right where devices disagree: the host's processor. For devices that are the processor themselves, its
 * reference kernels. */
#include "runtime/base/status.h"
#include "runtime/burnin/burnin.h"
#include "runtime/train/run.h"

tdm_status tdm__burnin_arbitrate(const tdm_burnin *burnin, int64_t sample, float *y) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_job job = burnin->job;
    tdm_run *run = NULL;
    options.host = burnin->host;
    options.module_path = burnin->options.module_path;
    options.predicts = 1;
    job.parallel.device = TDM_DEVICE_CPU;
    job.parallel.kernels = tdm__device_on_host(burnin->reader->compute.device) ? TDM_KERNELS_REF : TDM_KERNELS_AUTO;
    job.parallel.device_ids = (tdm_ints){.count = 1};
    job.parallel.threads_per_device = TDM_INT_NULL;
    job.train.precision = TDM_F32;
    job.data.train.format = job.data.eval.format = TDM_DATA_NONE;
    job.train.per_device = job.eval.batch = 1;
    TDM_TRY(tdm_run_open(&run, &job, burnin->graph, &options));
    const tdm_status status = tdm_run_predict_as(run, TDM_INPUT_READY, burnin->x + sample * burnin->inputs, 1, y);
    tdm_run_close(run);
    return status;
}
