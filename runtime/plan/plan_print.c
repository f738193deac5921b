/* The plan for people (fixed columns, comparable) and for programs (JSON). */
#include <stdio.h>
#include <string.h>

#include "runtime/plan/plan.h"

static const char *const layout_names[TDM_LAYOUT_COUNT] = {"", " nhwc", " c8", " c16"};

static void add_value(char *out, size_t bytes, const tdm_plan *plan, int value) {
    size_t at = strlen(out);
    if (value < 0 || at + 2 >= bytes) return;
    snprintf(out + at, bytes - at, "%s%s", at ? " " : "", plan->values[value].name);
}

static void add_param(char *out, size_t bytes, const tdm_plan *plan, int graph_param, const char *prefix) {
    size_t at = strlen(out);
    if (graph_param < 0 || at + 2 >= bytes) return;
    snprintf(out + at, bytes - at, "%s%s%s", at ? " " : "", prefix, plan->graph->params[graph_param].name);
}

/* One line of the table. */
typedef struct plan_row {
    const char *kind, *op;
    char reads[256], writes[256], place[48], notes[96];
} plan_row;

static void print_cells(tdm_text *text, const char *number, const plan_row *row) {
    tdm__text_printf(text, "%4s  %-5s  %-18s %-44s %-44s %-14s %s\n", number, row->kind, row->op, row->reads,
                     row->writes, row->place, row->notes);
}

static void print_row(tdm_text *text, int index, const plan_row *row) {
    char number[12];
    snprintf(number, sizeof(number), "%d", index);
    print_cells(text, number, row);
}

static void set_place(plan_row *row, const tdm_plan *plan, int value) {
    if (!plan->has_offsets) return;
    if (value < 0)
        snprintf(row->place, sizeof(row->place), "grad");
    else if (plan->values[value].kind == TDM_PLACE_EXTERNAL)
        snprintf(row->place, sizeof(row->place), "batch");
    else
        snprintf(row->place, sizeof(row->place), "act+%zu", plan->values[value].offset);
}

static void print_ready(const tdm_plan *plan, int index, int bucket_index, tdm_text *text) {
    const tdm_plan_bucket *bucket = &plan->buckets[bucket_index];
    plan_row row = {.kind = "ready", .op = "reduce", .place = "grad"};
    snprintf(row.reads, sizeof(row.reads), "grad[%zu,+%zu)", bucket->offset, bucket->count);
    snprintf(row.writes, sizeof(row.writes), "bucket %d", bucket_index);
    snprintf(row.notes, sizeof(row.notes), "%zu B", bucket->count * sizeof(float));
    print_row(text, index, &row);
}

static void print_loss(const tdm_plan *plan, int index, tdm_text *text) {
    plan_row row = {.kind = "loss", .op = tdm_builtin_losses[plan->options.loss]->name};
    snprintf(row.reads, sizeof(row.reads), "%s target", plan->values[plan->output].name);
    if (plan->d_output >= 0) snprintf(row.writes, sizeof(row.writes), "%s", plan->values[plan->d_output].name);
    set_place(&row, plan, plan->d_output >= 0 ? plan->d_output : plan->output);
    print_row(text, index, &row);
}

static void print_forward(const tdm_plan *plan, int index, const char *kind, const tdm_plan_node *node,
                          tdm_text *text) {
    plan_row row = {.kind = kind, .op = node->op->name};
    for (int i = 0; i < node->desc.input_count; i++) add_value(row.reads, sizeof(row.reads), plan, node->x[i]);
    for (int i = 0; i < node->desc.param_count; i++)
        add_param(row.reads, sizeof(row.reads), plan, node->graph_param[i], "");
    add_value(row.writes, sizeof(row.writes), plan, node->y);
    add_value(row.writes, sizeof(row.writes), plan, node->saved);
    set_place(&row, plan, node->y);
    if (node->transfers) snprintf(row.notes, sizeof(row.notes), "to stage %d", node->stage + 1);
    if (node->kernel != NULL)
        snprintf(row.notes, sizeof(row.notes), "%s%s%s%s", node->kernel->variant, node->also,
                 layout_names[node->desc.y_layout], plan->values[node->y].alias_of >= 0 ? ", in place" : "");
    print_row(text, index, &row);
}

