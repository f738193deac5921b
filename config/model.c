/* Builds the graph from model.layers. Names and references are resolved here; the ops infer the shapes. After a fault
 * in one layer the others are still read, only the shapes after it stay unknown. */
#include <string.h>

#include "config/blocks/blocks.h"
#include "config/builtin.h"
#include "config/config_private.h"
#include "runtime/base/status.h"
#include "runtime/base/text/pattern.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/loss_use.h"

/* "conv2d 'features.0' (line 12)" */
static const char *layer_words(tdm_config *config, const tdm_layer *layer) {
    return TDM_WORDS(config, "%s '%s' (%s)", layer->op != NULL ? layer->op->name : "the layer", layer->name,
                     tdm__position_words(&config->faults, layer->at));
}

static const char *shape_text(tdm_config *config, tdm_value value) {
    int64_t dim[TDM_MAX_DIMS];
    int ndim = tdm_graph_shape(config->graph, value, dim);
    const char *text = "";
    for (int i = 0; i < ndim; i++) text = TDM_WORDS(config, "%s%s%lld", text, i > 0 ? "x" : "", (long long)dim[i]);
    return text;
}

/* ---- names and references ---- */

static const char *taken_hint(tdm_config *config, int index) {
    return TDM_WORDS(config, "%s already has it", layer_words(config, &config->layers[index]));
}

static tdm_status check_taken(tdm_config *config, int index) {
    tdm_layer *layer = &config->layers[index];
    const int same_name = layer->is_named ? tdm__names_find(&config->layer_names, layer->name) : -1;
    const int same_id = layer->head.id != NULL ? tdm__names_find(&config->layer_ids, layer->head.id) : -1;
    if (same_name >= 0) {
        if (!tdm__fault_skip(&config->faults))
            TDM_FAULT(config, REFERENCE, layer->name_at, tdm__layer_key(config, index, "name"),
                      taken_hint(config, same_name), "the layer name '%s' is taken", layer->name);
        layer->name = TDM_WORDS(config, "%d", index); /* so that shape faults after it are still found */
        layer->is_named = false;
    }
    if (same_id >= 0) {
        if (!tdm__fault_skip(&config->faults))
            TDM_FAULT(config, REFERENCE, layer->id_at, tdm__layer_key(config, index, "id"), taken_hint(config, same_id),
                      "the id '%s' is taken", layer->head.id);
        layer->head.id = NULL;
    }
    tdm__inputs_check_name(config, index);
    if (layer->is_named) TDM_TRY(tdm__names_add(&config->layer_names, &config->work, layer->name, index));
    if (layer->head.id != NULL) TDM_TRY(tdm__names_add(&config->layer_ids, &config->work, layer->head.id, index));
    if (layer->head.id != NULL && (strcmp(layer->head.id, "input") == 0 || layer->head.id[0] == '\0'))
        TDM_FAULT(config, REFERENCE, layer->id_at, tdm__layer_key(config, index, "id"), "choose another id",
                  "the id '%s' %s", layer->head.id,
                  layer->head.id[0] == '\0' ? "is empty" : "is reserved for the model's input");
    return config->faults.status;
}

static void unknown_id(tdm_config *config, int index, const char *id, tdm_position at) {
    const tdm_shapes *inputs = &config->settings.model.inputs;
    const char *ids[64 + TDM_SHAPES_MAX];
    int count = 0;
    const char *hint = NULL;
    if (tdm__fault_skip(&config->faults)) return;
    if (inputs->count > 0 && strcmp(id, "input") == 0)
        hint = TDM_WORDS(config, "the model's inputs have names: %s", tdm__inputs_list(config));
    for (int k = 0; k < inputs->count; k++) ids[count++] = inputs->item[k].name;
    for (int i = 0; i < config->layer_count; i++) {
        const tdm_layer *layer = &config->layers[i];
        if (layer->head.id != NULL && i < index && count < 64) ids[count++] = layer->head.id;
        if (layer->head.id != NULL && i >= index && strcmp(layer->head.id, id) == 0)
            hint = TDM_WORDS(config, "%s %s; a layer takes outputs of layers above it", layer_words(config, layer),
                             i == index ? "is this layer" : "comes later");
        if (hint == NULL && layer->is_named && strcmp(layer->name, id) == 0)
            hint = TDM_WORDS(config, "that is a name; write `id: %s` at %s as well", id, layer_words(config, layer));
    }
    if (hint == NULL) hint = tdm__hint_nearest(config, id, ids, count);
    if (hint[0] == '\0' && inputs->count > 0)
        hint = TDM_WORDS(config, "write `id: ...` at the layer whose output you mean; the model's inputs are %s",
                         tdm__inputs_list(config));
    if (hint[0] == '\0') hint = "write `id: ...` at the layer whose output you mean; `input` is the model's input";
    TDM_FAULT(config, REFERENCE, at, tdm__layer_key(config, index, "input"), hint, "no layer above has the id '%s'",
              id);
}

