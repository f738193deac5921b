/* The data of a run: datasets, the loaders that make batches of them, and how these reach the replicas. */
#include <stdio.h>

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/data/transforms/mixing.h"
#include "runtime/data/transform.h"
#include "runtime/data/transforms/transforms.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/loss_use.h"
#include "runtime/train/run.h"

void tdm__data_print(const tdm_dataset *dataset, char out[TDM_DATA_FOUND]) {
    char shape[64];
    tdm__shape_print(shape, sizeof(shape), &dataset->x_shape);
    snprintf(out, TDM_DATA_FOUND, "%lld of %s %s", (long long)dataset->count, shape,
             dataset->x_is_bytes ? "bytes" : "floats");
}

void tdm__data_inputs_of(const tdm_graph *graph, tdm_data_inputs *out) {
    *out = (tdm_data_inputs){.count = graph->inputs[0].name != NULL ? graph->input_count : 0};
    for (int k = 0; k < out->count; k++)
        out->item[k] = (tdm_data_input){.name = graph->inputs[k].name,
                                        .shape = graph->values[k].shape,
                                        .first = (size_t)graph->inputs[k].first,
                                        .count = (size_t)graph->inputs[k].count};
}

tdm_status tdm__data_wanted_of(const tdm_job *job, const tdm_graph *graph, const char *module_path,
                               const tdm_loss_def **loss, tdm_data_wanted *wanted) {
    const tdm_graph_value *output = &graph->values[graph->output];
    const tdm_origin *origin = output->producer >= 0 ? &graph->nodes[output->producer].origin : NULL;
    int64_t classes = 0;
    *loss = tdm_builtin_losses[job->loss.type];
    TDM_TRY(tdm__loss_take_output(*loss, &job->loss, graph, graph->output, origin, &classes));
    *wanted = (tdm_data_wanted){.input = graph->sample,
                                .target_kind = (*loss)->target,
                                .loss_of_values = tdm__loss_use(*loss)->of_values,
                                .classes = classes,
                                .target_width = tdm__shape_count(&output->shape),
                                .seed = job->seed,
                                .rng_profile = job->rng_profile,
                                .ignore_index = job->loss.ignore_index,
                                .transform = &job->data.transform,
                                .module_path = module_path};
    tdm__data_inputs_of(graph, &wanted->inputs);
    return TDM_OK;
}

static bool mixes(const tdm_run *run) {
    return !run->options.predicts && tdm__transform_mixes(&run->job->data.transform);
}

/* Whole numbers stay whole: normalize leaves them alone, where it can, and nothing mixes them. */
static tdm_status check_index(const tdm_run *run, const tdm_data_inputs *inputs, const tdm_data_index *index) {
    if (mixes(run))
        TDM_FAIL(TDM_E_CONFIG, "data.transform: mixup and cutmix would mix the numbers that %s looks up; remove them",
                 index->layer);
    if (inputs->count < 2 || !tdm__transform_normalizes(&run->job->data.transform, inputs, (size_t)index->first))
        return TDM_OK;
    TDM_FAIL(TDM_E_CONFIG,
             "data.transform: normalize would change the numbers that %s looks up; leave their input out of its "
             "`inputs`",
             index->layer);
}

/* Which numbers of a sample layers look something up by. */
static tdm_status take_indices(tdm_run *run, tdm_data_wanted *wanted) {
    tdm_data_index *index;
    tdm_graph_indices from;
    TDM_TRY(tdm__zone_new(&run->zone, &index, TDM_DATA_INDICES, sizeof(*index)));
    wanted->index = index;
    for (size_t at = 0; wanted->index_count < TDM_DATA_INDICES && tdm__graph_next_indices(run->graph, &at, &from);) {
        tdm_data_index *to = &index[wanted->index_count];
        *to = (tdm_data_index){.first = from.first, .count = from.count, .below = from.node->index_below};
        TDM_TRY(tdm__zone_printf(&run->zone, &to->layer, "%s '%s'", from.node->op->name, from.node->name));
        if (from.count > 0) wanted->index_count++;
        if (from.count > 0) TDM_TRY(check_index(run, &wanted->inputs, to));
    }
    return TDM_OK;
}

/* For checkpoints: a run that continues from one learns that the samples have changed. Those that a program's function
 * gives are not asked for before they are needed. */