static void print_recompute(const tdm_plan *plan, int index, const tdm_plan_node *node, tdm_text *text) {
    const int again = tdm__plan_in_backward(plan, node->y);
    plan_row row = {.kind = "again", .op = node->op->name};
    for (int i = 0; i < node->desc.input_count; i++) add_value(row.reads, sizeof(row.reads), plan, node->x[i]);
    add_value(row.reads, sizeof(row.reads), plan, node->saved);
    for (int i = 0; i < node->desc.param_count; i++)
        add_param(row.reads, sizeof(row.reads), plan, node->graph_param[i], "");
    add_value(row.writes, sizeof(row.writes), plan, again);
    set_place(&row, plan, again);
    snprintf(row.notes, sizeof(row.notes), "%s%s%s", node->kernel->variant, node->also,
             layout_names[node->desc.y_layout]);
    print_row(text, index, &row);
}

static void print_backward(const tdm_plan *plan, int index, const tdm_plan_node *node, tdm_text *text) {
    plan_row row = {.kind = "bwd", .op = node->op->name};
    int first_dx = -1;
    bool adds = false;
    add_value(row.reads, sizeof(row.reads), plan, node->dy);
    if ((node->reads & TDM_OP_READS_X) != 0)
        add_value(row.reads, sizeof(row.reads), plan, tdm__plan_in_backward(plan, node->x[0]));
    if ((node->reads & TDM_OP_READS_Y) != 0)
        add_value(row.reads, sizeof(row.reads), plan, tdm__plan_in_backward(plan, node->y));
    add_value(row.reads, sizeof(row.reads), plan, node->saved);
    for (int i = node->desc.input_count - 1; i >= 0; i--) {
        if (node->dx[i] < 0) continue;
        first_dx = node->dx[i];
        adds = adds || node->dx_adds[i];
    }
    for (int i = 0; i < node->desc.input_count; i++) add_value(row.writes, sizeof(row.writes), plan, node->dx[i]);
    for (int i = 0; i < node->desc.param_count; i++)
        if (node->dparam[i] >= 0) add_param(row.writes, sizeof(row.writes), plan, node->graph_param[i], "d:");
    add_param(row.writes, sizeof(row.writes), plan, node->summed_bias, "d:");
    set_place(&row, plan, first_dx);
    if (node->transfers)
        snprintf(row.notes, sizeof(row.notes), "to stage %d", node->stage);
    else
        snprintf(row.notes, sizeof(row.notes), "%s%s", node->kernel != NULL ? node->kernel->variant : "alias",
                 adds ? ", adds" : "");
    print_row(text, index, &row);
}

static void print_statistics(const tdm_plan *plan, int index, const tdm_plan_node *node, tdm_text *text) {
    plan_row row = {.kind = "stats", .op = node->op->name};
    if (index > plan->forward_steps) {
        add_value(row.reads, sizeof(row.reads), plan, node->dy);
        add_value(row.reads, sizeof(row.reads), plan, node->saved);
    }
    add_value(row.reads, sizeof(row.reads), plan, node->x[0]);
    snprintf(row.notes, sizeof(row.notes), "%s, %d replicas exchange %.2f KiB each", node->kernel->variant,
             node->desc.replicas, (double)node->statistics_bytes / 1024.0);
    print_row(text, index, &row);
}

static void print_stage_head(const tdm_plan *plan, int step, tdm_text *text) {
    for (int k = 0; plan->stage_count > 1 && k < plan->stage_count; k++) {
        const tdm_plan_stage *stage = &plan->stages[k];
        if ((step == stage->forward && stage->forward_end > step) ||
            (step == stage->backward && stage->backward_end > step))
            tdm__text_printf(text, "stage %d\n", k);
    }
}

static void print_steps(const tdm_plan *plan, tdm_text *text) {
    for (int i = 0; i < plan->step_count; i++) {
        const int index = plan->steps[i].index;
        print_stage_head(plan, i, text);
        switch (plan->steps[i].kind) {
        case TDM_STEP_STATISTICS:
            print_statistics(plan, i, &plan->nodes[index], text);
            break;
        case TDM_STEP_FORWARD:
            print_forward(plan, i, "fwd", &plan->nodes[index], text);
            break;
        case TDM_STEP_LOSS:
            print_loss(plan, i, text);
            break;
        case TDM_STEP_RECOMPUTE:
            print_recompute(plan, i, &plan->nodes[index], text);
            break;
        case TDM_STEP_BACKWARD:
            print_backward(plan, i, &plan->nodes[index], text);
            break;
        case TDM_STEP_READY:
            print_ready(plan, i, index, text);
            break;
        }
    }
}

