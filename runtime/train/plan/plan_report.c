/* What `tandem plan` shows: the plan, the memory of one device, and the bytes that cross between devices in a step. No
 * device is needed to know this. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/train/plan/plan_memory.h"
#include "runtime/train/run.h"

/* The keys in JSON; for people where it differs. */
static const struct {
    const char *key, *text;
} costs[TDM_COSTS] = {[TDM_COST_PARAMETERS] = {"parameters", NULL}, [TDM_COST_NARROW] = {"narrow", "copy in bf16"},
                      [TDM_COST_GRADIENTS] = {"gradients", NULL},   [TDM_COST_PARTS] = {"parts", "sum of parts"},
                      [TDM_COST_COMPRESSED] = {"compressed", NULL}, [TDM_COST_OPTIMIZER] = {"optimizer", NULL},
                      [TDM_COST_AVERAGE] = {"ema", NULL},           [TDM_COST_ACTIVATIONS] = {"activations", NULL},
                      [TDM_COST_BUFFERS] = {"buffers", NULL},       [TDM_COST_STATISTICS] = {"statistics", NULL},
                      [TDM_COST_BATCHES] = {"batches", NULL},       [TDM_COST_VALUES] = {"values", "step values"},
                      [TDM_COST_GATHERED] = {"gathered", NULL},     [TDM_COST_TOTAL] = {"total", NULL}};

/* What compression of gradients does to the bytes between devices. */
static void add_compression(const tdm_memory *c, tdm_text *text) {
    if (c->wire == c->wire_whole) return;
    tdm__text_printf(text, "compressed        %10.2f %% of %.2f MiB a step",
                     100.0 * (double)c->wire / (double)c->wire_whole, (double)c->wire_whole / 1048576.0);
    if (c->wire_from > 0) tdm__text_printf(text, ", from step %lld on", (long long)c->wire_from);
    tdm__text_puts(text, "\n");
}

static void add_costs(const tdm_memory *c, tdm_text *text) {
    for (int i = 0; i < TDM_COSTS; i++) {
        if (c->bytes[i] == 0) continue;
        tdm__text_printf(text, "  %-16s %10.2f MiB  %14zu B\n", costs[i].text != NULL ? costs[i].text : costs[i].key,
                         (double)c->bytes[i] / 1048576.0, c->bytes[i]);
    }
}

static void add_text(const tdm_plan *plan, const tdm_job *job, int replicas, tdm_text *text) {
    const int stages = plan->stage_count;
    tdm__plan_print(plan, text);
    for (int k = 0; k < stages; k++) {
        const tdm_memory c = tdm__plan_memory(plan, job, replicas, k);
        tdm__text_printf(text, "\nmemory of device %d, of %d\n", k, replicas * stages);
        add_costs(&c, text);
    }
    const tdm_memory first = tdm__plan_memory(plan, job, replicas, 0);
    tdm__text_printf(text, "between devices   %10.2f MiB a step, %d bucket%s\n", (double)first.wire / 1048576.0,
                     plan->bucket_count, plan->bucket_count == 1 ? "" : "s");
    add_compression(&first, text);
    tdm__plan_print_options(plan, job, replicas, text);
}

static void put_costs(tdm_json_out *json, const tdm_memory *c) {
    for (int i = 0; i < TDM_COSTS; i++) tdm__json_put(json, "%s:%zu", costs[i].key, c->bytes[i]);
    tdm__json_put(json, "}");
}

static tdm_memory memory_of_fullest(const tdm_plan *plan, const tdm_job *job, int replicas) {
    tdm_memory most = tdm__plan_memory(plan, job, replicas, 0);
    for (int k = 1; k < plan->stage_count; k++) {
        const tdm_memory other = tdm__plan_memory(plan, job, replicas, k);
        if (other.bytes[TDM_COST_TOTAL] > most.bytes[TDM_COST_TOTAL]) most = other;
    }
    return most;
}

