/* Opening a run: ranks meet; then device, data, plan, replicas, initial weights, resume. What can be refused without
 * data is refused before data is read. */
#include <math.h>
#include <string.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/isa.h"
#include "runtime/base/limit/limit.h"
#include "runtime/base/log.h"
#include "runtime/base/call/sized.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"
#include "runtime/data/transforms/mixing.h"
#include "runtime/exec/repeats.h"
#include "runtime/optim/optim.h"
#include "runtime/train/run.h"

/* ---- what the job means here ---- */

/* bf16 has the whole numbers up to 256 only. */
static tdm_status check_indices(const tdm_run *run) {
    enum { EXACT = 257 };
    tdm_graph_indices from;
    if (run->job->train.precision != TDM_BF16) return TDM_OK;
    for (size_t at = 0; tdm__graph_next_indices(run->graph, &at, &from);) {
        if (from.node->index_below <= EXACT) continue;
        TDM_FAIL_AT(&from.node->origin, TDM_E_UNSUPPORTED,
                    "%s '%s' looks up numbers to %lld, and bf16 would round those above 256; write train.precision: "
                    "f32, or a vocabulary of at most %d",
                    from.node->op->name, from.node->name, (long long)from.node->index_below - 1, EXACT);
    }
    return TDM_OK;
}

/* The reference kernels take bf16 on every processor: they are there to compare with. */
static tdm_status check_precision(const tdm_run *run) {
    const tdm_job *job = run->job;
    TDM_TRY(check_indices(run));
    if (!tdm__device_on_host(run->compute.device) || job->train.precision == TDM_F32) return TDM_OK;
    if (job->train.precision == TDM_TF32)
        TDM_FAIL(
            TDM_E_UNSUPPORTED,
            "train.precision: the job runs on the CPU, which has no tf32; write f32, or see in `tandem doctor` why "
            "there is no GPU");
    if (job->parallel.kernels != TDM_KERNELS_REF && !tdm__has_fast_bf16())
        TDM_FAIL(TDM_E_UNSUPPORTED, "train.precision: " TDM_NO_FAST_BF16 "; write f32");
    return TDM_OK;
}

static tdm_status open_compute(tdm_run *run) {
    const tdm_job *job = run->job;
    tdm_compute_options options = {.device = job->parallel.device,
                                   .kernels = job->parallel.kernels,
                                   .ids = &job->parallel.device_ids,
                                   .module_path = run->options.module_path};
    TDM_TRY(tdm__compute_open(&run->compute, run->host, &options));
    TDM_INFO(run->host, "device", "%s: %s", run->compute.device->name, run->compute.report.text);
    return check_precision(run);
}

/* A program that gets every step's event, and has not allowed it to come late, gets it before the next step begins. All
 * ranks must begin and end steps in the same order, so they agree. */
static tdm_status agree_on_running_ahead(tdm_run *run) {
    int64_t ahead = run->options.on_event == NULL || run->options.run_ahead != 0;
    if (run->comm != NULL)
        TDM_TRY(tdm_comm_all_reduce(run->comm, (tdm_span){&ahead, 1, TDM_DTYPE_I64}, TDM_REDUCE_MIN));
    run->runs_ahead = ahead != 0;
    return TDM_OK;
}

/* Each replica has a device for each stage. */
static tdm_status check_stages(const tdm_run *run) {
    const tdm_parallel_section *parallel = &run->job->parallel;
    const int devices = parallel->device_ids.count;
    if (parallel->stages == 1) return TDM_OK;
    if (run->options.world == 0 && devices % parallel->stages != 0)
        TDM_FAIL(
            TDM_E_CONFIG,
            "parallel.device_ids: a replica of %lld stages needs as many devices, and each further replica as many "
            "again; there are %d, so write %d more",
            (long long)parallel->stages, devices, (int)(parallel->stages - devices % parallel->stages));
    if (run->options.world * parallel->stages > TDM_LIST_MAX)
        TDM_FAIL(TDM_E_CONFIG,
                 "parallel.stages: %d ranks of %lld stages are more than %d devices; start at most %d ranks",
                 run->options.world, (long long)parallel->stages, TDM_LIST_MAX, (int)(TDM_LIST_MAX / parallel->stages));
    return TDM_OK;
}