/* The values that the layer takes; -1 for a value that is unknown after a fault. */
static int resolve_inputs(tdm_config *config, int index, tdm_value *values, int *sources) {
    tdm_layer *layer = &config->layers[index];
    if (layer->head.input.count == 0 && index == 0) {
        values[0] = tdm__inputs_first(config, layer);
        sources[0] = -1;
        return 1;
    }
    if (layer->head.input.count == 0) {
        sources[0] = index - 1;
        values[0] = config->layers[index - 1].value;
        config->layers[index - 1].uses++;
        return 1;
    }
    for (int k = 0; k < layer->head.input.count; k++) {
        const char *id = layer->head.input.item[k];
        values[k] = -1;
        sources[k] = -2;
        const int input = tdm__inputs_find(config, id);
        if (input >= 0) {
            values[k] = tdm__inputs_value(config, input);
            sources[k] = -1;
            config->input_uses[input]++;
            continue;
        }
        const int source = tdm__names_find(&config->layer_ids, id);
        if (source >= 0 && source < index) {
            sources[k] = source;
            values[k] = config->layers[source].value;
            config->layers[source].uses++;
            continue;
        }
        unknown_id(config, index, id, layer->input_at[k]);
        layer->lacks_input = true;
    }
    return layer->head.input.count;
}

/* ---- shapes ---- */

static tdm_status add_node(tdm_config *config, tdm_layer *layer, const tdm_value *values, int count, bool without_in) {
    tdm_attr attrs[TDM_LAYER_ATTRS_MAX];
    int attr_count = 0;
    for (int i = 0; i < layer->attr_count; i++) {
        if (!without_in || strcmp(layer->attr[i].key, "in") != 0) attrs[attr_count++] = layer->attr[i];
    }
    tdm_origin origin = tdm__position_origin(layer->at);
    if (layer->module != NULL) {
        const tdm_status status = tdm__graph_add_module(config->graph, layer->module, layer->file);
        if (status == TDM_E_USAGE) TDM_FAIL(TDM_E_UNSUPPORTED, "%s: %s", layer->file, tdm_error_message());
        TDM_TRY(status);
    }
    TDM_TRY(tdm_graph_add_at(config->graph, &origin, layer->op->name, layer->name, values, count, attrs, attr_count,
                             &layer->value));
    if (layer->head.stage == TDM_INT_NULL) return TDM_OK;
    return tdm_graph_set_stage(config->graph, layer->value, (int)layer->head.stage);
}

static const char *input_words(tdm_config *config, const tdm_value *values, const int *sources, int count) {
    const char *text = "";
    for (int k = 0; k < count; k++) {
        const char *from =
            sources[k] < 0 ? tdm__inputs_words(config, values[k]) : layer_words(config, &config->layers[sources[k]]);
        text = TDM_WORDS(config, "%s%s%s gives %s", text, k > 0 ? ", " : "", from, shape_text(config, values[k]));
    }
    return text;
}

static tdm_status build_layer(tdm_config *config, int index) {
    tdm_layer *layer = &config->layers[index];
    tdm_value values[TDM_MAX_INPUTS];
    int sources[TDM_MAX_INPUTS];
    int count = resolve_inputs(config, index, values, sources);
    layer->value = -1;
    bool is_known = !layer->is_broken && config->graph != NULL;
    for (int k = 0; k < count; k++) is_known = is_known && values[k] >= 0;
    if (!is_known) return config->faults.status;
    tdm_status status = add_node(config, layer, values, count, false);
    if (status == TDM_OK) return TDM_OK;
    tdm_error first;
    tdm__error_save(&first);
    /* `in` only documents the input. If the layer fits without it, `in` is the fault, and the shapes after it are
     * known. */
    tdm_position at = layer->at;
    const char *key = "";
    layer->value = -1;
    for (int i = 0; i < layer->attr_count; i++) {
        if (strcmp(layer->attr[i].key, "in") != 0 || (status != TDM_E_CONFIG && status != TDM_E_UNSUPPORTED)) continue;
        if (add_node(config, layer, values, count, true) == TDM_OK) {
            at = layer->attr_at[i];
            key = "in";
            first.line = at.line;
            first.column = at.column;
        } else {
            layer->value = -1;
        }
    }
    tdm__error_restore(&first, NULL);
    return tdm__engine_fault(config, status, at, tdm__layer_key(config, index, key),
                             input_words(config, values, sources, count));
}

