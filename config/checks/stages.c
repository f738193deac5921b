/* Replicas over several devices: parallel.stages, and `stage` of the layers. */
#include "config/checks/checks.h"
#include "config/config_private.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/module/module.h"

/* ---- settings ---- */

/* Stages run micro-batches at the same time: one that is smaller than the others would leave them waiting. */
static void check_micro_batches(tdm_config *config) {
    const tdm_job *job = &config->settings.job;
    const tdm_train_section *train = &job->train;
    const bool each = train->per_device != TDM_INT_NULL;
    if (!each && train->global_batch == TDM_INT_NULL) return;
    const int64_t rows = each ? train->per_device : train->global_batch / tdm__job_replicas(job);
    if (rows % train->accumulate == 0) return;
    tdm__conflict(config, "train.accumulate", each ? "train.batch.per_device" : "train.batch.global",
                  TDM_WORDS(config,
                            "train.accumulate must divide the %lld samples of a replica if parallel.stages is above 1, "
                            "got %lld",
                            (long long)rows, (long long)train->accumulate));
}

void tdm__check_stages(tdm_config *config) {
    const tdm_parallel_section *parallel = &config->settings.job.parallel;
    const int64_t stages = parallel->stages, devices = parallel->device_ids.count;
    if (stages == 1) return;
    if (devices % stages != 0)
        tdm__conflict(
            config, "parallel.device_ids", "parallel.stages",
            TDM_WORDS(config,
                      "parallel.device_ids must name a device for each of the %lld stages of a replica, and as "
                      "many again for each further replica, got %lld",
                      (long long)stages, (long long)devices));
    check_micro_batches(config);
}

/* ---- layers ---- */

/* Whoever writes `stages: 1` wants one device, and `tandem plan` says that `stage` is ignored. Whoever writes nothing
 * has forgotten it. */
void tdm__check_missing_stages(tdm_config *config) {
    if (tdm__check_is_written(config, "parallel.stages")) return;
    for (int i = 0; i < config->layer_count; i++) {
        const tdm_layer *layer = &config->layers[i];
        if (layer->head.stage == TDM_INT_NULL || layer->head.stage == 0) continue;
        TDM_FAULT(
            config, CONFLICT, layer->at, tdm__layer_key(config, i, "stage"),
            "stages count from 0; write parallel.stages: as many as there are, or 1 to run the layers on one device",
            "%s '%s' is in stage %lld, but parallel.stages is 1", layer->op != NULL ? layer->op->name : "the layer",
            layer->name, (long long)layer->head.stage);
        return; /* more of them would have the same cause */
    }
}

/* The layer that the engine's error names; -1: none. */
static int layer_of_error(const tdm_config *config, const tdm_error *error) {
    for (int i = 0; error->line > 0 && i < config->layer_count; i++)
        if (config->layers[i].at.line == error->line && config->layers[i].at.column == error->column) return i;
    return -1;
}

tdm_status tdm__check_cuts(tdm_config *config) {
    const int64_t stages = config->settings.job.parallel.stages;
    if (stages == 1) return TDM_OK;
    int *of_layer = NULL;
    double *flops = NULL;
    TDM_TRY(tdm__zone_new(&config->work, &of_layer, (size_t)config->layer_count, sizeof(*of_layer)));
    TDM_TRY(tdm__zone_new(&config->work, &flops, (size_t)config->layer_count, sizeof(*flops)));
    TDM_TRY(tdm__graph_step_flops(config->graph, NULL, flops));
    const tdm_status status = tdm__graph_stages(config->graph, flops, (int)stages, of_layer);
    if (status != TDM_E_CONFIG) return status;
    const tdm_error *error = tdm_error_last();
    const int index = layer_of_error(config, error);
    const bool is_of_layer = index >= 0;
    TDM_FAULT(config, CONFLICT,
              is_of_layer ? config->layers[index].at : tdm__config_position(config, "parallel.stages"),
              is_of_layer ? tdm__layer_key(config, index, "stage") : "parallel.stages", "", "%s", error->message);
    return TDM_OK;
}
