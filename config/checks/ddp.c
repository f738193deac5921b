/* Options of ddp that do not go with others: parallel.ddp.join and parallel.ddp.compress. */
#include "config/object.h"

void tdm__check_ddp_options(tdm_config *config) {
    const tdm_parallel_section *parallel = &config->settings.job.parallel;
    if (parallel->sync_batchnorm && parallel->ddp.join)
        tdm__conflict(
            config, "parallel.ddp.join", "parallel.sync_batchnorm",
            "parallel.ddp.join leaves ranks without samples, which have no statistics to exchange; leave out join "
            "or sync_batchnorm");
    if (parallel->ddp.average == TDM_AVERAGE_RANKS && parallel->ddp.join)
        tdm__conflict(
            config, "parallel.ddp.join", "parallel.ddp.average",
            "parallel.ddp.join averages over the samples that are there, and a rank may have none; write average: "
            "samples");
    if (parallel->ddp.compress.type == TDM_COMPRESS_POWERSGD && parallel->mode != TDM_MODE_DDP &&
        parallel->device_ids.count > 1)
        tdm__conflict(
            config, "parallel.ddp.compress.type", "parallel.mode",
            "parallel.ddp.compress: powersgd needs mode ddp or a single device; single and dp do not compute it");
}