static tdm_status check_ranks(tdm_run *run) {
    const tdm_job *job = run->job;
    TDM_TRY(check_stages(run));
    int devices = tdm__job_replicas(job);
    run->world = run->options.world > 0 ? run->options.world : 1;
    run->rank = run->options.world > 0 ? run->options.rank : 0;
    run->replicas = devices;
    const int locals = run->options.local_world, local = run->options.local_rank;
    if (locals < 0 || locals > run->world || (locals > 0 && (local < 0 || local >= locals || local > run->rank)))
        TDM_FAIL(TDM_E_USAGE, "rank %d of %d: local rank %d of %d is no rank of this host", run->rank, run->world,
                 local, locals);
    if (run->rank < 0 || run->rank >= run->world || run->world > TDM_REPLICAS_MAX)
        TDM_FAIL(TDM_E_USAGE, "rank %d of %d: ranks run from 0 to %d; at most %d", run->rank, run->world,
                 run->world - 1, TDM_REPLICAS_MAX);
    if (!tdm_builtin_modes[job->parallel.mode]->process_per_device) {
        if (run->world > 1) TDM_FAIL(TDM_E_USAGE, "parallel.mode must be ddp to run as %d processes", run->world);
        return TDM_OK;
    }
    if (devices > 1 || run->world > 1) TDM_EXTRA(RANKS);
    if (run->options.world == 0 && devices > 1)
        TDM_FAIL(TDM_E_USAGE,
                 "ddp with %d replicas needs %d processes, one for each rank: `tandem train` starts them; a "
                 "program passes rank, world and launch_fd",
                 devices, devices);
    run->replicas = run->world;
    return tdm__run_check_backend(run);
}

/* The first slow part: from here on the ranks watch each other. */
static tdm_status open_comm(tdm_run *run) {
    const tdm_job *job = run->job;
    if (run->world == 1) return TDM_OK;
    run->comm = run->options.comm;
    if (run->comm == NULL)
        TDM_TRY(tdm__comm_open_shm(&run->comm, run->options.launch_fd, run->rank, run->world, run->host,
                                   tdm_duration_ms(job->parallel.ddp.timeout, INT64_MAX),
                                   tdm_duration_ms(job->parallel.ddp.heartbeat, 0)));
    if (run->options.on_met != NULL) run->options.on_met(run->options.user);
    return TDM_OK;
}

static tdm_status check_batch(tdm_run *run) {
    const tdm_train_section *train = &run->job->train;
    if (train->per_device != TDM_INT_NULL) {
        run->per_device = train->per_device;
        return TDM_OK;
    }
    if (train->global_batch % run->replicas != 0)
        TDM_FAIL(TDM_E_CONFIG, "train.batch.global: %lld samples do not divide among %d devices; take a multiple of %d",
                 (long long)train->global_batch, run->replicas, run->replicas);
    run->per_device = train->global_batch / run->replicas;
    return TDM_OK;
}

/* Micro-batches of one size: those that follow a smaller one would wait for it. */
static tdm_status check_micro_batches(const tdm_run *run) {
    const tdm_job *job = run->job;
    if (job->parallel.stages == 1 || run->per_device % job->train.accumulate == 0) return TDM_OK;
    TDM_FAIL(
        TDM_E_CONFIG,
        "train.accumulate: the %lld samples of a replica do not divide into %lld micro-batches, which its stages run "
        "at the same time; take a divisor of %lld",
        (long long)run->per_device, (long long)job->train.accumulate, (long long)run->per_device);
}

/* ---- the optimizer ---- */

static tdm_status open_optim(tdm_run *run) {
    run->optim = tdm_builtin_optims[run->job->optimizer.type];
    if (run->options.optimizer != NULL) TDM_TRY(tdm__own_optim_def(run, &run->optim));
    run->optim_states = run->options.predicts ? 0 : tdm__optim_states_of(run->optim, run->job);
    if (run->options.predicts || run->options.optimizer != NULL) return TDM_OK;
    return tdm__compute_optim(&run->compute, run->optim, &run->optim_run);
}

/* ---- plan and replicas ---- */

static tdm_status build_plan(tdm_run *run) {
    int threads;
    TDM_TRY(tdm__run_threads(run, &threads));
    tdm_plan_options options = tdm__plan_options(run->job, &run->compute, run->per_device, run->replicas, threads);
    int64_t batch = run->job->eval.batch;
    options.training = run->options.predicts == 0;
    options.repeats = run->options.repeats > 0;
    run->eval_rows = batch != TDM_INT_NULL ? batch : tdm__plan_rows(run->job, run->per_device);
    TDM_TRY(tdm__plan_build(&run->plan, run->host, run->graph, &options));
    return tdm__run_list_tensors(run);
}

static void warn_of_surprises(const tdm_run *run) {
    char line[TDM_REMARK];
    if (run->rank != 0 || run->options.predicts != 0) return;
    if (tdm__remark_compression(run->job, line)) TDM_WARN(run->host, "plan", "%s", line);
    if (tdm__remark_statistics(run->job, run->graph, line)) TDM_WARN(run->host, "plan", "%s", line);
}

/* A replica has memory for the largest pass. If that is an evaluation, a smaller training batch would not help, so that
 * advice is left out. */