static void add_json(const tdm_plan *plan, const tdm_job *job, int replicas, tdm_text *text) {
    const tdm_memory most = memory_of_fullest(plan, job, replicas);
    tdm_json_out json = tdm__json_out(text, "");
    tdm__json_put(&json, "{ devices:%d memory_bytes:{", replicas * plan->stage_count);
    put_costs(&json, &most);
    if (plan->stage_count > 1) {
        tdm__json_put(&json, "stage_memory_bytes:[");
        for (int k = 0; k < plan->stage_count; k++) {
            const tdm_memory c = tdm__plan_memory(plan, job, replicas, k);
            tdm__json_put(&json, "{");
            put_costs(&json, &c);
        }
        tdm__json_put(&json, "]");
    }
    tdm__json_put(&json, "wire_bytes_per_step:%lld wire_bytes_uncompressed:%lld", (long long)most.wire,
                  (long long)most.wire_whole);
    tdm__plan_put_options(plan, job, replicas, &json);
    tdm__plan_print_json(plan, &json, "plan");
    tdm__json_put(&json, "}\n");
}

void tdm__plan_report(const tdm_plan *plan, const tdm_job *job, int replicas, bool json, tdm_text *text) {
    (json ? add_json : add_text)(plan, job, replicas, text);
}

/* Planning uses no device. If the job's device is not here, the plan is made with the CPU's kernels. */
static tdm_status open_compute(tdm_compute *compute, const tdm_host *host, const tdm_job *job, const char **note) {
    tdm_compute_options options = {.device = job->parallel.device, .kernels = job->parallel.kernels};
    tdm_error before;
    tdm__error_save(&before);
    tdm_status status = tdm__compute_open(compute, host, &options);
    if (status != TDM_E_DEVICE && status != TDM_E_UNSUPPORTED) return status;
    *note = "the job's device is not available here: kernels, layouts and scratch are the CPU's";
    (void)tdm__error_restore(&before, NULL);
    options.device = TDM_DEVICE_CPU;
    return tdm__compute_open(compute, host, &options);
}

int64_t tdm__plan_rows(const tdm_job *job, int64_t rows) {
    return (rows + job->train.accumulate - 1) / job->train.accumulate;
}

/* The smallest output that is made again. A GPU keeps all of them unless the job says otherwise. */
static size_t least_recomputed(const tdm_job *job, const tdm_compute *compute) {
    if (job->train.recompute == TDM_RECOMPUTE_ALWAYS) return 0;
    if (job->train.recompute == TDM_RECOMPUTE_NEVER || !tdm__device_on_host(compute->device)) return SIZE_MAX;
    return (size_t)1 << 20;
}

/* As DistributedDataParallel: unless the job says otherwise, the first bucket is small where the others have their
 * default. */
static double first_bucket_of(const tdm_job *job) {
    const double first = job->parallel.ddp.first_bucket_mb, cap = job->parallel.ddp.bucket_cap_mb;
    if (!isnan(first)) return first;
    return cap == TDM_BUCKET_CAP_MB ? 1.0 : cap;
}

tdm_plan_options tdm__plan_options(const tdm_job *job, const tdm_compute *compute, int64_t rows, int replicas,
                                   int threads) {
    int64_t micro = tdm__plan_rows(job, rows), batch = job->eval.batch;
    return (tdm_plan_options){.rows = batch != TDM_INT_NULL && batch > micro ? batch : micro,
                              .threads = threads,
                              .training = true,
                              .fast = job->parallel.kernels == TDM_KERNELS_FAST,
                              .ingests = compute->device->arenas->ingest != NULL,
                              .widens = compute->device->arenas->from_bf16 != NULL,
                              .precision = job->train.precision,
                              .stages = (int)job->parallel.stages,
                              .micro_batches = job->train.accumulate,
                              .accumulates = job->train.accumulate > 1,
                              .replicas = job->parallel.sync_batchnorm ? replicas : 1,
                              .recompute = least_recomputed(job, compute),
                              .first_bucket_mb = first_bucket_of(job),
                              .bucket_cap_mb = job->parallel.ddp.bucket_cap_mb,
                              .allows_unused = job->parallel.ddp.find_unused_parameters,
                              .kernels = compute->kernels,
                              .freeze = &job->freeze,
                              .groups = &job->optimizer.groups,
                              .loss = job->loss.type};
}

