/* The plan for people (fixed columns, comparable) and for programs (JSON). */
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/text.h"
#include "runtime/plan/plan.h"

static const char *const layout_names[TDM_LAYOUT_COUNT] = {"", " nhwc", " c8", " c16"};

static void add_value(char *out, size_t bytes, const tdm_plan *plan, int value) {
    size_t at = strlen(out);
    if (value < 0 || at + 2 >= bytes) return;
    snprintf(out + at, bytes - at, "%s%s", at ? " " : "", plan->values[value].name);
}

static void add_param(char *out, size_t bytes, const tdm_plan *plan, int param, const char *prefix) {
    size_t at = strlen(out);
    if (param < 0 || at + 2 >= bytes) return;
    snprintf(out + at, bytes - at, "%s%s%s", at ? " " : "", prefix, plan->params[param].name);
}

static void add_params(char *out, size_t bytes, const tdm_plan *plan, const tdm_plan_node *node) {
    for (int i = 0; i < node->desc.param_count; i++) add_param(out, bytes, plan, node->param[i], "");
}

/* Those that this node writes. */
static void add_gradients(char *out, size_t bytes, const tdm_plan *plan, const tdm_plan_node *node) {
    for (int i = 0; i < node->desc.param_count; i++) add_param(out, bytes, plan, node->dparam[i], "d:");
    add_param(out, bytes, plan, node->dsum, "d:");
}

static void print_place(char *out, size_t bytes, const tdm_plan *plan, int value) {
    if (value < 0)
        snprintf(out, bytes, "grad");
    else if (plan->values[value].kind == TDM_PLACE_EXTERNAL)
        snprintf(out, bytes, "batch");
    else
        snprintf(out, bytes, "act+%zu", plan->values[value].offset);
}

static void forward_notes(char *out, size_t bytes, const tdm_plan *plan, const tdm_plan_node *node) {
    snprintf(out, bytes, "%s%s%s%s", node->kernel->variant, node->also, layout_names[node->desc.y_layout],
             plan->values[node->y].alias_of >= 0 ? ", in place" : "");
}

static void print_row(tdm_text *text, int index, const char *phase, const char *op, const char *reads,
                      const char *writes, const char *place, const char *notes) {
    tdm__text_printf(text, "%3d  %-5s  %-18s %-44s %-44s %-14s %s\n", index, phase, op, reads, writes, place, notes);
}

static void print_step(const tdm_plan *plan, int index, tdm_text *text) {
    const tdm_plan_step *step = &plan->steps[index];
    char reads[256] = "", writes[256] = "", place[48] = "", notes[96] = "";
    if (step->kind == TDM_STEP_READY) {
        const tdm_plan_bucket *bucket = &plan->buckets[step->index];
        snprintf(reads, sizeof(reads), "grad[%zu,+%zu)", bucket->offset, bucket->count);
        snprintf(writes, sizeof(writes), "bucket %d", step->index);
        snprintf(notes, sizeof(notes), "%.2f MiB", (double)bucket->count * 4 / 1048576.0);
        print_row(text, index, "ready", "reduce", reads, writes, "grad", notes);
        return;
    }
    if (step->kind == TDM_STEP_LOSS) {
        const char *loss = tdm_builtin_losses[plan->options.loss]->name;
        snprintf(reads, sizeof(reads), "%s target", plan->values[plan->output].name);
        if (plan->d_output >= 0) snprintf(writes, sizeof(writes), "%s", plan->values[plan->d_output].name);
        print_place(place, sizeof(place), plan, plan->d_output >= 0 ? plan->d_output : plan->output);
        print_row(text, index, "loss", loss, reads, writes, place, "");
        return;
    }
    const tdm_plan_node *node = &plan->nodes[step->index];
    if (step->kind == TDM_STEP_FORWARD) {
        for (int i = 0; i < node->desc.input_count; i++) add_value(reads, sizeof(reads), plan, node->x[i]);
        add_params(reads, sizeof(reads), plan, node);
        add_value(writes, sizeof(writes), plan, node->y);
        add_value(writes, sizeof(writes), plan, node->saved);
        print_place(place, sizeof(place), plan, node->y);
        forward_notes(notes, sizeof(notes), plan, node);
    } else {
        add_value(reads, sizeof(reads), plan, node->dy);
        if ((node->reads & TDM_OP_READS_X) != 0) add_value(reads, sizeof(reads), plan, node->x[0]);
        if ((node->reads & TDM_OP_READS_Y) != 0) add_value(reads, sizeof(reads), plan, node->y);
        add_value(reads, sizeof(reads), plan, node->saved);
        int first_dx = -1;
        bool adds = false;
        for (int i = node->desc.input_count - 1; i >= 0; i--) {
            if (node->dx[i] < 0) continue;
            first_dx = node->dx[i];
            adds = adds || node->dx_adds[i];
        }
        for (int i = 0; i < node->desc.input_count; i++) add_value(writes, sizeof(writes), plan, node->dx[i]);
        add_gradients(writes, sizeof(writes), plan, node);
        print_place(place, sizeof(place), plan, first_dx);
        snprintf(notes, sizeof(notes), "%s%s", node->kernel != NULL ? node->kernel->variant : "alias",
                 adds ? ", adds" : "");
    }
    print_row(text, index, step->kind == TDM_STEP_FORWARD ? "fwd" : "bwd", node->op->name, reads, writes, place, notes);
}