/* Before the plan has steps: the nodes in order, then those that have a backward, from the last one on. */
static void print_nodes(const tdm_plan *plan, tdm_text *text) {
    for (int i = 0; i < plan->node_count; i++) print_forward(plan, i, "node", &plan->nodes[i], text);
    for (int i = plan->node_count - 1; i >= 0; i--)
        if (plan->nodes[i].dy >= 0) print_backward(plan, i, &plan->nodes[i], text);
}

static void print_rewrites(const tdm_plan *plan, tdm_text *text) {
    for (int i = 0; plan->rewrites != NULL && tdm_builtin_rewrites[i].name != NULL; i++) {
        const tdm_rewrite *row = &tdm_builtin_rewrites[i];
        if (plan->rewrites[i] > 0)
            tdm__text_printf(text, "rewrite: %s, %d time%s: %s\n", row->name, plan->rewrites[i],
                             plan->rewrites[i] == 1 ? "" : "s", row->why);
    }
}

static void print_params(const tdm_plan *plan, tdm_text *text) {
    for (int i = 0; i < plan->param_count; i++) {
        const tdm_plan_param *param = &plan->params[i];
        tdm__text_printf(text, "parameter: %-32s floats [%zu,+%lld)%s\n", param->name, param->offset,
                         (long long)param->stored, param->form.filled > 0 ? ", in the kernel's order" : "");
    }
}

static const char *print_count(char out[32], double count) {
    const double unit = count >= 1e9 ? 1e9 : count >= 1e6 ? 1e6 : count >= 1e3 ? 1e3 : 1;
    snprintf(out, 32, unit == 1 ? "%.0f" : "%.1f %c", count / unit, unit == 1e9 ? 'G' : unit == 1e6 ? 'M' : 'k');
    return out;
}

/* Parameters that are not trained: those that nobody uses, or the frozen ones. */
static int count_fixed(const tdm_plan *plan, bool unused, double *numbers) {
    int tensors = 0;
    *numbers = 0;
    for (int i = plan->trained_count; i < plan->param_count; i++) {
        const tdm_plan_param *param = &plan->params[i];
        if (plan->used[plan->graph->params[param->graph_param].node] == unused) continue;
        *numbers += (double)param->count;
        tensors++;
    }
    return tensors;
}

static void print_fixed(const tdm_plan *plan, bool unused, tdm_text *out) {
    char some[32], all[32], list[TDM_UNUSED_LIST];
    double numbers;
    const int tensors = count_fixed(plan, unused, &numbers);
    if (tensors == 0) return;
    tdm__text_printf(out, "%s: %d of %d tensors, %s of %s numbers", unused ? "without a gradient" : "frozen", tensors,
                     plan->param_count, print_count(some, numbers),
                     print_count(all, (double)tdm_graph_param_count(plan->graph)));
    if (unused) (void)tdm__graph_list_unused(plan->graph, plan->used, NULL, list);
    tdm__text_printf(out, "%s%s\n", unused ? ": " : "", unused ? list : "");
}

static void print_groups(const tdm_plan *plan, tdm_text *out) {
    const tdm_param_groups *groups = plan->options.groups;
    for (int g = 0; groups != NULL && groups->count > 0 && g <= groups->count; g++) {
        int tensors = 0;
        double numbers = 0;
        char count[32];
        for (int i = 0; i < plan->trained_count; i++) {
            if (plan->params[i].group != g) continue;
            tensors++;
            numbers += (double)plan->params[i].count;
        }
        tdm__text_printf(out, "group %d: %s%s, %d tensor%s, %s numbers\n", g,
                         g > 0 ? groups->item[g - 1].params.item[0] : "all others",
                         g > 0 && groups->item[g - 1].params.count > 1 ? ", ..." : "", tensors, tensors == 1 ? "" : "s",
                         print_count(count, numbers));
    }
}

