#include "runtime/train/plan/plan_memory.h"

#include <math.h>

#include "runtime/base/memory.h"
#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/base/system/process.h"
#include "runtime/base/tree.h"
#include "runtime/comm/hosts/hosts.h"
#include "runtime/exec/prepared.h"
#include "runtime/module/module.h"
#include "runtime/optim/optim.h"
#include "runtime/train/run.h"

/* ---- a device ---- */

/* Bytes of the copies that convert batches to the kernels' type (first stage) and outputs from it (last stage). */
static size_t count_converted(const tdm_plan *plan, int stage) {
    const size_t rows = (size_t)plan->options.rows, outputs = plan->options.training ? 2 : 1;
    const size_t in_flight = stage == 0 ? (size_t)plan->stages[0].in_flight : 0;
    const size_t last = stage + 1 == plan->stage_count ? outputs * (size_t)plan->output_width * sizeof(float) : 0;
    return rows * (in_flight * plan->input_row_bytes + last);
}

/* The slots of a device that has its own memory. Resident samples are not counted: only the data knows how many there
 * are. */
static size_t count_batches(const tdm_plan *plan, const tdm_job *job, int parts, int stage) {
    size_t rows = (size_t)(plan->options.rows * job->train.accumulate * parts);
    size_t sample = (size_t)tdm__shape_count(&plan->graph->sample) * sizeof(float);
    if (!plan->options.ingests) return tdm__plan_converts(plan) ? count_converted(plan, stage) : 0;
    return TDM_SLOTS * rows * (plan->input_row_bytes + sample) +
           (size_t)plan->options.rows * (plan->input_row_bytes + sample);
}

static size_t count_loss_weight(const tdm_plan *plan, const tdm_job *job, int stage) {
    const bool is_needed = plan->options.ingests && plan->options.training && stage + 1 == plan->stage_count;
    return is_needed ? (size_t)tdm__loss_weight(job)->count * sizeof(double) : 0;
}

/* A device in host memory also keeps the blocks that the host reads. */
static size_t count_values(const tdm_plan *plan, const tdm_job *job, int stage) {
    const size_t blocks = TDM_SLOTS + (plan->options.ingests ? 0 : TDM_IN_FLIGHT);
    const int norms = (plan->stage_count > 1) + (plan->options.training && tdm__optim_takes_norms(job) ? 2 : 0);
    return blocks * sizeof(tdm_step_block) +
           (size_t)plan->stages[stage].trained_count * (sizeof(tdm_flat_range) + (size_t)norms * sizeof(float)) +
           count_loss_weight(plan, job, stage);
}

/* Of a device on which `parts` parts of a batch take turns. */
static size_t count_parts(const tdm_plan *plan, int parts, int stage) {
    const size_t trained = plan->stages[stage].trained_floats * sizeof(float);
    const size_t buffers = plan->stages[stage].buffer_bytes;
    if (!plan->options.training || parts <= 1) return 0;
    if (plan->statistics_bytes == 0) return (size_t)tdm__tree_room(parts) * trained + buffers;
    const tdm_plan_stage *s = &plan->stages[stage];
    size_t batch = 0;
    if (tdm__plan_converts(plan) && stage == 0)
        batch = (size_t)s->in_flight * (size_t)plan->options.rows * plan->input_row_bytes;
    return (size_t)(parts - 1) * (trained + buffers + tdm__stage_activation_bytes(s) + batch);
}

/* In the memory of the device; on a GPU what PowerSGD keeps is the host's. */
static size_t count_compressed(const tdm_plan *plan, const tdm_job *job, int replicas, int stage) {
    const tdm_mode_ops *mode = tdm_builtin_modes[job->parallel.mode];
    if (mode->compression_memory == NULL || !plan->options.training) return 0;
    return mode->compression_memory(plan, job, replicas, stage);
}

static void count_wire(tdm_memory *c, const tdm_plan *plan, const tdm_job *job, int replicas, int64_t rows) {
    const tdm_mode_ops *mode = tdm_builtin_modes[job->parallel.mode];
    tdm_job plain = *job;
    plain.parallel.ddp.compress.type = TDM_COMPRESS_NONE;
    c->wire = mode->wire_bytes(plan, job, replicas, rows);
    c->wire_whole = mode->wire_bytes(plan, &plain, replicas, rows);
    if (job->parallel.ddp.compress.type == TDM_COMPRESS_POWERSGD && c->wire != c->wire_whole)
        c->wire_from = job->parallel.ddp.compress.start_step + 1;
}