/* ---- the whole model ---- */

/* Of the parameters that have no gradient because nothing uses this layer's output: ", so no gradient reaches
 * fc.weight". */
static const char *unused_words(tdm_config *config, const tdm_layer *layer) {
    const tdm_graph *graph = config->graph;
    const tdm_layer *last = &config->layers[config->layer_count - 1];
    bool *used = NULL, *among = NULL;
    char list[TDM_UNUSED_LIST];
    if (layer->value < 0 || last->value < 0 ||
        tdm__zone_new(&config->work, &used, graph->node_count, sizeof(*used)) != TDM_OK ||
        tdm__zone_new(&config->work, &among, graph->node_count, sizeof(*among)) != TDM_OK)
        return "";
    tdm__graph_find_used(graph, last->value, used);
    tdm__graph_find_used(graph, layer->value, among);
    if (tdm__graph_list_unused(graph, used, among, list) == 0) return "";
    return TDM_WORDS(config, ", so no gradient reaches %s", list);
}

/* Every layer is used, unless the job allows others. */
static void check_uses(tdm_config *config) {
    const bool allows_unused = config->settings.job.parallel.ddp.find_unused_parameters;
    for (int i = 0; !allows_unused && i + 1 < config->layer_count; i++) {
        const tdm_layer *layer = &config->layers[i];
        const tdm_layer *next = &config->layers[i + 1];
        tdm__expanded_enter(config, &config->expanded[i]);
        if (layer->uses > 0 || next->lacks_input || tdm__fault_skip(&config->faults)) continue;
        TDM_FAULT(config, REFERENCE, layer->at, tdm__layer_key(config, i, ""),
                  TDM_WORDS(config,
                            "%s takes other inputs; name this output with `id` and use it, remove the layer, or set "
                            "`parallel.ddp.find_unused_parameters: true`",
                            layer_words(config, next)),
                  "nothing uses the output of %s '%s'%s", layer->op != NULL ? layer->op->name : "the layer",
                  layer->name, unused_words(config, layer));
    }
    tdm__expanded_enter(config, NULL);
    const tdm_layer *last = &config->layers[config->layer_count - 1];
    if (last->uses > 0)
        TDM_FAULT(config, REFERENCE, last->at, tdm__layer_key(config, config->layer_count - 1, ""), "",
                  "the output of the last layer is the model's output; no layer may take it");
}

static void check_classes(tdm_config *config, int64_t classes) {
    const tdm_data_spec *specs[] = {&config->settings.job.data.train, &config->settings.job.data.eval};
    const char *const keys[] = {"data.train.classes", "data.eval.classes"};
    for (int i = 0; i < 2; i++) {
        if (specs[i]->format != TDM_DATA_SYNTHETIC || specs[i]->classes == TDM_INT_NULL || specs[i]->classes <= classes)
            continue;
        const tdm_layer *last = &config->layers[config->layer_count - 1];
        TDM_FAULT(config, CONFLICT, tdm__config_position(config, keys[i]), keys[i],
                  TDM_WORDS(config, "the last layer is %s", layer_words(config, last)),
                  "%s must be at most %lld, the number of outputs of the model, got %lld", keys[i], (long long)classes,
                  (long long)specs[i]->classes);
    }
}

static tdm_status check_output(tdm_config *config) {
    const tdm_layer *last = &config->layers[config->layer_count - 1];
    const tdm_loss_def *loss = tdm_builtin_losses[config->settings.job.loss.type];
    tdm_origin origin = tdm__position_origin(last->at);
    int64_t classes = 0;
    tdm_status status =
        tdm__loss_take_output(loss, &config->settings.job.loss, config->graph, last->value, &origin, &classes);
    if (status != TDM_OK)
        return tdm__engine_fault(config, status, last->at, tdm__layer_key(config, config->layer_count - 1, ""),
                                 TDM_WORDS(config, "the model's output is the output of %s: %s",
                                           layer_words(config, last), shape_text(config, last->value)));
    if (loss->target == TDM_TARGET_CLASS) check_classes(config, classes);
    return TDM_OK;
}

