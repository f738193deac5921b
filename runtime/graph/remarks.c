/* What a job does that one may not expect of its settings, though nothing is wrong with it: `check` and `plan` say it,
 * and `train` before step 1. */
#include <stdio.h>

#include "runtime/base/text/pattern.h"
#include "runtime/graph/graph.h"

static bool is_trained(const tdm_job *job, const tdm_graph *graph, const tdm_graph_node *node) {
    for (int i = 0; i < node->param_count; i++)
        if (tdm__patterns_find(&job->freeze, graph->params[node->first_param + i].name) < 0) return true;
    return node->param_count == 0;
}

/* One sentence, for the first of the layers. */
bool tdm__remark_statistics(const tdm_job *job, const tdm_graph *graph, char out[TDM_REMARK]) {
    const int64_t parts = job->train.accumulate, replicas = tdm__job_replicas(job);
    const bool joins = job->parallel.sync_batchnorm && replicas > 1;
    int64_t rows = job->train.per_device;
    if (rows == TDM_INT_NULL) rows = job->train.global_batch / replicas;
    if (job->parallel.stages <= 1 || parts <= 1) return false;
    for (size_t i = 0; i < graph->node_count; i++) {
        const tdm_graph_node *node = &graph->nodes[i];
        if (node->statistics == 0 || !is_trained(job, graph, node)) continue;
        const int64_t seen = (rows + parts - 1) / parts * (joins ? replicas : 1);
        snprintf(
            out, TDM_REMARK,
            "%s '%s' sees one micro-batch at a time: its statistics in training are those of %lld sample%s, not of "
            "%s %lld",
            node->op->name, node->name, (long long)seen, seen == 1 ? "" : "s", joins ? "all replicas'" : "a replica's",
            (long long)(joins ? replicas * rows : rows));
        return true;
    }
    return false;
}

/* PyTorch's hooks see such a sum, too, if all micro-batches but the last run under no_sync(). */
void tdm__compression_text(const tdm_job *job, char out[TDM_REMARK]) {
    const tdm_compress_section *compress = &job->parallel.ddp.compress;
    char summed[64] = "";
    if (job->train.accumulate > 1)
        snprintf(summed, sizeof(summed), ", summed over %lld micro-batches,", (long long)job->train.accumulate);
    if (tdm__job_replicas(job) == 1)
        snprintf(out, TDM_REMARK, "none: one replica sends nothing");
    else if (compress->type == TDM_COMPRESS_NONE)
        snprintf(out, TDM_REMARK, "none: gradients are sent as floats");
    else if (compress->type == TDM_COMPRESS_POWERSGD)
        snprintf(out, TDM_REMARK, "from step %lld on gradients%s are approximated by factors of %lld column%s",
                 (long long)compress->start_step + 1, summed, (long long)compress->rank,
                 compress->rank == 1 ? "" : "s");
    else
        snprintf(out, TDM_REMARK, "each replica's gradient%s is rounded to 16 bits, and their sum once", summed);
}

bool tdm__remark_compression(const tdm_job *job, char out[TDM_REMARK]) {
    char what[TDM_REMARK];
    if (job->parallel.ddp.compress.type == TDM_COMPRESS_NONE || job->train.accumulate <= 1 ||
        tdm__job_replicas(job) == 1)
        return false;
    tdm__compression_text(job, what);
    snprintf(out, TDM_REMARK, "parallel.ddp.compress: %.200s", what);
    return true;
}