tdm_memory tdm__plan_memory(const tdm_plan *plan, const tdm_job *job, int replicas, int stage) {
    const tdm_mode_ops *mode = tdm_builtin_modes[job->parallel.mode];
    const tdm_plan_stage *s = &plan->stages[stage];
    const size_t trained = s->trained_floats * sizeof(float), arena = trained + s->frozen_floats * sizeof(float);
    const bool training = plan->options.training;
    tdm_memory c = {.bytes = {[TDM_COST_PARAMETERS] = arena,
                              [TDM_COST_NARROW] = plan->options.precision == TDM_BF16 ? arena / 2 : 0,
                              [TDM_COST_GRADIENTS] = training ? trained : 0,
                              [TDM_COST_PARTS] = count_parts(plan, mode->takes_turns ? replicas : 1, stage),
                              [TDM_COST_COMPRESSED] = count_compressed(plan, job, replicas, stage),
                              [TDM_COST_OPTIMIZER] = training ? trained * (size_t)tdm__optim_state_count(job) : 0,
                              [TDM_COST_AVERAGE] = training && !isnan(job->train.ema_decay) ? arena : 0,
                              [TDM_COST_ACTIVATIONS] = tdm__stage_activation_bytes(s),
                              [TDM_COST_BUFFERS] = s->buffer_bytes,
                              [TDM_COST_STATISTICS] = plan->statistics_bytes,
                              [TDM_COST_BATCHES] = count_batches(plan, job, mode->takes_turns ? replicas : 1, stage),
                              [TDM_COST_VALUES] = count_values(plan, job, stage)}};
    int64_t rows = (replicas - 1) * plan->options.rows * job->train.accumulate;
    if (mode->gathered_bytes != NULL) c.bytes[TDM_COST_GATHERED] = mode->gathered_bytes(plan, job, replicas);
    if (mode->wire_bytes != NULL) count_wire(&c, plan, job, replicas, rows);
    const int64_t crossing =
        training ? replicas * tdm__plan_crossing(plan, plan->options.rows * job->train.accumulate) : 0;
    c.wire += crossing;
    c.wire_whole += crossing;
    for (int i = 0; i < TDM_COST_TOTAL; i++) c.bytes[TDM_COST_TOTAL] += c.bytes[i];
    return c;
}

/* ---- the process ---- */

static size_t count_stages(const tdm_plan *plan, const tdm_job *job, int replicas) {
    size_t sum = 0;
    for (int k = 0; k < plan->stage_count; k++) sum += tdm__plan_memory(plan, job, replicas, k).bytes[TDM_COST_TOTAL];
    return sum;
}

/* With `update: root` only replica 0 has optimizer state. */
size_t tdm__replicas_memory(const tdm_plan *plan, const tdm_job *job, int replicas) {
    const tdm_mode_ops *mode = tdm_builtin_modes[job->parallel.mode];
    const tdm_memory first = tdm__plan_memory(plan, job, replicas, 0);
    size_t other = first.bytes[TDM_COST_TOTAL] - first.bytes[TDM_COST_AVERAGE] - first.bytes[TDM_COST_GATHERED];
    if (mode->process_per_device || mode->takes_turns || replicas == 1) return count_stages(plan, job, replicas);
    if (job->parallel.dp.update == TDM_DP_UPDATE_ROOT) other -= first.bytes[TDM_COST_OPTIMIZER];
    return first.bytes[TDM_COST_TOTAL] + (size_t)(replicas - 1) * other;
}

/* What lies in the memory of several devices is brought together when a checkpoint is saved. */
size_t tdm__whole_memory(const tdm_plan *plan, const tdm_job *job) {
    size_t sum = 0;
    for (int k = 0; k < plan->stage_count && plan->stage_count > 1; k++) {
        const tdm_memory stage = tdm__plan_memory(plan, job, 1, k);
        sum += stage.bytes[TDM_COST_PARAMETERS] + stage.bytes[TDM_COST_OPTIMIZER] + stage.bytes[TDM_COST_AVERAGE];
    }
    return sum;
}

