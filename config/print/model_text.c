/* The text that a file of weights carries, so that it is a model: YAML with what predictions need, and no paths. Every
 * value is written, so that the text means the same to a later version with other defaults. */
#include <string.h>

#include <tandem/config.h>

#include "config/print/layers_text.h"
#include "config/table.h"
#include "config/yaml.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

/* ---- layers ---- */

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

static tdm_status put_model(const tdm_graph *graph, tdm_text *out) {
    static const tdm_layers_form whole = {.changed = -1};
    tdm__text_puts(out, "model:\n");
    tdm__print_graph_inputs(graph, out);
    tdm__text_puts(out, "  layers:\n");
    return tdm__print_graph_layers(graph, &whole, out);
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