/* True if model.layers is a list that can be read. Otherwise false, with a fault. */
static bool find_layers(tdm_config *config) {
    const tdm_yaml_node *node = config->layers_node;
    tdm_position at = config->section_at[tdm__section_find("model")];
    if (config->section_is_bad[tdm__section_find("model")]) return false;
    if (node == NULL) {
        bool has_model = at.text != NULL;
        TDM_FAULT(config, MISSING, has_model ? at : config->section_at[0], has_model ? "model.layers" : "model",
                  "write model: {input: [1, 28, 28], layers: [flatten, {linear: 10}]}",
                  has_model ? "the key `model.layers` is missing" : "the key `model` is missing");
        return false;
    }
    if (node->is_reported) return false;
    if (node->kind == TDM_YAML_LIST && node->count > 0 && node->count <= TDM_LAYERS_MAX) return true;
    if (node->kind != TDM_YAML_LIST)
        TDM_FAULT(config, VALUE, node->at, "model.layers", "begin each layer with `- `",
                  "model.layers must be a list of layers, got %s", tdm__yaml_words(&config->faults, node));
    else
        TDM_FAULT(config, VALUE, node->at, "model.layers", "", "model.layers must have 1 to %d layers, got %d",
                  TDM_LAYERS_MAX, node->count);
    return false;
}

static void check_pattern(tdm_config *config, const tdm_texts *patterns, tdm_position at, const char *key) {
    const int wrong = tdm__graph_unmatched(config->graph, patterns);
    if (wrong < 0) return;
    char near[TDM_PATTERN_HINT];
    const char *hint = tdm__graph_nearest_pattern(config->graph, patterns->item[wrong], near)
                           ? TDM_WORDS(config, "did you mean `%s`?", near)
                           : TDM_WORDS(config, "names look like `%s`", config->graph->params[0].name);
    TDM_FAULT(config, REFERENCE, at, key, hint, "%s: no parameter of the model matches '%s'", key,
              patterns->item[wrong]);
}

/* A run that trains does not open without a parameter for it. */
static void check_frozen(tdm_config *config) {
    const tdm_graph *graph = config->graph;
    const tdm_job *job = &config->settings.job;
    const bool trains = job->train.epochs != TDM_INT_NULL || job->train.steps != TDM_INT_NULL;
    size_t frozen = 0;
    for (size_t i = 0; i < graph->param_count; i++)
        frozen += tdm__patterns_find(&job->freeze, graph->params[i].name) >= 0;
    if (frozen == graph->param_count && trains && !config->predicts)
        TDM_FAULT(config, CONFLICT, tdm__config_position(config, "model.freeze"), "model.freeze", "leave out a pattern",
                  "model.freeze: every parameter is frozen, so there is nothing to train");
}

static void check_patterns(tdm_config *config) {
    const tdm_job *job = &config->settings.job;
    const tdm_param_groups *groups = &job->optimizer.groups;
    if (config->graph->param_count == 0) return;
    check_pattern(config, &job->freeze, tdm__config_position(config, "model.freeze"), "model.freeze");
    check_frozen(config);
    for (int i = 0; i < groups->count; i++)
        check_pattern(config, &groups->item[i].params, config->section_at[tdm__section_find("optimizer.groups")],
                      TDM_WORDS(config, "optimizer.groups[%d].params", i));
}

/* What a block's item does not write itself. */
static void take_expanded(tdm_layer *layer, const tdm_expanded *expanded) {
    if (expanded->id != NULL && layer->head.id == NULL) {
        layer->head.id = expanded->id;
        layer->id_at = layer->at;
    }
    if (expanded->input == NULL || layer->head.input.count > 0) return;
    layer->head.input.item[layer->head.input.count++] = expanded->input;
    layer->input_at[0] = layer->at;
}

static tdm_status read_layers(tdm_config *config) {
    TDM_TRY(tdm__zone_new(&config->work, &config->layers, (size_t)config->expanded_count, sizeof(tdm_layer)));
    for (int i = 0; i < config->expanded_count && !config->faults.is_cut; i++) {
        const tdm_expanded *expanded = &config->expanded[i];
        tdm__expanded_enter(config, expanded);
        TDM_TRY(tdm__layer_read(config, config->layer_count++, expanded->item, &config->layers[i]));
        take_expanded(&config->layers[i], expanded);
        config->faults.is_cut = config->faults.count == TDM_FAULTS_KEPT && i + 1 < config->expanded_count; /* full */
    }
    tdm__expanded_enter(config, NULL);
    return TDM_OK;
}