static tdm_status note_data(tdm_run *run) {
    char found[TDM_DATA_FOUND], hash[TDM_HASH_TEXT];
    if (run->options.predicts || run->rank != 0) return TDM_OK;
    tdm__data_print(run->train, found);
    if (tdm__dataset_is_function(run->train)) {
        snprintf(run->data, sizeof(run->data), "%s of the program's own", found);
        return TDM_OK;
    }
    TDM_TRY(tdm__dataset_hash(run->train, hash));
    snprintf(run->data, sizeof(run->data), "%s, some of them hash to %s", found, hash);
    return TDM_OK;
}

static tdm_status open_one(tdm_run *run, tdm_dataset **out, const tdm_source *source, const tdm_data_spec *spec,
                           const tdm_data_wanted *wanted) {
    return source != NULL ? tdm__dataset_open_source(out, run->host, source, wanted)
                          : tdm__dataset_open(out, run->host, spec, wanted);
}

static bool are_same(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : tdm__text_same(a, b);
}

/* A run that only predicts gets its samples from its program. */
static bool has_no_data(const tdm_run *run) {
    return run->options.predicts && run->options.train == NULL && run->job->data.train.format == TDM_DATA_NONE;
}

/* Samples of a program are not pictures that tandem reads. */
static void warn_of_steps(const tdm_run *run) {
    const tdm_transform_spec *transform = &run->job->data.transform;
    if (run->rank != 0 || (run->options.train == NULL && run->options.eval == NULL)) return;
    if (tdm__transform_picture_steps(transform) > 0)
        TDM_WARN(run->host, "data",
                 "data.transform has steps for pictures, and they do not apply to samples of the program's own source");
}

tdm_status tdm__run_open_data(tdm_run *run, const tdm_data_wanted *wanted) {
    const tdm_data_section *data = &run->job->data;
    TDM_TRY(tdm__run_notes_of_weights(run));
    if (has_no_data(run)) return TDM_OK;
    warn_of_steps(run);
    if (run->options.train == NULL && data->train.format == TDM_DATA_NONE)
        TDM_FAIL(TDM_E_CONFIG,
                 "the job has no data.train, and the program gives no samples (tdm_run_options.train); to try the job "
                 "without data, write `data: {train: {format: synthetic}}`");
    tdm_data_wanted own = *wanted, eval = *wanted;
    TDM_TRY(take_indices(run, &own));
    eval.index = own.index, eval.index_count = own.index_count;
    own.class_names = &run->classes;
    own.features = run->features;
    TDM_TRY(open_one(run, &run->train, run->options.train, &data->train, &own));
    TDM_TRY(tdm__run_take_notes(run));
    eval.class_names = &run->classes;
    eval.features = run->features;
    eval.evaluates = true;
    eval.is_told = run->options.train == NULL && are_same(data->train.path, data->eval.path) &&
                   are_same(data->train.file, data->eval.file);
    if (run->options.eval != NULL || data->eval.format != TDM_DATA_NONE)
        TDM_TRY(open_one(run, &run->eval, run->options.eval, &data->eval, &eval));
    return note_data(run);
}

/* Each replica needs a copy, and several may share a device: together they may take a quarter of its free memory. */
static tdm_status has_room(const tdm_run *run, bool *room) {
    int count = run->mode->replica_count;
    *room = true;
    for (int i = 0; i < count && *room; i++) {
        const tdm_device *device = run->mode->replica[i]->device;
        size_t copies = 0;
        tdm_device_info info;
        for (int k = 0; k < count; k++) copies += run->mode->replica[k]->device->index == device->index;
        TDM_TRY(device->ops->info(device->index, &info));
        *room = run->train->resident_bytes <= (size_t)info.memory_free / 4 / copies;
    }
    return TDM_OK;
}

/* A GPU's batch is bytes, or indices of samples if its memory holds them all; the GPU makes floats of them. Mixed
 * samples are floats. */
