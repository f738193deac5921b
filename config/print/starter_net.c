/* Writes a configuration for the network of an ONNX file: its layers, and where its weights are. */
#include "config/print/starter_net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/print/layers_text.h"
#include "runtime/base/field/field.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/graph/loss_use.h"

/* ---- the network ---- */

/* The layer whose main key is how many numbers it gives, if they become the model's output one by one. */
static int find_head(const tdm_graph *graph) {
    int index = graph->values[graph->output].producer;
    while (index >= 0 && graph->nodes[index].param_count == 0 && graph->nodes[index].input_count == 1)
        index = graph->values[graph->nodes[index].input[0]].producer;
    if (index < 0) return -1;
    const tdm_graph_node *node = &graph->nodes[index];
    const tdm_field *row = tdm__field_main(node->op->attrs);
    const tdm_shape *shape = &graph->values[node->output].shape;
    const bool counts = row != NULL && row->kind == TDM_FIELD_INT && (row->flags & TDM_FIELD_REQUIRED) != 0;
    return counts && shape->ndim == 1 && shape->dim[0] == tdm_graph_output_width(graph) &&
                   *(const int64_t *)(const void *)((const char *)node->attrs + row->offset) == shape->dim[0]
               ? index
               : -1;
}

tdm_status tdm__starter_net_open(tdm_starter_net *out, const tdm_host *host, const char *path) {
    tdm_value output;
    *out = (tdm_starter_net){.head = -1};
    TDM_TRY(tdm_graph_from_onnx(&out->graph, &output, host, path));
    tdm_status status = out->graph->param_count == 0 ? tdm__fail(TDM_E_CONFIG, __FILE__, __LINE__, NULL,
                                                                 "%s: the network has no parameters to train", path)
                                                     : tdm_graph_finish(out->graph, output);
    if (status == TDM_OK) {
        out->head = find_head(out->graph);
        out->path = realpath(path, NULL); /* the file may be written anywhere */
        status = out->path == NULL ? tdm__fail(errno == ENOMEM ? TDM_E_MEMORY : TDM_E_DATA, __FILE__, __LINE__, NULL,
                                               "'%s' cannot be found: %m", path)
                                   : tdm__starter_check_path(out->path, "file");
        if (status == TDM_OK && !tdm__text_ends_in(out->path, ".onnx"))
            status = tdm__fail(TDM_E_DATA, __FILE__, __LINE__, NULL,
                               "%s: an ONNX file is known by its name, which must end in .onnx; rename it", out->path);
    }
    if (status != TDM_OK) tdm__starter_net_close(out);
    return status;
}

void tdm__starter_net_close(tdm_starter_net *net) {
    tdm_graph_free(net->graph);
    free(net->path);
    *net = (tdm_starter_net){.graph = NULL};
}

int64_t tdm__starter_net_outputs(const tdm_starter_net *net) {
    return tdm_graph_output_width(net->graph);
}

tdm_status tdm__starter_net_check(const tdm_starter_net *net, int ndim, const int64_t *dim, int64_t outputs) {
    const tdm_shape *input = &net->graph->sample;
    tdm_shape wanted = {.ndim = ndim};
    for (int i = 0; i < ndim; i++) wanted.dim[i] = dim[i];
    if (net->graph->input_count > 1)
        TDM_FAIL(TDM_E_DATA,
                 "%s has several inputs; without a task the file gets a job for them, in which you name the data",
                 net->path);
    if (ndim == 3 && input->ndim != ndim)
        TDM_FAIL(TDM_E_DATA, "%s takes %s numbers, no pictures", net->path, tdm__shape_text(input).text);
    if (!tdm__shape_equal(input, &wanted))
        TDM_FAIL(TDM_E_DATA, "%s takes samples of %s, and those of the data are %s", net->path,
                 tdm__shape_text(input).text, tdm__shape_text(&wanted).text);
    if (net->head < 0 && outputs != tdm__starter_net_outputs(net))
        TDM_FAIL(TDM_E_DATA,
                 "%s gives %lld numbers, and the data need %lld; its last layer is none whose outputs can be chosen",
                 net->path, (long long)tdm__starter_net_outputs(net), (long long)outputs);
    return TDM_OK;
}

const char *tdm__starter_net_loss(const tdm_starter_net *net) {
    if (net == NULL) return NULL;
    const char *last = net->graph->nodes[net->graph->node_count - 1].op->name;
    for (const tdm_loss_use *use = tdm_builtin_loss_uses; use->loss != NULL; use++)
        if (use->needs != NULL && strcmp(use->needs, last) == 0) return use->loss;
    return NULL;
}

/* ---- the section model ---- */

/* "conv1.*": the first layer with parameters; NULL: it is the head. */
static const char *first_name(const tdm_starter_net *net) {
    int i = 0;
    while (net->graph->nodes[i].param_count == 0 && i < net->head) i++;
    return i < net->head ? net->graph->nodes[i].name : NULL;
}

static void put_weights(const tdm_starter *s, bool changes) {
    const tdm_starter_net *net = s->net;
    const char *first = first_name(net);
    tdm__text_puts(s->out, "  weights: ");
    tdm__text_json_string(s->out, net->path);
    tdm__text_puts(s->out, "\n");
    if (changes) {
        tdm__starter_note(s, 2, "the last layer has other outputs than in the file, and begins anew",
                          "最后一层的输出个数与文件不同，从头训练");
        tdm__text_printf(s->out, "  skip: [\"%s.*\"]\n", net->graph->nodes[net->head].name);
    }
    if (net->graph->shared[0] != NULL)
        tdm__text_printf(s->out,
                         s->chinese
                             ? "  # 文件中 %s 与 %s 共用同一权重；tandem 为每层各训练一份\n"
                             : "  # %s and %s are one constant in the file; tandem trains a copy for each layer\n",
                         net->graph->shared[0], net->graph->shared[1]);
    if (first == NULL) return;
    tdm__starter_note(s, 2, "layers that keep the weights of the file as they are:", "权重保持不变的层：");
    tdm__text_printf(s->out, "  # freeze: [\"%s.*\"]\n", first);
}

tdm_status tdm__starter_put_net(const tdm_starter *s, int64_t outputs) {
    const tdm_graph *graph = s->net->graph;
    const bool changes = s->net->head >= 0 && outputs != tdm__starter_net_outputs(s->net);
    const tdm_layers_form form = {.is_brief = true, .changed = changes ? s->net->head : -1, .value = outputs};
    tdm__text_puts(s->out, "model:\n");
    tdm__print_graph_inputs(graph, s->out);
    put_weights(s, changes);
    tdm__text_puts(s->out, "  layers:\n");
    return tdm__print_graph_layers(graph, &form, s->out);
}
