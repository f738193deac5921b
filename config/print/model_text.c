/* The text that a file of weights carries, so that it is a model: YAML with what predictions need, and no paths. Every
 * value is written, so that the text means the same to a later version with other defaults. */
#include <stdio.h>
#include <string.h>

#include <tandem/config.h>

#include "config/table.h"
#include "config/yaml.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

/* ---- layers ---- */

enum { VALUE_ID = 24 };
/* A value, as `id` and `input` name it. With a point behind it where an input has the name. */
static void put_value(const tdm_graph *graph, tdm_value value, tdm_text *out) {
    char id[VALUE_ID];
    if (tdm__graph_is_input(graph, value)) {
        tdm__text_puts(out, graph->inputs[value].name != NULL ? graph->inputs[value].name : "input");
        return;
    }
    snprintf(id, sizeof(id), "v%d", (int)value);
    tdm__text_puts(out, id);
    if (tdm__graph_find_input(graph, id) >= 0) tdm__text_puts(out, ".");
}

/* Does the layer take the output of the one before it, or, the first, the model's input? Then it need not say so. */
static bool follows(const tdm_graph *graph, size_t index) {
    const tdm_graph_node *node = &graph->nodes[index];
    if (node->input_count != 1 || (index == 0 && graph->input_count > 1)) return false;
    return node->input[0] == (index > 0 ? graph->nodes[index - 1].output : 0);
}

/* named[i]: a layer that does not follow layer i takes its output. */
static void find_named(const tdm_graph *graph, bool *named) {
    for (size_t i = 0; i < graph->node_count; i++) {
        const tdm_graph_node *node = &graph->nodes[i];
        for (int k = 0; k < node->input_count && !follows(graph, i); k++) {
            const int producer = graph->values[node->input[k]].producer;
            if (producer >= 0) named[producer] = true;
        }
    }
}

static void begin_key(const char *key, int *count, tdm_text *out) {
    tdm__text_printf(out, "%s%s: ", (*count)++ > 0 ? ", " : ": {", key);
}

static void put_inputs(const tdm_graph *graph, const tdm_graph_node *node, tdm_text *out) {
    for (int i = 0; i < node->input_count; i++) {
        tdm__text_puts(out, i > 0 ? ", " : "[");
        put_value(graph, node->input[i], out);
    }
    tdm__text_puts(out, "]");
}

static void put_layer(const tdm_graph *graph, size_t index, bool is_named, tdm_text *out) {
    const tdm_graph_node *node = &graph->nodes[index];
    tdm_layer_head head = {.stage = TDM_INT_NULL};
    char number[24];
    int count = 0;
    snprintf(number, sizeof(number), "%zu", index);
    const tdm_graph_module *own = tdm__graph_module_of(graph, node->op);
    tdm__text_printf(out, "    - %s", own != NULL ? "custom" : node->op->name);
    if (own != NULL) tdm__print_custom(own->file, node->op->name, NULL, &count, out);
    if (strcmp(node->name, number) != 0) head.name = node->name;
    tdm__print_layer_keys(tdm__layer_rows, &head, NULL, &count, out);
    if (is_named) {
        begin_key("id", &count, out);
        put_value(graph, node->output, out);
    }
    if (!follows(graph, index)) {
        begin_key("input", &count, out);
        put_inputs(graph, node, out);
    }
    tdm__print_layer_keys(node->op->attrs, node->attrs, NULL, &count, out);
    tdm__text_puts(out, count > 0 ? "}\n" : "\n");
}

/* Programs may give names that no file may have. */
static tdm_status check_names(const tdm_graph *graph) {
    for (size_t i = 0; i < graph->node_count; i++) {
        const char *name = graph->nodes[i].name;
        if (!tdm__layer_name_fits(name, (int)i) || strstr(name, "${") != NULL)
            TDM_FAIL(TDM_E_UNSUPPORTED, "a YAML file cannot have the layer name '%.200s'", name);
        const tdm_graph_module *own = tdm__graph_module_of(graph, graph->nodes[i].op);
        if (own != NULL && own->file == NULL)
            TDM_FAIL(TDM_E_UNSUPPORTED,
                     "%s '%s' is a layer of the program itself, which a YAML file cannot name; "
                     "tdm_graph_use_file takes it from a library",
                     graph->nodes[i].op->name, name);
    }
    return TDM_OK;
}

static void put_shape(const tdm_shape *shape, tdm_text *out) {
    for (int i = 0; i < shape->ndim; i++) tdm__text_printf(out, "%s%lld", i > 0 ? ", " : "[", (long long)shape->dim[i]);
    tdm__text_puts(out, "]");
}