static tdm_status choose_form(const tdm_run *run, const tdm_device *device, tdm_rows_form *form) {
    const tdm_dataset *dataset = run->train;
    int wanted_mode = run->job->data.resident;
    *form = TDM_ROWS_FLOATS;
    if (device->ops->arenas->ingest == NULL) return TDM_OK;
    /* A device treats the bytes of a sample as those of one picture. */
    const bool stays_floats = mixes(run) || (dataset->x_is_bytes && run->graph->input_count > 1);
    if (!stays_floats) *form = TDM_ROWS_RAW;
    const bool can_stay = dataset->resident_bytes > 0 && !stays_floats;
    if (wanted_mode == TDM_RESIDENT_ALWAYS && !can_stay)
        TDM_WARN(run->host, "data",
                 "data.resident: these samples cannot be kept on the device, they come with each batch");
    if (!can_stay || wanted_mode == TDM_RESIDENT_NEVER) return TDM_OK;
    bool room = true;
    if (wanted_mode == TDM_RESIDENT_AUTO) TDM_TRY(has_room(run, &room));
    if (room) *form = TDM_ROWS_INDEX;
    return TDM_OK;
}

static tdm_status lend(void *user, void **out, size_t bytes, const char *what) {
    tdm_device *device = user;
    return device->ops->allocate_host(device, out, bytes, what);
}

static void take_back(void *user, void *block) {
    tdm_device *device = user;
    device->ops->release_host(device, block);
}

static tdm_sampler sampler_of(const tdm_run *run) {
    const tdm_job *job = run->job;
    return (tdm_sampler){.count = run->train->count,
                         .replicas = run->replicas,
                         .shuffle = job->data.shuffle,
                         .drop_last = job->data.drop_last,
                         .seed = job->seed,
                         .joins = job->parallel.ddp.join};
}

static tdm_status open_loader(tdm_run *run) {
    const tdm_job *job = run->job;
    const tdm_mode_ops *ops = run->mode->ops;
    tdm_device *device = run->mode->replica[0]->device;
    tdm_loader_options options = {.sampler = sampler_of(run),
                                  .per_device = run->per_device,
                                  .scatter = run->mode->scatter,
                                  .first_replica = ops->process_per_device ? run->rank : 0,
                                  .replicas_here = ops->process_per_device ? 1 : run->replicas,
                                  .workers = run->options.predicts ? 0 : job->data.workers, /* reads none ahead */
                                  .ahead = TDM_TRAIN_AHEAD,
                                  .held = run->mode->depth,
                                  .transform = &job->data.transform,
                                  .mixes = mixes(run),
                                  .ignore_index = job->loss.ignore_index,
                                  .drop_last_batch = job->data.drop_last};
    TDM_TRY(choose_form(run, device, &options.form));
    if (device->ops->arenas->ingest != NULL) options.memory = (tdm_block_memory){lend, take_back, device};
    if (run->rank == 0 && run->train->x_is_bytes && !job->data.transform.to_float)
        TDM_WARN(run->host, "data",
                 "samples are bytes and data.transform has no to_float: the model sees numbers up to 255");
    TDM_TRY(tdm__loader_open(&run->loader, run->host, run->train, &options));
    run->form = options.form;
    run->steps_per_epoch = tdm__loader_steps_per_epoch(run->loader);
    if (run->rank == 0 && !run->options.predicts && run->per_device * run->replicas > run->train->count)
        TDM_WARN(run->host, "data",
                 "a step takes %lld samples and data.train has %lld, so every step is a whole epoch; lower "
                 "train.batch.per_device",
                 (long long)(run->per_device * run->replicas), (long long)run->train->count);
    run->steps_total = job->train.steps;
    if (job->train.steps == TDM_INT_NULL &&
        __builtin_mul_overflow(job->train.epochs, run->steps_per_epoch, &run->steps_total))
        TDM_FAIL(TDM_E_CONFIG, "train.epochs: %lld epochs of %lld steps are too many", (long long)job->train.epochs,
                 (long long)run->steps_per_epoch);
    return TDM_OK;
}

/* Compression that begins later than the run ends is most likely a mistake. */
static void warn_of_late_compression(const tdm_run *run) {
    const tdm_compress_section *compress = &run->job->parallel.ddp.compress;
    if (run->rank != 0 || run->replicas == 1 || run->options.predicts || compress->type != TDM_COMPRESS_POWERSGD ||
        compress->start_step < run->steps_total)
        return;
    TDM_WARN(run->host, "comm",
             "parallel.ddp.compress begins after step %lld (start_step), and the run ends after %lld: nothing is "
             "compressed",
             (long long)compress->start_step, (long long)run->steps_total);
}

static tdm_status feed_replicas(tdm_run *run) {
    tdm_feed feed = {.packing = tdm__loader_packing(run->loader),
                     .form = run->form,
                     .dataset = run->train,
                     .transform = tdm__loader_transform(run->loader)};
    for (int i = 0; i < run->mode->replica_count; i++) TDM_TRY(tdm__replica_feed(run->mode->replica[i], &feed));
    return TDM_OK;
}