static int replicas_here(const tdm_job *job, int replicas) {
    const tdm_mode_ops *mode = tdm_builtin_modes[job->parallel.mode];
    return mode->process_per_device || mode->takes_turns ? 1 : replicas;
}

/* Of all replicas in this process; the stages of one compute at the same time. */
size_t tdm__calls_memory(const tdm_plan *plan, const tdm_job *job, int replicas) {
    size_t sum = 0;
    for (int k = 0; k < plan->stage_count; k++) {
        size_t most = 0;
        for (int i = 0; i < plan->node_count; i++)
            if (plan->nodes[i].stage == k) most = tdm__larger(most, plan->nodes[i].call_bytes);
        sum += most;
    }
    return (size_t)replicas_here(job, replicas) * sum;
}

static bool crosses_hosts(const tdm_job *job, int replicas) {
    return tdm_builtin_modes[job->parallel.mode]->process_per_device && replicas > 1 &&
           tdm__backends[job->parallel.ddp.backend].source == TDM_SOURCE_HOSTS_MODULE;
}

/* For the largest bucket, between ranks that are alone on their hosts. */
static size_t count_network(const tdm_plan *plan, const tdm_job *job, int replicas) {
    const int type = job->parallel.ddp.compress.type;
    const bool is_narrow = type == TDM_COMPRESS_BF16 || type == TDM_COMPRESS_FP16;
    size_t most = 0;
    if (!crosses_hosts(job, replicas)) return 0;
    for (int i = 0; i < plan->bucket_count; i++) most = tdm__larger(most, plan->buckets[i].count);
    return tdm__hosts_reduction_bytes(replicas, most, is_narrow ? sizeof(uint16_t) : sizeof(float));
}

/* A rank sums a share of the gradients in the memory of the ranks that have them. The system counts such pages for each
 * process that has touched them. Of what a rank sends, half is brought back. */
static size_t count_summed(const tdm_plan *plan, const tdm_job *job, int replicas) {
    const tdm_compress_section *compress = &job->parallel.ddp.compress;
    tdm_job plain = *job;
    if (crosses_hosts(job, replicas)) return 0;
    if (compress->type == TDM_COMPRESS_POWERSGD && compress->start_step > 0)
        plain.parallel.ddp.compress.type = TDM_COMPRESS_NONE;
    const tdm_mode_ops *mode = tdm_builtin_modes[job->parallel.mode];
    return (size_t)(mode->wire_bytes(plan, &plain, replicas, 0) / (2 * replicas));
}

/* Of other ranks, in rank 0's process: it also brings together what PowerSGD keeps back on all ranks, to save it. */
static size_t count_peers(const tdm_plan *plan, const tdm_job *job, int replicas) {
    const tdm_compress_section *compress = &job->parallel.ddp.compress;
    const bool gathers = compress->type == TDM_COMPRESS_POWERSGD && compress->error_feedback;
    if (!tdm_builtin_modes[job->parallel.mode]->process_per_device || replicas == 1) return 0;
    return count_summed(plan, job, replicas) + (gathers ? (size_t)replicas * plan->trained_floats * sizeof(float) : 0);
}

/* Batches of floats, with positions, indices and targets; the order of an epoch; for each thread a sample in bytes. */
static size_t count_ahead(const tdm_loader_options *o, const tdm_dataset *dataset) {
    const size_t x = (size_t)tdm__shape_count(&dataset->x_shape) * sizeof(float);
    const size_t row = x + tdm__dataset_target_bytes(dataset) + 2 * sizeof(int64_t);
    const size_t threads = o->workers > 0 ? (size_t)o->workers : 1;
    const size_t rows = (size_t)(o->per_device < dataset->count ? o->per_device : dataset->count);
    return (size_t)tdm__loader_batches(o) * (size_t)o->replicas_here * rows * row +
           (size_t)tdm__sampler_room(&o->sampler) * sizeof(int64_t) +
           (dataset->x_is_bytes ? threads * tdm__dataset_x_bytes(dataset) : 0);
}