static tdm_status short_of_memory(const tdm_run *run) {
    int64_t rows = tdm__plan_rows(run->job, run->per_device);
    const char *message = tdm_error_message();
    if (run->eval_rows <= rows) return TDM_E_MEMORY;
    TDM_FAIL(TDM_E_MEMORY, "%.*s; make eval.batch smaller: it has %lld rows, a training pass %lld",
             (int)strcspn(message, ";"), message, (long long)run->eval_rows, (long long)rows);
}

static tdm_status open_mode(tdm_run *run) {
    const tdm_job *job = run->job;
    tdm_status (*loss_run)(const tdm_loss_args *) = NULL;
    TDM_TRY(tdm__compute_loss(&run->compute, run->loss, &loss_run));
    tdm_mode_params params = {.host = run->host,
                              .plan = run->plan,
                              .job = job,
                              .device = run->compute.device,
                              .loss = run->loss,
                              .loss_run = loss_run,
                              .own_loss = run->options.loss,
                              .thread_begin = run->compute.thread_begin,
                              .device_comm = run->device_comm,
                              .replicas = run->replicas,
                              .rank = run->rank,
                              .first_rank = run->options.local_world > 0 ? run->rank - run->options.local_rank : 0,
                              .comm = run->comm,
                              .state_count = __builtin_popcount(run->optim_states),
                              .averages = run->average_count > 0,
                              .has_ignored =
                                  run->train != NULL && (run->train->has_ignored || job->loss.weight.count > 0),
                              .mixes = tdm__transform_mixes(&job->data.transform)};
    tdm_status status = tdm__mode_open(&run->mode, tdm_builtin_modes[job->parallel.mode], &params);
    return status == TDM_E_MEMORY ? short_of_memory(run) : status;
}

static tdm_status load_start_weights(tdm_run *run) {
    if (run->job->weights == NULL) return TDM_OK;
    tdm_ckpt *ckpt = NULL;
    const char *path = run->job->weights;
    TDM_TRY(tdm__error_at(tdm__ckpt_open_any(&ckpt, run->host, path), &run->job->weights_at));
    tdm_status status = tdm__weights_start(run, tdm__run_weights_of(run, ckpt));
    if (status == TDM_OK && run->options.predicts) status = tdm__own_check_saved_loss(run, ckpt);
    if (status == TDM_OK) status = tdm__run_keep_notes(run, ckpt);
    tdm__ckpt_close(ckpt);
    if (status != TDM_E_CHECKPOINT) return status;
    if (strncmp(tdm_error_message(), path, strlen(path)) == 0) /* from reading, which names the file */
        return tdm__error_at(status, &run->job->weights_at);
    TDM_FAIL_AT(&run->job->weights_at, status, "%s: %s", path, tdm_error_message());
}

static tdm_status init_weights(tdm_run *run) {
    if (run->rank == 0) {
        TDM_TRY(tdm__weights_init(run));
        TDM_TRY(load_start_weights(run));
        TDM_TRY(tdm__average_begin(run));
    }
    return tdm__mode_sync(run->mode, true);
}

static tdm_status resume_run(tdm_run *run) {
    const char *resume = run->job->checkpoint.resume;
    run->kept_step = -1;
    if (resume == NULL || strcmp(resume, "never") == 0) return TDM_OK;
    if (strcmp(resume, "auto") == 0) {
        run->kept_step = INT64_MAX;
        return run->job->run.dir != NULL ? tdm__run_restore(run, NULL, true) : TDM_OK;
    }
    TDM_TRY(tdm__error_at(tdm__run_restore(run, resume, false), &run->job->checkpoint.resume_at));
    run->kept_step = run->step;
    return TDM_OK;
}

static tdm_status open_parts(tdm_run *run) {
    tdm_data_wanted wanted;
    TDM_TRY(check_ranks(run));
    TDM_TRY(open_comm(run));
    TDM_TRY(open_compute(run));
    TDM_TRY(tdm__run_open_backend(run));
    TDM_TRY(check_batch(run));
    TDM_TRY(check_micro_batches(run));
    TDM_TRY(tdm__data_wanted_of(run->job, run->graph, run->options.module_path, &run->loss, &wanted));
    TDM_TRY(tdm__run_check_metrics(run));
    TDM_TRY(tdm__own_check(run));
    TDM_TRY(open_optim(run));
    TDM_TRY(tdm__run_open_data(run, &wanted));
    TDM_TRY(build_plan(run));
    TDM_TRY(tdm__run_note_model(run));
    warn_of_surprises(run);
    tdm__run_warn_of_unseen(run);
    TDM_TRY(tdm__run_agree(run));
    TDM_TRY(tdm__run_agree_on_backend(run));
    TDM_TRY(agree_on_running_ahead(run));
    TDM_TRY(tdm__run_check_limit(run));
    TDM_TRY(open_mode(run));
    if (run->options.repeats > 0) TDM_TRY(tdm__repeats_start(run->mode->replica[0], run->options.repeats));
    TDM_TRY(tdm__run_open_loaders(run));
    tdm__run_init_schedules(run);
    const char *fault = tdm__schedule_fault(&run->schedules.own, run->steps_total, run->steps_per_epoch);
    if (fault != NULL) TDM_FAIL(TDM_E_CONFIG, "%s", fault);
    TDM_TRY(tdm__run_folder_open(run));
    TDM_TRY(init_weights(run));
    TDM_TRY(resume_run(run));
    TDM_TRY(tdm__run_seek(run));
    return tdm__run_folder_begin(run);
}

