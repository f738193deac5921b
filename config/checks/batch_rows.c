/* Finds batches with too few rows for a layer. If the number of samples matters, this is checked here only when the
 * file gives that number, otherwise when the data is opened. */
#include "config/config_private.h"
#include "runtime/data/data.h"
#include "runtime/graph/graph.h"

/* The number of samples; 0: known only once the data is open. */
static int64_t samples_of(const tdm_data_spec *spec) {
    if (spec->range.count == 2) return spec->range.item[1] - spec->range.item[0];
    return tdm__data_is_made(spec->format) ? spec->samples : 0;
}

static void check_pass(tdm_config *config, int64_t rows, bool training) {
    const tdm_rows_fault fault = tdm__graph_rows_fault(config->graph, rows, training);
    if (fault.node == NULL) return;
    const tdm_layer *layer = &config->layers[fault.node - config->graph->nodes];
    TDM_FAULT(config, CONFLICT, layer->at, TDM_WORDS(config, "model.layers[%d]", (int)(layer - config->layers)),
              training ? "use another train.batch, or data.drop_last: true" : "use another eval.batch", "%s",
              fault.text);
}

void tdm__check_rows(tdm_config *config) {
    const tdm_job *job = &config->settings.job;
    const tdm_train_section *train = &job->train;
    int replicas = tdm__job_replicas(job);
    int64_t per_device = train->per_device != TDM_INT_NULL ? train->per_device : train->global_batch / replicas;
    int64_t samples = samples_of(&job->data.train), eval_samples = samples_of(&job->data.eval);
    bool with_tail = samples > 0 && !job->data.drop_last;
    tdm_sampler order = {.count = samples > 0 ? samples : per_device * replicas,
                         .replicas = replicas,
                         .drop_last = job->data.drop_last,
                         .joins = job->parallel.ddp.join};
    if (train->steps != TDM_INT_NULL) /* the run may stop before the last batch of the first epoch */
        with_tail = with_tail && train->steps > (tdm__sampler_per_replica(&order) - 1) / per_device;
    check_pass(config,
               tdm__sampler_fewest_rows(&order, per_device, train->accumulate, with_tail, job->parallel.sync_batchnorm),
               true);
    int64_t first, rows = job->eval.batch;
    if (rows == TDM_INT_NULL) rows = tdm__chunk(per_device, (int)train->accumulate, 0, &first);
    tdm_sampler eval = {.count = eval_samples > 0 ? eval_samples : rows, .replicas = 1};
    if (job->data.eval.format == TDM_DATA_NONE) return;
    check_pass(config, tdm__sampler_fewest_rows(&eval, rows, 1, true, false), false);
}
