/* Every layer in a line: its op, and its keys in braces. */
#include "config/print/layers_text.h"

#include <stdio.h>
#include <string.h>

#include "config/table.h"
#include "runtime/base/field/field.h"
#include "runtime/base/status.h"

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

/* ---- keys ---- */

/* The keys of a layer so far. */
typedef struct keys {
    tdm_text *out;
    int count;
} keys;

/* Without memory it is one, and the text is marked as failed. */
static bool is_default(const tdm_field *row, const void *object, const void *initial, tdm_text *out) {
    tdm_text a, b;
    tdm__text_init(&a, out->host);
    tdm__text_init(&b, out->host);
    tdm__field_print(row, object, &a);
    tdm__field_print(row, initial, &b);
    out->failed = out->failed || a.failed || b.failed;
    const bool same = out->failed || ((row->flags & TDM_FIELD_REQUIRED) == 0 && strcmp(a.data, b.data) == 0);
    tdm__text_deinit(&a);
    tdm__text_deinit(&b);
    return same;
}

/* A pair of equal numbers is written as one. */
static void put_attribute(const tdm_field *row, const void *object, const int64_t *instead, tdm_text *out) {
    const int64_t *pair = (const int64_t *)(const void *)((const char *)object + row->offset);
    if (instead == NULL && row->kind == TDM_FIELD_PAIR && pair[0] == pair[1] && pair[0] >= 0) instead = pair;
    if (instead != NULL)
        tdm__text_printf(out, "%lld", (long long)*instead);
    else
        tdm__field_print(row, object, out);
}

/* Those that are not the defaults. */
static tdm_status put_brief(keys *k, const tdm_graph_node *node, const int64_t *main_value) {
    const tdm_field *rows = node->op->attrs, *main_row = tdm__field_main(rows), *only = NULL;
    tdm_zone zone;
    void *initial = NULL;
    int others = 0;
    tdm__zone_init(&zone, k->out->host);
    tdm_status status = tdm__zone_new(&zone, &initial, 1, node->op->attrs_bytes > 0 ? node->op->attrs_bytes : 1);
    if (status == TDM_OK && rows != NULL) status = tdm__field_set_initial(rows, initial, &zone);
    for (const tdm_field *row = rows; status == TDM_OK && row != NULL && row->key != NULL; row++) {
        if (is_default(row, node->attrs, initial, k->out)) continue;
        only = row;
        others++;
    }
    const bool is_alone = others == 1 && only == main_row && k->count == 0;
    for (const tdm_field *row = rows; status == TDM_OK && row != NULL && row->key != NULL; row++) {
        if (is_default(row, node->attrs, initial, k->out)) continue;
        if (is_alone)
            tdm__text_puts(k->out, ": ");
        else
            begin_key(row->key, &k->count, k->out);
        put_attribute(row, node->attrs, row == main_row ? main_value : NULL, k->out);
    }
    tdm__zone_deinit(&zone);
    return status;
}

static tdm_status put_layer(const tdm_graph *graph, size_t index, bool is_named, const tdm_layers_form *form,
                            tdm_text *out) {
    const tdm_graph_node *node = &graph->nodes[index];
    tdm_layer_head head = {.stage = TDM_INT_NULL};
    char number[24];
    keys k = {.out = out};
    snprintf(number, sizeof(number), "%zu", index);
    const tdm_graph_module *own = tdm__graph_module_of(graph, node->op);
    tdm__text_printf(out, "    - %s", own != NULL ? "custom" : node->op->name);
    if (own != NULL) tdm__print_custom(own->file, node->op->name, NULL, &k.count, out);
    if (strcmp(node->name, number) != 0) head.name = node->name;
    tdm__print_layer_keys(tdm__layer_rows, &head, NULL, &k.count, out);
    if (is_named) {
        begin_key("id", &k.count, out);
        put_value(graph, node->output, out);
    }
    if (!follows(graph, index)) {
        begin_key("input", &k.count, out);
        put_inputs(graph, node, out);
    }
    if (form->is_brief)
        TDM_TRY(put_brief(&k, node, form->changed == (int)index ? &form->value : NULL));
    else
        tdm__print_layer_keys(node->op->attrs, node->attrs, NULL, &k.count, out);
    tdm__text_puts(out, k.count > 0 ? "}\n" : "\n");
    return TDM_OK;
}

tdm_status tdm__print_graph_layers(const tdm_graph *graph, const tdm_layers_form *form, tdm_text *out) {
    bool *named = NULL;
    tdm_status status = TDM_OK;
    TDM_TRY(tdm__new(graph->host, &named, graph->node_count, sizeof(*named), "model text"));
    find_named(graph, named);
    for (size_t i = 0; i < graph->node_count && status == TDM_OK; i++)
        status = put_layer(graph, i, named[i], form, out);
    tdm__delete(graph->host, named);
    return status;
}

/* ---- inputs ---- */

static void put_shape(const tdm_shape *shape, tdm_text *out) {
    for (int i = 0; i < shape->ndim; i++) tdm__text_printf(out, "%s%lld", i > 0 ? ", " : "[", (long long)shape->dim[i]);
    tdm__text_puts(out, "]");
}

void tdm__print_graph_inputs(const tdm_graph *graph, tdm_text *out) {
    const bool has_names = graph->inputs[0].name != NULL;
    tdm__text_puts(out, has_names ? "  inputs: {" : "  input: ");
    for (int k = 0; k < graph->input_count; k++) {
        if (has_names) tdm__text_printf(out, "%s%s: ", k > 0 ? ", " : "", graph->inputs[k].name);
        put_shape(&graph->values[k].shape, out);
    }
    tdm__text_puts(out, has_names ? "}\n" : "\n");
}