/* A program built with an older header passes a shorter struct; the other members keep their defaults. */
static tdm_status take_options(tdm_run_options *to, const tdm_run_options *from) {
    TDM_TRY(tdm__sized_take("tdm_run_open: options", to, sizeof(*to), from, TDM_SIZED_ANY));
    if (to->comm != NULL) {
        to->rank = tdm_comm_rank(to->comm);
        to->world = tdm_comm_world(to->comm);
    }
    return TDM_OK;
}

/* The program may free the job, the graph and these texts once the run is open. */
static tdm_status keep_given(tdm_run *run, const tdm_job *job, const tdm_graph *graph) {
    tdm_run_options *options = &run->options;
    run->graph = tdm__graph_keep(graph);
    TDM_TRY(tdm__job_copy(&run->zone, &run->job, job));
    TDM_TRY(tdm__own_keep(run));
    TDM_TRY(tdm__zone_text(&run->zone, &options->module_path, options->module_path));
    TDM_TRY(tdm__zone_text(&run->zone, &options->config_input, options->config_input));
    return tdm__zone_text(&run->zone, &options->config_yaml, options->config_yaml);
}

tdm_status tdm_run_open(tdm_run **out, const tdm_job *job, const tdm_graph *graph, const tdm_run_options *options) {
    if (out == NULL || job == NULL || graph == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_open: out, job or graph is NULL");
    *out = NULL;
    tdm_run_options given = TDM_RUN_OPTIONS_INIT;
    TDM_TRY(take_options(&given, options));
    const tdm_host *host = given.host;
    TDM_TRY(tdm__host_take(&host));
    TDM_TRY(tdm__job_check(host, job));
    if (!graph->finished) TDM_FAIL(TDM_E_USAGE, "tdm_run_open: the graph is not finished; call tdm_graph_finish");
    tdm_run *run = NULL;
    TDM_TRY(tdm__limit_open(&host, job->host.memory_limit == TDM_INT_NULL ? 0 : (size_t)job->host.memory_limit));
    TDM_TRY_ELSE(tdm__new(host, &run, 1, sizeof(*run), "run"), tdm__limit_close(host));
    tdm__guard_init(&run->guard, "run");
    run->host = host;
    run->options = given;
    run->saved_at = -1;
    run->last_loss = NAN;
    run->scores = (tdm_scores){sizeof(tdm_scores), 0, NAN, NAN, NAN, NAN};
    run->logged_ns = run->eval_ns = run->save_ns = run->verify_ns = tdm__steady_ns(run->host);
    tdm__zone_init(&run->zone, host);
    tdm_status status = keep_given(run, job, graph);
    if (status == TDM_OK) status = open_parts(run);
    if (status != TDM_OK) {
        tdm_error error;
        tdm__error_save(&error);
        if (run->comm != NULL) tdm_comm_abort(run->comm, error.message); /* so that the other ranks learn why */
        tdm_run_close(run);
        return tdm__error_restore(&error, NULL);
    }
    *out = run;
    return TDM_OK;
}

void tdm_run_close(tdm_run *run) {
    if (run == NULL) return;
    const tdm_host *host = run->host;
    if (tdm__guard_end(&run->guard, "tdm_run_close") != TDM_OK) {
        if (tdm__guard_is_home(&run->guard)) TDM_WARN(host, "run", "%s; the run stays open", tdm_error_message());
        return;
    }
    tdm__run_folder_close(run);
    tdm__run_close_given(run);
    tdm__delete(host, run->outputs);
    tdm__run_forget_properties(run);
    tdm__run_close_loaders(run);
    tdm__mode_close(run->mode);
    if (run->comm != run->options.comm) tdm_comm_close(run->comm);
    tdm__plan_free(run->plan);
    tdm__dataset_close(run->train);
    tdm__dataset_close(run->eval);
    tdm__compute_close(&run->compute, host);
    tdm__graph_leave(run->graph);
    tdm__zone_deinit(&run->zone);
    tdm__delete(host, run);
    tdm__limit_close(host);
}