static void print_head(const tdm_plan *plan, tdm_text *out) {
    static const plan_row columns = {"kind", "op", "reads", "writes", "place", "kernel"};
    char hash[TDM_HASH_TEXT];
    tdm__hash_print(hash, plan->hash);
    tdm__text_puts(out, "plan");
    if (plan->options.after != NULL) tdm__text_printf(out, " after %s", plan->options.after);
    tdm__text_printf(out, "  rows %lld  threads %d", (long long)plan->options.rows, plan->options.threads);
    if (plan->options.after == NULL)
        tdm__text_printf(out, "  parameters %lld  activations %zu B  buckets %d  hash %.16s",
                         (long long)tdm_graph_param_count(plan->graph), plan->activation_bytes, plan->bucket_count,
                         hash);
    tdm__text_puts(out, "\n");
    print_cells(out, "step", &columns);
}

void tdm__plan_print(const tdm_plan *plan, tdm_text *out) {
    print_head(plan, out);
    if (plan->step_count > 0)
        print_steps(plan, out);
    else
        print_nodes(plan, out);
    if (plan->param_count > 0 && plan->options.training) {
        print_fixed(plan, false, out);
        print_fixed(plan, true, out);
        print_groups(plan, out);
    }
    if (plan->has_offsets) tdm__stages_print(plan, out);
    if (plan->options.after != NULL) print_rewrites(plan, out);
    if (plan->options.after != NULL) print_params(plan, out);
    for (int i = 0; i < plan->node_count; i++) {
        const tdm_plan_node *node = &plan->nodes[i];
        if (node->declined[0] != '\0')
            tdm__text_printf(out, "note: %s '%s' runs on %s; %s\n", node->op->name, node->name,
                             node->kernel != NULL ? node->kernel->variant : "nothing", node->declined);
    }
}

static void put_step(tdm_json_out *to, const tdm_plan *plan, const tdm_plan_step *step) {
    static const char *const kinds[] = {"statistics", "forward", "loss", "recompute", "backward", "ready"};
    tdm__json_put(to, "{ kind:%s", kinds[step->kind]);
    if (step->kind == TDM_STEP_READY) tdm__json_put(to, "bucket:%d", step->index);
    if (step->kind != TDM_STEP_LOSS && step->kind != TDM_STEP_READY) {
        const tdm_plan_node *node = &plan->nodes[step->index];
        tdm__json_put(to, "op:%s name:%s kernel:%s also:%s", node->op->name, node->name,
                      node->kernel != NULL ? node->kernel->variant
                      : node->transfers    ? "copy"
                                           : "alias",
                      node->also[0] != '\0' ? node->also + 2 : "");
    }
    tdm__json_put(to, "}");
}

void tdm__plan_print_json(const tdm_plan *plan, tdm_json_out *to, const char *key) {
    char hash[TDM_HASH_TEXT];
    double numbers;
    tdm__hash_print(hash, plan->hash);
    tdm__json_put(to, "%s:{ rows:%lld threads:%d hash:%s parameters:%lld", key, (long long)plan->options.rows,
                  plan->options.threads, hash, (long long)tdm_graph_param_count(plan->graph));
    tdm__json_put(to, "parameter_bytes:%zu gradient_bytes:%zu frozen_tensors:%d unused_tensors:%d",
                  plan->param_floats * sizeof(float), plan->trained_floats * sizeof(float),
                  count_fixed(plan, false, &numbers), count_fixed(plan, true, &numbers));
    tdm__json_put(to, "activation_bytes:%zu buffer_bytes:%zu steps:[", plan->activation_bytes, plan->buffer_bytes);
    for (int i = 0; i < plan->step_count; i++) put_step(to, plan, &plan->steps[i]);
    tdm__json_put(to, "]");
    tdm__stages_print_json(plan, to);
    tdm__json_put(to, "buckets:[");
    for (const tdm_plan_bucket *bucket = plan->buckets; bucket < plan->buckets + plan->bucket_count; bucket++) {
        tdm__json_put(to, "{ offset:%zu count:%zu ready_after:%d parameters:[", bucket->offset, bucket->count,
                      bucket->ready_after);
        for (int i = 0; i < bucket->param_count; i++)
            tdm__json_put(to, "%s", plan->params[bucket->first_param + i].name);
        tdm__json_put(to, "]}");
    }
    tdm__json_put(to, "] values:[");
    for (const tdm_plan_value *value = plan->values; value < plan->values + plan->value_count; value++)
        tdm__json_put(to, "{ name:%s bytes:%zu offset:%zu first:%d last:%d }", value->name, value->bytes, value->offset,
                      value->first, value->last);
    tdm__json_put(to, "]}");
}
