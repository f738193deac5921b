/* What a plan says of its stages. */
#include "runtime/plan/plan.h"

/* How busy p equal stages are with m micro-batches: each waits for p - 1 of m + p - 1 turns. */
typedef struct occupancy {
    long long micro, turns;
    double bubble, efficiency;
} occupancy;

static occupancy occupancy_of(const tdm_plan *plan) {
    const long long micro = plan->options.micro_batches > 1 ? plan->options.micro_batches : 1;
    const long long turns = micro + plan->stage_count - 1;
    return (occupancy){micro, turns, (double)(plan->stage_count - 1) / (double)turns, (double)micro / (double)turns};
}

static double flops_of_all(const tdm_plan *plan) {
    double sum = 0;
    for (int k = 0; k < plan->stage_count; k++) sum += plan->stages[k].flops;
    return sum;
}

static void print_stage(const tdm_plan *plan, int index, double all, tdm_text *out) {
    const tdm_plan_stage *stage = &plan->stages[index];
    tdm__text_printf(out, "  stage %-3d %8.1f %%  %10.2f MiB  %10.2f MiB x %-2d + %8.2f MiB  %10.2f MiB\n", index,
                     all > 0 ? stage->flops / all * 100 : 0,
                     (double)(stage->trained_floats + stage->frozen_floats) * sizeof(float) / 1048576.0,
                     (double)stage->activation_bytes / 1048576.0, stage->in_flight,
                     (double)stage->shared_bytes / 1048576.0, (double)stage->sent_bytes / 1048576.0);
}

/* For a job whose layers have a `stage`, but whose replicas have one device. */
static void print_ignored(const tdm_plan *plan, tdm_text *out) {
    int layers = 0;
    for (size_t i = 0; i < plan->graph->node_count; i++) layers += plan->graph->nodes[i].stage > 0;
    if (layers == 0) return;
    tdm__text_printf(
        out, "note: parallel.stages is 1: each replica runs on one device, and `stage` of %d layer%s is ignored\n",
        layers, layers == 1 ? "" : "s");
}

void tdm__stages_print(const tdm_plan *plan, tdm_text *out) {
    const occupancy of = occupancy_of(plan);
    const double all = flops_of_all(plan);
    if (plan->stage_count == 1) {
        print_ignored(plan, out);
        return;
    }
    tdm__text_printf(out,
                     "\n%d stages, %lld micro-batch%s a step: bubble %d/%lld = %.1f %%, efficiency of equal stages "
                     "%.1f %%\n",
                     plan->stage_count, of.micro, of.micro == 1 ? "" : "es", plan->stage_count - 1, of.turns,
                     of.bubble * 100, of.efficiency * 100);
    tdm__text_puts(out, "             work      parameters   activations x in flight + shared         sends on\n");
    for (int k = 0; k < plan->stage_count; k++) print_stage(plan, k, all, out);
}

void tdm__stages_print_json(const tdm_plan *plan, tdm_json_out *to) {
    const occupancy of = occupancy_of(plan);
    if (plan->stage_count == 1) return;
    tdm__json_put(to, "micro_batches:%lld bubble:%.17g efficiency:%.17g stages:[", of.micro, of.bubble, of.efficiency);
    for (const tdm_plan_stage *stage = plan->stages; stage < plan->stages + plan->stage_count; stage++) {
        tdm__json_put(to, "{ flops:%.17g parameter_bytes:%zu gradient_bytes:%zu", stage->flops,
                      (stage->trained_floats + stage->frozen_floats) * sizeof(float),
                      stage->trained_floats * sizeof(float));
        tdm__json_put(
            to,
            "activation_bytes:%zu in_flight:%d shared_bytes:%zu buffer_bytes:%zu sent_bytes:%zu returned_bytes:%zu }",
            stage->activation_bytes, stage->in_flight, stage->shared_bytes, stage->buffer_bytes, stage->sent_bytes,
            stage->returned_bytes);
    }
    tdm__json_put(to, "]");
}