static void put_model_inputs(const tdm_graph *graph, tdm_text *out) {
    const bool has_names = graph->inputs[0].name != NULL;
    tdm__text_puts(out, has_names ? "  inputs: {" : "  input: ");
    for (int k = 0; k < graph->input_count; k++) {
        if (has_names) tdm__text_printf(out, "%s%s: ", k > 0 ? ", " : "", graph->inputs[k].name);
        put_shape(&graph->values[k].shape, out);
    }
    tdm__text_puts(out, has_names ? "}\n" : "\n");
}

static tdm_status put_model(const tdm_graph *graph, tdm_text *out) {
    bool *named = NULL;
    TDM_TRY(tdm__new(graph->host, &named, graph->node_count, sizeof(*named), "model text"));
    find_named(graph, named);
    tdm__text_puts(out, "model:\n");
    put_model_inputs(graph, out);
    tdm__text_puts(out, "  layers:\n");
    for (size_t i = 0; i < graph->node_count; i++) put_layer(graph, i, named[i], out);
    tdm__delete(graph->host, named);
    return TDM_OK;
}

/* ---- the rest of the job ---- */

/* The value of a key of the table, in a line or in braces. */
static void put_key(const tdm_settings *settings, const char *path, const char *key, tdm_text *out) {
    const tdm_section *section = &tdm__sections[tdm__section_find(path)];
    tdm__text_printf(out, "%s: ", key);
    tdm__field_print(tdm__field_find(section->rows, key), (const char *)settings + section->offset, out);
}

/* How a table is read: its features are a note of their own. The path stands for the table that is given. */
static void put_table(const tdm_settings *settings, tdm_text *out) {
    static const char *const keys[] = {"header",  "label",  "categories",  "ignore",
                                       "missing", "unseen", "standardize", "standardize_target"};
    if (settings->job.data.train.format != TDM_DATA_CSV) return;
    tdm__text_puts(out, "  train: {format: csv, path: table.csv");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        tdm__text_puts(out, ", ");
        put_key(settings, "data.train", keys[i], out);
    }
    tdm__text_puts(out, "}\n");
}

static void put_job(const tdm_settings *settings, tdm_text *out) {
    static const struct {
        const char *section, *key;
    } keys[] = {{"loss", "type"}, {"train", "precision"}, {"parallel", "kernels"}, {"eval", "batch"}};
    tdm__text_puts(out, "data:\n");
    put_table(settings, out);
    tdm__text_puts(out, "  transform: ");
    tdm__print_transform(&settings->job.data.transform, false, out);
    tdm__text_puts(out, "\n");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        tdm__text_printf(out, "%s: {", keys[i].section);
        put_key(settings, keys[i].section, keys[i].key, out);
        tdm__text_puts(out, "}\n");
    }
}

tdm_status tdm__model_print(const tdm_job *job, const tdm_graph *graph, tdm_text *out) {
    TDM_TRY(tdm__job_check(out->host, job));
    if (!graph->finished)
        TDM_FAIL(TDM_E_USAGE, "tdm_config_print_model: the graph is not finished; call tdm_graph_finish");
    if (graph->output != graph->nodes[graph->node_count - 1].output)
        TDM_FAIL(TDM_E_UNSUPPORTED, "the model's output is not its last layer, as it is in every YAML file");
    TDM_TRY(check_names(graph));
    const tdm_settings settings = {.job = *job};
    put_key(&settings, "", "tandem", out);
    tdm__text_puts(out, "\n");
    put_key(&settings, "", "name", out);
    tdm__text_puts(out, "\n");
    TDM_TRY(put_model(graph, out));
    put_job(&settings, out);
    if (out->length > TDM_YAML_MAX_BYTES)
        TDM_FAIL(TDM_E_UNSUPPORTED, "the text of the model has %zu bytes, and a YAML file at most %d", out->length,
                 (int)TDM_YAML_MAX_BYTES);
    if (out->failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for the text of the model");
    return TDM_OK;
}

tdm_status tdm_config_print_model(const tdm_job *job, const tdm_graph *graph, char **out) {
    if (job == NULL || graph == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_print_model: a pointer is NULL");
    *out = NULL;
    tdm_text text;
    tdm__text_init(&text, graph->host);
    const tdm_status status = tdm__model_print(job, graph, &text);
    if (status == TDM_OK) return tdm__text_take_public(&text, out);
    tdm__text_deinit(&text);
    return status;
}