int64_t tdm__eval_workers(const tdm_job *job, const tdm_dataset *dataset, int loaders) {
    return dataset->ops->picture != NULL ? job->data.workers / loaders : 0; /* only pictures take long to read */
}

static tdm_status open_eval_loaders(tdm_run *run) {
    if (run->eval == NULL) return TDM_OK;
    int count = run->mode->replica_count;
    TDM_TRY(tdm__zone_new(&run->zone, &run->eval_loaders, (size_t)count, sizeof(*run->eval_loaders)));
    tdm_loader_options options = {.sampler = {.count = run->eval->count, .replicas = 1},
                                  .stride = run->world > 1 ? run->world : count,
                                  .workers = tdm__eval_workers(run->job, run->eval, count),
                                  .per_device = run->eval_rows,
                                  .scatter = TDM_SCATTER_STRIDED,
                                  .replicas_here = 1,
                                  .ahead = TDM_EVAL_AHEAD,
                                  .transform = &run->job->data.transform};
    for (; run->eval_loader_count < count; run->eval_loader_count++)
        TDM_TRY(tdm__loader_open(&run->eval_loaders[run->eval_loader_count], run->host, run->eval, &options));
    return TDM_OK;
}

static tdm_status check_pass(const tdm_run *run, int64_t rows, bool training) {
    const tdm_rows_fault fault = tdm__graph_rows_fault(run->graph, rows, training);
    if (fault.node == NULL) return TDM_OK;
    TDM_FAIL_AT(&fault.node->origin, TDM_E_CONFIG, "%s; use another %s", fault.text,
                training ? "train.batch, or data.drop_last: true" : "eval.batch");
}

tdm_status tdm__run_check_rows(const tdm_run *run) {
    const tdm_job *job = run->job;
    tdm_sampler order = sampler_of(run), eval = {.count = run->eval != NULL ? run->eval->count : 0, .replicas = 1};
    bool with_tail = !job->data.drop_last && run->steps_total >= run->steps_per_epoch;
    TDM_TRY(check_pass(run,
                       tdm__sampler_fewest_rows(&order, run->per_device, job->train.accumulate, with_tail,
                                                job->parallel.sync_batchnorm),
                       true));
    return check_pass(run, tdm__sampler_fewest_rows(&eval, run->eval_rows, 1, true, false), false);
}

tdm_status tdm__run_open_loaders(tdm_run *run) {
    run->steps_per_epoch = run->steps_total = 1;
    if (run->train == NULL) return TDM_OK;
    TDM_TRY(open_loader(run));
    warn_of_late_compression(run);
    TDM_TRY(feed_replicas(run));
    return open_eval_loaders(run);
}

/* A mode hands the shards of a batch to its replicas in order, the same number to each. */
tdm_status tdm__run_prefetch(tdm_run *run) {
    /* Where replicas read rows where the loader made them, there is nothing to fetch. */
    if (tdm__replica_in_host(run->mode->replica[0])) return TDM_OK;
    const tdm_batch *batch = tdm__loader_peek(run->loader);
    const int count = run->mode->replica_count;
    if (batch == NULL) return TDM_OK;
    const int each = batch->shard_count / count;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < run->plan->stage_count; k++)
            TDM_TRY(tdm__replica_prefetch(run->mode->replica[i]->stages[k], batch->shard + i * each, each));
    return TDM_OK;
}

/* A prefetched batch may still be on its way out of memory that the loader is about to fill again. */
tdm_status tdm__run_seek(tdm_run *run) {
    for (int i = 0; i < run->mode->replica_count; i++) TDM_TRY(tdm__replica_drop_prefetched(run->mode->replica[i]));
    return run->loader != NULL ? tdm__loader_seek(run->loader, run->epoch, run->step_in_epoch) : TDM_OK;
}

/* The feeds end first: no copy may read the loader's memory when it closes. */
void tdm__run_close_loaders(tdm_run *run) {
    for (int i = 0; run->mode != NULL && i < run->mode->replica_count; i++)
        (void)tdm__replica_feed(run->mode->replica[i], NULL);
    tdm__loader_close(run->loader);
    for (int i = 0; i < run->eval_loader_count; i++) tdm__loader_close(run->eval_loaders[i]);
}