/* Before there are steps: what each node reads and writes, and what is known of how. */
static void print_node(const tdm_plan *plan, int index, tdm_text *text) {
    const tdm_plan_node *node = &plan->nodes[index];
    char reads[256] = "", writes[256] = "", notes[96] = "";
    for (int i = 0; i < node->desc.input_count; i++) add_value(reads, sizeof(reads), plan, node->x[i]);
    for (int i = 0; i < node->desc.param_count; i++) {
        const size_t at = strlen(reads);
        snprintf(reads + at, sizeof(reads) - at, " %s", plan->graph->params[node->graph_param[i]].name);
    }
    add_value(writes, sizeof(writes), plan, node->y);
    add_value(writes, sizeof(writes), plan, node->saved);
    if (node->kernel != NULL) forward_notes(notes, sizeof(notes), plan, node);
    print_row(text, index, "node", node->op->name, reads, writes, "", notes);
}

static void print_nodes(const tdm_plan *plan, tdm_text *out) {
    tdm__text_printf(out, "plan after %s  rows %lld  threads %d\n", plan->options.after, (long long)plan->options.rows,
                     plan->options.threads);
    print_row(out, 0, "phase", "op", "reads", "writes", "", "kernel");
    for (int i = 0; i < plan->node_count; i++) print_node(plan, i, out);
}

void tdm__plan_print(const tdm_plan *plan, tdm_text *out) {
    if (plan->step_count == 0) {
        print_nodes(plan, out);
        return;
    }
    char hash[TDM_HASH_TEXT];
    tdm__hash_print(hash, plan->hash);
    tdm__text_printf(
        out, "plan  rows %lld  threads %d  parameters %lld (%zu B)  activations %zu B  buckets %d  hash %.16s\n",
        (long long)plan->options.rows, plan->options.threads, (long long)tdm_graph_param_count(plan->graph),
        plan->param_floats * sizeof(float), plan->activation_bytes, plan->bucket_count, hash);
    print_row(out, 0, "phase", "op", "reads", "writes", "place", "kernel");
    for (int i = 0; i < plan->step_count; i++) print_step(plan, i, out);
    for (int i = 0; i < plan->node_count; i++) {
        const tdm_plan_node *node = &plan->nodes[i];
        if (node->declined[0] != '\0')
            tdm__text_printf(out, "note: %s '%s' runs on %s; %s\n", node->op->name, node->name,
                             node->kernel != NULL ? node->kernel->variant : "nothing", node->declined);
    }
}

static void json_step(const tdm_plan *plan, int index, tdm_text *out) {
    static const char *const kinds[] = {"forward", "loss", "backward", "ready"};
    const tdm_plan_step *step = &plan->steps[index];
    tdm__text_printf(out, "%s{\"kind\":\"%s\"", index ? "," : "", kinds[step->kind]);
    if (step->kind == TDM_STEP_READY) tdm__text_printf(out, ",\"bucket\":%d", step->index);
    if (step->kind == TDM_STEP_FORWARD || step->kind == TDM_STEP_BACKWARD) {
        const tdm_plan_node *node = &plan->nodes[step->index];
        tdm__text_printf(out, ",\"op\":\"%s\",\"name\":", node->op->name);
        tdm__text_json_string(out, node->name);
        tdm__text_printf(out, ",\"kernel\":\"%s\",\"relu\":%s,\"also\":\"%s\"",
                         node->kernel != NULL ? node->kernel->variant : "alias",
                         tdm_has_epilogue(&node->desc, TDM_EPILOGUE_RELU) ? "true" : "false",
                         node->also[0] != '\0' ? node->also + 2 : "");
    }
    tdm__text_puts(out, "}");
}

void tdm__plan_print_json(const tdm_plan *plan, tdm_text *out) {
    char hash[TDM_HASH_TEXT];
    tdm__hash_print(hash, plan->hash);
    tdm__text_printf(out,
                     "{\"rows\":%lld,\"threads\":%d,\"hash\":\"%s\",\"parameters\":%lld,\"parameter_bytes\":%zu,"
                     "\"activation_bytes\":%zu,\"buffer_bytes\":%zu,\"steps\":[",
                     (long long)plan->options.rows, plan->options.threads, hash,
                     (long long)tdm_graph_param_count(plan->graph), plan->param_floats * sizeof(float),
                     plan->activation_bytes, plan->buffer_bytes);
    for (int i = 0; i < plan->step_count; i++) json_step(plan, i, out);
    tdm__text_puts(out, "],\"buckets\":[");
    for (int i = 0; i < plan->bucket_count; i++) {
        const tdm_plan_bucket *bucket = &plan->buckets[i];
        tdm__text_printf(out, "%s{\"offset\":%zu,\"count\":%zu,\"ready_after\":%d,\"parameters\":[", i ? "," : "",
                         bucket->offset, bucket->count, bucket->ready_after);
        for (int k = 0; k < bucket->param_count; k++) {
            tdm__text_puts(out, k ? "," : "");
            tdm__text_json_string(out, plan->params[bucket->first_param + k].name);
        }
        tdm__text_puts(out, "]}");
    }
    tdm__text_puts(out, "],\"values\":[");
    for (int i = 0; i < plan->value_count; i++) {
        const tdm_plan_value *value = &plan->values[i];
        tdm__text_printf(out, "%s{\"name\":\"%s\",\"bytes\":%zu,\"offset\":%zu,\"first\":%d,\"last\":%d}", i ? "," : "",
                         value->name, value->bytes, value->offset, value->first, value->last);
    }
    tdm__text_puts(out, "]}");
}
