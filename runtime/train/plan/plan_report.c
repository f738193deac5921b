/* What `tandem plan` shows: the plan, the memory of one device, and the bytes that cross between devices in a step. No
 * device is needed to know this. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"
#include "runtime/train/plan/plan_memory.h"
#include "runtime/train/plan/planned.h"
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
    char remark[TDM_REMARK];
    if (plan->options.training && tdm__remark_statistics(job, plan->graph, remark))
        tdm__text_printf(text, "\nnote: %s\n", remark);
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

/* Whether host.memory_limit is enough for `needed` bytes. */
static void add_limit(const tdm_job *job, size_t needed, tdm_text *text) {
    char limit[32], all[32];
    if (job->host.memory_limit == TDM_INT_NULL) return;
    tdm__print_bytes(limit, (size_t)job->host.memory_limit);
    tdm__print_bytes(all, needed);
    tdm__text_printf(text, "host.memory_limit is %s; beyond the program this job needs %s%s\n", limit, all,
                     needed <= (size_t)job->host.memory_limit ? "" : ", so it will be refused");
}

static tdm_status add_process(const tdm_plan *plan, const tdm_job *job, int replicas, const tdm_compute *compute,
                              tdm_text *text) {
    static const char *const names[TDM_PROCESS_COSTS] = {"program", "kernels", "samples", "batches", "devices",
                                                         "whole",   "calls",   "network", "peers",   "total"};
    const bool is_rank = tdm_builtin_modes[job->parallel.mode]->process_per_device;
    tdm_process_memory memory;
    if (!tdm__device_on_host(compute->device))
        TDM_FAIL(TDM_E_UNSUPPORTED, "the memory of the process is known for the CPU only; leave out --memory");
    TDM_TRY(tdm__process_memory(plan, job, replicas, compute->device, &memory));
    tdm__text_printf(text, "\nmemory of %s\n", is_rank ? "each process" : "the process");
    for (int i = 0; i < TDM_PROCESS_COSTS; i++)
        if (memory.bytes[i] > 0 || i < TDM_PROCESS_WHOLE)
            tdm__text_printf(text, "  %-16s %10.2f MiB  %14zu B\n", names[i], (double)memory.bytes[i] / 1048576.0,
                             memory.bytes[i]);
    add_limit(job, memory.bytes[TDM_PROCESS_TOTAL] - memory.bytes[TDM_PROCESS_PROGRAM], text);
    if (memory.bytes[TDM_PROCESS_PEERS] > 0)
        tdm__text_puts(text, "peers: gradients of other ranks, summed in place, which top counts for each rank; with "
                             "PowerSGD rank 0 also saves what all ranks keep back\n");
    return TDM_OK;
}

static tdm_status print_plan(const tdm_job *job, const tdm_graph *graph, const tdm_plan_print_options *look,
                             char **out) {
    *out = NULL;
    tdm_text text;
    tdm_planned planned;
    const int devices = tdm__job_replicas(job);
    TDM_TRY(tdm__planned_open(&planned, job, graph, devices, look));
    const tdm_plan *plan = planned.plan;
    tdm_status status = TDM_OK;
    tdm__text_init(&text, tdm_host_default());
    if (look->after != NULL) tdm__plan_print(plan, &text);
    if (look->after == NULL) tdm__plan_report(plan, job, devices, look->json != 0, &text);
    if (look->process != 0) status = add_process(plan, job, devices, &planned.compute, &text);
    if (planned.note != NULL && look->json == 0) tdm__text_printf(&text, "\nnote: %s\n", planned.note);
    if (status == TDM_OK) status = tdm__text_take_public(&text, out);
    tdm__text_deinit(&text);
    tdm__planned_close(&planned);
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
    TDM_TRY(tdm__sized_take("tdm_plan_print_with: options", &look, sizeof(look), options, TDM_SIZED_ANY));
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