static tdm_status build_layers(tdm_config *config) {
    TDM_TRY(tdm__inputs_open(config));
    int before = config->faults.total;
    TDM_TRY(tdm__layers_expand(config));
    if (config->has_block_fault) return TDM_OK;
    TDM_TRY(read_layers(config));
    if (config->faults.is_cut) return TDM_OK;
    for (int i = 0; i < config->layer_count; i++) {
        tdm__expanded_enter(config, &config->expanded[i]);
        TDM_TRY(check_taken(config, i));
        TDM_TRY(build_layer(config, i));
    }
    tdm__expanded_enter(config, NULL);
    check_uses(config);
    tdm__inputs_check_uses(config);
    tdm__check_missing_stages(config);
    const tdm_layer *last = &config->layers[config->layer_count - 1];
    if (last->value >= 0 && !config->is_bad[tdm__section_find("loss")][0]) TDM_TRY(check_output(config));
    if (config->faults.total != before || last->value < 0) return TDM_OK;
    tdm_status status = tdm_graph_finish(config->graph, last->value);
    if (status != TDM_OK) return tdm__engine_fault(config, status, last->at, "model.layers", "");
    if (config->faults.total == 0) TDM_TRY(tdm__check_cuts(config));
    if (config->faults.total == 0) check_patterns(config);
    if (config->faults.total == 0) tdm__check_rows(config);
    return TDM_OK;
}

/* The layers become a text of their own, whose name says where they come from. */
static tdm_status expand_builtin(tdm_config *config) {
    tdm_yaml_text *text;
    tdm_yaml_node *root;
    tdm_text layers;
    const char *bytes;
    tdm__text_init(&layers, config->host);
    tdm__builtin_print(&config->settings.model, &layers);
    const size_t count = layers.length;
    tdm_status status = layers.failed ? TDM_E_MEMORY : tdm__zone_text(&config->work, &bytes, layers.data);
    tdm__text_deinit(&layers);
    if (status != TDM_OK) TDM_FAIL(TDM_E_MEMORY, "out of memory for the layers of model.builtin");
    TDM_TRY(tdm__zone_new(&config->work, &text, 1, sizeof(*text)));
    *text = (tdm_yaml_text){.name = "model.builtin", .bytes = bytes, .count = count};
    TDM_TRY(tdm__yaml_parse(&root, text, &config->work, &config->faults));
    config->layers_node = root;
    return TDM_OK;
}

/* Settings of a network by name, where there is none. */
static void check_unused(tdm_config *config) {
    static const char *const keys[] = {"model.classes", "model.small_input", "model.zero_init_residual"};
    const tdm_model_head *model = &config->settings.model;
    const bool is_set[] = {model->classes != TDM_INT_NULL, model->small_input, model->zero_init_residual};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (!is_set[i]) continue;
        TDM_FAULT(config, CONFLICT, tdm__config_position(config, keys[i]), keys[i],
                  "write `builtin: resnet18`, or remove it", "%s belongs to model.builtin", keys[i]);
    }
}

static bool is_absent(const tdm_yaml_node *node) {
    return node == NULL || tdm__yaml_is_null(node);
}

tdm_status tdm__model_build(tdm_config *config) {
    tdm__settings_take_model(&config->settings);
    tdm__inputs_check_transform(config);
    if (tdm__config_is_bad(config, "model.builtin")) return config->faults.status; /* nobody knows the layers */
    if (config->settings.model.builtin != TDM_BUILTIN_none) {
        const tdm_yaml_node *other = is_absent(config->layers_node) ? config->blocks_node : config->layers_node;
        if (!is_absent(other)) {
            TDM_FAULT(config, EXCLUSIVE, other->key_at, "model.layers", "keep one of the two",
                      "model must have either layers or builtin, got both");
            return config->faults.status;
        }
        config->blocks_node = NULL;
        if (config->settings.model.inputs.count > 1) {
            TDM_FAULT(config, CONFLICT, tdm__config_position(config, "model.inputs"), "model.inputs",
                      "write `input` with the shape of a picture, or `layers`", "model.builtin has one input");
            return config->faults.status;
        }
        TDM_TRY(expand_builtin(config));
    } else {
        check_unused(config);
    }
    if (!find_layers(config)) return config->faults.status;
    TDM_TRY(build_layers(config));
    return config->faults.status;
}
