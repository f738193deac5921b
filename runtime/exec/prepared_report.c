/* What the kernels of a replica have chosen, for people: in the log, and as JSON. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/text/json_write.h"
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

/* Layers of one kind are often slow for one reason: it is reported once, with the first of them and their number. */
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

static void put_node(tdm_json_out *to, const tdm_plan_node *node, const void *state) {
    tdm_algorithms chosen;
    tdm__json_put(to, "{ layer:%s op:%s kernel:%s", node->name, node->desc.op,
                  node->kernel != NULL ? node->kernel->variant : "none");
    if (has_algorithms(node, state, &chosen)) {
        tdm__json_put(to, "algorithms:[");
        for (const tdm_algorithm *a = chosen.of; a < chosen.of + chosen.count; a++) {
            tdm__json_put(to, "{ pass:%s algorithm:%s math:%s workspace_bytes:%zu", a->pass, a->name, a->math,
                          a->workspace_bytes);
            if (a->fused != NULL) tdm__json_put(to, "fused:%s", a->fused);
            tdm__json_put(to, "}");
        }
        tdm__json_put(to, "] slow:%s", chosen.slow);
    }
    tdm__json_put(to, "}");
}

static void put_stage(tdm_json_out *to, const tdm_replica *replica) {
    const tdm_plan *plan = replica->plan;
    for (const tdm_prepared *p = replica->prepared->first; p != NULL; p = p->next) {
        tdm__json_put(to, "{ rows:%lld", (long long)p->rows);
        tdm__json_put_bool(to, "training", p->training);
        if (plan->stage_count > 1) tdm__json_put(to, "stage:%d", replica->stage);
        tdm__json_put(to, "layers:[\n");
        for (int i = 0; i < plan->node_count; i++)
            if (plan->nodes[i].stage == replica->stage) put_node(to, &plan->nodes[i], p->state[i]);
        tdm__json_put(to, "]}");
    }
}

void tdm__prepared_print(const tdm_replica *replica, tdm_text *text) {
    tdm_json_out json = tdm__json_out(text, " ");
    tdm__json_put(&json, "[\n");
    for (int k = 0; k < replica->plan->stage_count; k++) put_stage(&json, replica->stages[k]);
    tdm__json_put(&json, "]\n");
}
