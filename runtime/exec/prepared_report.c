/* What the kernels of a replica have chosen, for people: in the log, and as JSON. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/exec/prepared.h"

static bool has_algorithms(const tdm_plan_node *node, const void *state, tdm_algorithms *out) {
    memset(out, 0, sizeof *out);
    if (node->kernel == NULL || node->kernel->algorithms == NULL || state == NULL) return false;
    node->kernel->algorithms(state, out);
    return true;
}

static void log_algorithm(const tdm_replica *replica, const tdm_prepared *prepared, const char *layer,
                          const tdm_algorithm *a) {
    const char *beside = a->fused == NULL      ? ""
                         : a->fused[0] == '\0' ? ", nothing in the same call"
                                               : ", in the same call: ";
    TDM_DEBUG(replica->host, "kernel", "%s, %lld rows%s, %s: %s, %s, workspace %zu bytes%s%s", layer,
              (long long)prepared->rows, prepared->training ? "" : " in evaluation", a->pass, a->name, a->math,
              a->workspace_bytes, beside, a->fused != NULL ? a->fused : "");
}

/* Layers of one kind are often slow for one reason: it is told once, for the first of them and for how many. */
static void warn_slow(const tdm_replica *replica, const tdm_prepared *prepared, int first, const char *why) {
    const tdm_plan *plan = replica->plan;
    tdm_algorithms other;
    int more = 0;
    for (int i = 0; i < plan->node_count; i++) {
        if (!has_algorithms(&plan->nodes[i], prepared->state[i], &other) || strcmp(other.slow, why) != 0) continue;
        if (i < first) return;
        more += i > first;
    }
    char others[32] = "";
    if (more > 0) snprintf(others, sizeof others, " (and %d more)", more);
    TDM_WARN(replica->host, "kernel", "%s%s: %s", plan->nodes[first].name, others, why);
}

void tdm__prepared_log(const tdm_replica *replica, const tdm_prepared *prepared) {
    const tdm_plan *plan = replica->plan;
    const bool first = replica->prepared->first == NULL && replica->index == 0;
    for (int i = 0; i < plan->node_count; i++) {
        tdm_algorithms chosen;
        if (!has_algorithms(&plan->nodes[i], prepared->state[i], &chosen)) continue;
        for (int k = 0; k < chosen.count; k++) log_algorithm(replica, prepared, plan->nodes[i].name, &chosen.of[k]);
        if (first && chosen.slow[0] != '\0') warn_slow(replica, prepared, i, chosen.slow);
    }
}

static void print_node(const tdm_plan_node *node, const void *state, tdm_text *text) {
    tdm_algorithms chosen;
    tdm__text_printf(text, "{\"layer\": ");
    tdm__text_json_string(text, node->name);
    tdm__text_printf(text, ", \"op\": \"%s\", \"kernel\": \"%s\"", node->desc.op,
                     node->kernel != NULL ? node->kernel->variant : "none");
    if (has_algorithms(node, state, &chosen)) {
        tdm__text_printf(text, ", \"algorithms\": [");
        for (int k = 0; k < chosen.count; k++) {
            const tdm_algorithm *a = &chosen.of[k];
            tdm__text_printf(text,
                             "%s{\"pass\": \"%s\", \"algorithm\": \"%s\", \"math\": \"%s\", \"workspace_bytes\": %zu",
                             k > 0 ? ", " : "", a->pass, a->name, a->math, a->workspace_bytes);
            if (a->fused != NULL) tdm__text_printf(text, ", \"fused\": \"%s\"", a->fused);
            tdm__text_printf(text, "}");
        }
        tdm__text_printf(text, "], \"slow\": ");
        tdm__text_json_string(text, chosen.slow);
    }
    tdm__text_printf(text, "}");
}

void tdm__prepared_print(const tdm_replica *replica, tdm_text *text) {
    const char *between = "";
    tdm__text_printf(text, "[");
    for (const tdm_prepared *p = replica->prepared->first; p != NULL; p = p->next) {
        tdm__text_printf(text, "%s{\"rows\": %lld, \"training\": %s, \"layers\": [", between, (long long)p->rows,
                         p->training ? "true" : "false");
        for (int i = 0; i < replica->plan->node_count; i++) {
            tdm__text_printf(text, "%s", i > 0 ? ",\n  " : "\n  ");
            print_node(&replica->plan->nodes[i], p->state[i], text);
        }
        tdm__text_printf(text, "]}");
        between = ",\n ";
    }
    tdm__text_printf(text, "]\n");
}