/* Code that a run reads and a plan does not, and stacks: a small network takes 0.8 to 1.9 MB more than was counted. */
enum { LOOP_BYTES = 1 << 20 };
enum { MOST_BATCHES = 4 }; /* full ones and shorter last ones, to train and to evaluate */

size_t tdm__batches_memory(const tdm_plan *plan, const tdm_job *job, const tdm_dataset *dataset, int replicas,
                           bool evaluates) {
    const int here = replicas_here(job, replicas);
    const int shards = tdm_builtin_modes[job->parallel.mode]->process_per_device ? 1 : replicas;
    tdm_loader_options ahead = {.sampler = {.count = dataset->count, .replicas = evaluates ? 1 : replicas},
                                .per_device = plan->options.rows * (evaluates ? 1 : job->train.accumulate),
                                .replicas_here = evaluates ? 1 : shards,
                                .workers = job->data.workers,
                                .ahead = evaluates ? TDM_EVAL_AHEAD : TDM_TRAIN_AHEAD};
    if (evaluates) ahead.workers = tdm__eval_workers(job, dataset, here);
    return count_ahead(&ahead, dataset) * (size_t)(evaluates ? here : 1);
}

/* What a process is asked about. */
typedef struct process {
    const tdm_host *host;
    const tdm_plan *plan;
    const tdm_job *job;
    int replicas; /* of the job */
    int here;     /* replicas in this process */
    struct {
        int64_t rows;
        bool training;
    } batch[MOST_BATCHES]; /* that kernels are prepared for */
    int batch_count;
    size_t *bytes;
} process;

static process process_of(const tdm_host *host, const tdm_plan *plan, const tdm_job *job, int replicas, size_t *bytes) {
    return (process){.host = host,
                     .plan = plan,
                     .job = job,
                     .replicas = replicas,
                     .here = replicas_here(job, replicas),
                     .bytes = bytes};
}

static void add_batch(process *p, int64_t rows, bool training) {
    p->batch[p->batch_count].rows = rows;
    p->batch[p->batch_count++].training = training;
}

/* The batches that come of a data set: whole ones, and a last one. */
static void add_batches(process *p, const tdm_dataset *dataset, bool evaluates) {
    const int64_t rows = p->plan->options.rows;
    const tdm_sampler sampler = {.count = dataset->count, .replicas = p->replicas};
    const int64_t count = evaluates ? dataset->count : tdm__sampler_per_replica(&sampler);
    if (count >= rows) add_batch(p, rows, !evaluates);
    if (count % rows != 0 && (evaluates || !p->job->data.drop_last)) add_batch(p, count % rows, !evaluates);
}

/* Adds what one of the job's data sets takes, and the batches that come of it. */
static tdm_status add_data(process *p, bool evaluates) {
    const tdm_job *job = p->job;
    const tdm_data_spec *spec = evaluates ? &job->data.eval : &job->data.train;
    tdm_data_wanted wanted;
    const tdm_loss_def *loss = NULL;
    tdm_dataset *dataset = NULL;
    if (spec->format == TDM_DATA_NONE) return TDM_OK;
    TDM_TRY(tdm__data_wanted_of(job, p->plan->graph, NULL, &loss, &wanted));
    wanted.evaluates = evaluates;
    TDM_TRY(tdm__dataset_open(&dataset, p->host, spec, &wanted));
    p->bytes[TDM_PROCESS_BATCHES] += tdm__batches_memory(p->plan, job, dataset, p->replicas, evaluates);
    p->bytes[TDM_PROCESS_SAMPLES] += dataset->memory_bytes;
    add_batches(p, dataset, evaluates);
    tdm__dataset_close(dataset);
    return TDM_OK;
}

/* Prepares the kernels of a stage in `replica`, which has nothing else, and adds what that took. */
static tdm_status prepare(const process *p, tdm_replica *replica, size_t *bytes) {
    const size_t before = tdm__process_resident();
    tdm_prepared *prepared;
    TDM_TRY(tdm__new(replica->host, &replica->prepared, 1, sizeof(*replica->prepared), "prepared kernels"));
    for (int i = 0; i < p->batch_count; i++)
        TDM_TRY(tdm__prepared_find(replica, p->batch[i].rows, p->batch[i].training, &prepared));
    const size_t now = tdm__process_resident();
    *bytes += now > before ? now - before : 0;
    return TDM_OK;
}