static tdm_status add_process(const tdm_plan *plan, const tdm_job *job, int replicas, const tdm_compute *compute,
                              tdm_text *text) {
    static const char *const names[TDM_PROCESS_COSTS] = {"program", "kernels", "samples",
                                                         "batches", "devices", "total"};
    tdm_process_memory memory;
    if (!tdm__device_on_host(compute->device))
        TDM_FAIL(TDM_E_UNSUPPORTED, "the memory of the process is known for the CPU only; leave out --memory");
    TDM_TRY(tdm__process_memory(plan, job, replicas, compute->device, &memory));
    tdm__text_printf(text, "\nmemory of %s\n",
                     tdm_builtin_modes[job->parallel.mode]->process_per_device ? "each process" : "the process");
    for (int i = 0; i < TDM_PROCESS_COSTS; i++)
        tdm__text_printf(text, "  %-16s %10.2f MiB  %14zu B\n", names[i], (double)memory.bytes[i] / 1048576.0,
                         memory.bytes[i]);
    return TDM_OK;
}

static tdm_status print_plan(const tdm_job *job, const tdm_graph *graph, const tdm_plan_print_options *look,
                             char **out) {
    *out = NULL;
    TDM_TRY(tdm_job_check(job));
    const tdm_host *host = tdm_host_default();
    tdm_compute compute;
    tdm_text text;
    const char *note = NULL;
    tdm__text_init(&text, host);
    TDM_TRY(open_compute(&compute, host, job, &note));
    if (note == NULL && !compute.report.usable && compute.report.path[0] != '\0') note = compute.report.text;
    int devices = tdm__job_replicas(job);
    int64_t rows = job->train.per_device != TDM_INT_NULL ? job->train.per_device : job->train.global_batch / devices;
    tdm_plan_options options = tdm__plan_options(job, &compute, rows, devices, tdm__threads_of(job, &compute, devices));
    options.after = look->after;
    options.training = look->predicts == 0;
    tdm_plan *plan = NULL;
    tdm_status status = tdm__plan_build(&plan, host, graph, &options);
    if (status == TDM_OK && look->after != NULL) tdm__plan_print(plan, &text);
    if (status == TDM_OK && look->after == NULL) tdm__plan_report(plan, job, devices, look->json != 0, &text);
    if (status == TDM_OK && look->process != 0) status = add_process(plan, job, devices, &compute, &text);
    if (note != NULL && look->json == 0) tdm__text_printf(&text, "\nnote: %s\n", note);
    if (status == TDM_OK) status = tdm__text_take_public(&text, out);
    tdm__text_deinit(&text);
    tdm__plan_free(plan);
    tdm__compute_close(&compute, host);
    return status;
}

static tdm_status check_pass(const char *pass) {
    char names[160] = "";
    const char *name;
    for (int i = 0; (name = tdm__plan_pass(i)) != NULL; i++) {
        if (strcmp(pass, name) == 0) return TDM_OK;
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", names[0] ? ", " : "", name);
    }
    TDM_FAIL(TDM_E_USAGE, "the plan has no pass '%s'; its passes are %s", pass, names);
}

tdm_status tdm_plan_print_with(const tdm_job *job, const tdm_graph *graph, const tdm_plan_print_options *options,
                               char **out) {
    tdm_plan_print_options look = TDM_PLAN_PRINT_OPTIONS_INIT;
    if (job == NULL || graph == NULL || options == NULL || out == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_plan_print_with: a pointer is NULL");
    if (options->size < sizeof(options->size) || options->size > sizeof(look))
        TDM_FAIL(TDM_E_USAGE,
                 "tdm_plan_print_with: options.size is %u, this library knows %zu; start with "
                 "TDM_PLAN_PRINT_OPTIONS_INIT",
                 options->size, sizeof(look));
    memcpy(&look, options, options->size);
    if (look.process != 0 && (look.after != NULL || look.json != 0 || look.predicts != 0))
        TDM_FAIL(TDM_E_USAGE, "the memory of the process is shown with the whole plan of a training run, as text only");
    if (look.after != NULL) TDM_TRY(check_pass(look.after));
    if (look.after != NULL && look.json != 0)
        TDM_FAIL(TDM_E_USAGE, "the plan after '%s' is shown as text only; leave out json", look.after);
    return print_plan(job, graph, &look, out);
}

tdm_status tdm_plan_print(const tdm_job *job, const tdm_graph *graph, int json, char **out) {
    tdm_plan_print_options look = TDM_PLAN_PRINT_OPTIONS_INIT;
    look.json = json;
    return tdm_plan_print_with(job, graph, &look, out);
}