static tdm_status prepare_stages(const process *p, tdm_device *device, tdm_replica *stages, size_t *bytes) {
    for (int k = 0; k < p->plan->stage_count; k++) {
        stages[k] = (tdm_replica){.plan = p->plan, .host = p->host, .device = device, .stage = k};
        TDM_TRY(prepare(p, &stages[k], bytes));
    }
    return TDM_OK;
}

/* Replicas share machine code, which the first one makes. Each describes its calls to oneDNN itself. */
static tdm_status add_kernels(process *p, tdm_device *device) {
    const int kinds = p->here > 1 ? 2 : 1, stages = p->plan->stage_count;
    size_t bytes[2] = {0};
    tdm_replica *replicas;
    TDM_TRY(tdm__new(p->host, &replicas, (size_t)(kinds * stages), sizeof(*replicas), "replicas"));
    tdm_status status = TDM_OK;
    for (int i = 0; i < kinds && status == TDM_OK; i++)
        status = prepare_stages(p, device, replicas + i * stages, &bytes[i]);
    for (int i = 0; i < kinds * stages; i++) tdm__prepared_free_all(&replicas[i]);
    tdm__delete(p->host, replicas);
    p->bytes[TDM_PROCESS_KERNELS] = bytes[0] + (size_t)(p->here - 1) * bytes[1];
    return status;
}

tdm_status tdm__kernels_memory(const tdm_host *host, const tdm_plan *plan, const tdm_job *job, int replicas,
                               const tdm_device_ops *device, const tdm_dataset *train, const tdm_dataset *eval,
                               size_t *bytes) {
    size_t costs[TDM_PROCESS_COSTS] = {0};
    process p = process_of(host, plan, job, replicas, costs);
    const tdm_device_options options = {.precision = job->train.precision};
    tdm_device *opened;
    if (plan->options.training && train != NULL) add_batches(&p, train, false);
    if (!plan->options.training) add_batch(&p, plan->options.rows, false);
    if (eval != NULL) add_batches(&p, eval, true);
    TDM_TRY(device->open(&opened, host, &options));
    const tdm_status status = add_kernels(&p, opened);
    device->close(opened);
    *bytes = costs[TDM_PROCESS_KERNELS];
    return status;
}

/* The libraries of a module that carries data between hosts are part of the program. Without it, the run says why. */
static tdm_status open_network(const tdm_job *job, int replicas) {
    const tdm_module *module;
    tdm_module_report report;
    if (!crosses_hosts(job, replicas)) return TDM_OK;
    return tdm__module_find(&module, tdm_host_default(), tdm__backends[job->parallel.ddp.backend].name, NULL, &report);
}

tdm_status tdm__process_memory(const tdm_plan *plan, const tdm_job *job, int replicas, const tdm_device_ops *device,
                               tdm_process_memory *out) {
    process p = process_of(tdm_host_default(), plan, job, replicas, out->bytes);
    const tdm_device_options options = {.precision = job->train.precision};
    *out = (tdm_process_memory){{0}};
    tdm_device *opened;
    TDM_TRY(open_network(job, replicas));
    TDM_TRY(device->open(&opened, p.host, &options));
    out->bytes[TDM_PROCESS_PROGRAM] = tdm__process_resident() + LOOP_BYTES;
    out->bytes[TDM_PROCESS_DEVICES] = tdm__replicas_memory(plan, job, replicas);
    out->bytes[TDM_PROCESS_WHOLE] = tdm__whole_memory(plan, job);
    out->bytes[TDM_PROCESS_CALLS] = tdm__calls_memory(plan, job, replicas);
    out->bytes[TDM_PROCESS_NETWORK] = count_network(plan, job, replicas);
    out->bytes[TDM_PROCESS_PEERS] = count_peers(plan, job, replicas);
    tdm_status status = add_data(&p, false);
    if (status == TDM_OK) status = add_data(&p, true);
    if (status == TDM_OK) status = add_kernels(&p, opened);
    device->close(opened);
    for (int i = 0; i < TDM_PROCESS_TOTAL; i++) out->bytes[TDM_PROCESS_TOTAL] += out->bytes[i];
    return status;
}
