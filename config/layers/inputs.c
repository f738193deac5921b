/* The model's inputs: model.input, which is one, or model.inputs, which have names; and data.transform, which may name
 * them. */
#include <string.h>

#include "config/config_private.h"
#include "runtime/base/status.h"
#include "runtime/data/transforms/transforms.h"
#include "runtime/graph/graph.h"

static const tdm_shapes *named(const tdm_config *config) {
    return &config->settings.model.inputs;
}

int tdm__inputs_find(const tdm_config *config, const char *id) {
    const tdm_shapes *inputs = named(config);
    if (inputs->count == 0) return strcmp(id, "input") == 0 ? 0 : -1;
    int k = inputs->count - 1;
    while (k >= 0 && strcmp(inputs->item[k].name, id) != 0) k--;
    return k;
}

const char *tdm__inputs_list(tdm_config *config) {
    const char *names[TDM_SHAPES_MAX];
    for (int k = 0; k < named(config)->count; k++) names[k] = named(config)->item[k].name;
    return tdm__fault_list_of(&config->faults, names, named(config)->count);
}

const char *tdm__inputs_words(tdm_config *config, int index) {
    if (named(config)->count == 0) return "the model's input";
    return TDM_WORDS(config, "the input '%s'", named(config)->item[index].name);
}

/* Where the file has the input's name; the section's key if an override has it. */
static tdm_position position_of(const tdm_config *config, int index) {
    const tdm_yaml_node *node = config->inputs_node != NULL ? config->inputs_node->first : NULL;
    for (; node != NULL && index > 0; index--) node = node->next;
    return node != NULL ? node->key_at : tdm__config_position(config, "model.inputs");
}

static const char *key_of(tdm_config *config, int index) {
    return TDM_WORDS(config, "model.inputs.%s", named(config)->item[index].name);
}

/* ---- opening the graph ---- */

/* A later override wins over an earlier text. False after a fault. */
static bool choose(tdm_config *config) {
    tdm_model_head *model = &config->settings.model;
    const tdm_position one = tdm__config_position(config, "model.input"),
                       several = tdm__config_position(config, "model.inputs");
    if (tdm__config_is_bad(config, "model.input") || tdm__config_is_bad(config, "model.inputs")) return false;
    if (model->input.count == 0 && model->inputs.count == 0) {
        const tdm_position at = config->section_at[tdm__section_find("model")];
        if (at.text == NULL) return false; /* then `model` is missing */
        TDM_FAULT(config, MISSING, at, "model.input",
                  "write input: [channels, height, width], or a number of features; several inputs are `inputs`",
                  "the key `model.input` is missing");
        return false;
    }
    if (model->input.count == 0 || model->inputs.count == 0) return true;
    if (one.text->order != several.text->order) {
        *(one.text->order > several.text->order ? &model->inputs.count : &model->input.count) = 0;
        return true;
    }
    TDM_FAULT(config, EXCLUSIVE, several, "model.inputs", "keep one of the two",
              "model must have either input or inputs, got both");
    return false;
}

void tdm__inputs_choose(tdm_config *config) {
    config->inputs_are_bad = !choose(config);
}

static void refuse_name(tdm_config *config, int index) {
    config->inputs_are_bad = true;
    config->input_uses[index]++; /* one fault is enough */
    TDM_FAULT(config, REFERENCE, position_of(config, index), key_of(config, index), "write a name such as image or x1",
              "an input's name must have 1 to %d letters, digits and _, not begin with a digit, and not be input or "
              "output, got '%.80s'",
              TDM_INPUT_NAME_MAX, named(config)->item[index].name);
}

static tdm_status add_one(tdm_config *config, int index) {
    const tdm_named_shape *input = &named(config)->item[index];
    tdm_value value;
    if (!tdm__graph_is_input_name(input->name)) {
        refuse_name(config, index);
        return TDM_OK;
    }
    const tdm_status status = tdm_graph_add_input(config->graph, input->name, input->ndim, input->dim, &value);
    if (status == TDM_OK) return TDM_OK;
    config->inputs_are_bad = true;
    return tdm__engine_fault(config, status, position_of(config, index), key_of(config, index), "");
}

tdm_status tdm__inputs_open(tdm_config *config) {
    const tdm_ints *one = &config->settings.model.input;
    tdm_value value;
    if (config->inputs_are_bad) return TDM_OK;
    TDM_TRY(tdm_graph_new(&config->graph, config->host));
    for (int k = 0; k < named(config)->count; k++) TDM_TRY(add_one(config, k));
    if (named(config)->count > 0) return TDM_OK;
    const tdm_status status = tdm_graph_input(config->graph, one->count, one->item, &value);
    config->inputs_are_bad = status != TDM_OK;
    if (status == TDM_OK) return TDM_OK;
    return tdm__engine_fault(config, status, tdm__config_position(config, "model.input"), "model.input", "");
}

tdm_value tdm__inputs_value(const tdm_config *config, int index) {
    return config->inputs_are_bad ? -1 : index;
}

/* ---- who takes them ---- */

/* A layer is not called as an input is, nor is its output. */
void tdm__inputs_check_name(tdm_config *config, int index) {
    static const char hint[] = "model.inputs has it; choose another";
    tdm_layer *layer = &config->layers[index];
    if (named(config)->count == 0) return;
    if (layer->is_named && tdm__inputs_find(config, layer->name) >= 0) {
        if (!tdm__fault_skip(&config->faults))
            TDM_FAULT(config, REFERENCE, layer->name_at, tdm__layer_key(config, index, "name"), hint,
                      "the layer name '%s' is taken", layer->name);
        layer->name = TDM_WORDS(config, "%d", index);
        layer->is_named = false;
    }
    if (layer->head.id == NULL || tdm__inputs_find(config, layer->head.id) < 0) return;
    if (!tdm__fault_skip(&config->faults))
        TDM_FAULT(config, REFERENCE, layer->id_at, tdm__layer_key(config, index, "id"), hint, "the id '%s' is taken",
                  layer->head.id);
    layer->head.id = NULL;
}

/* What the first layer takes if it does not say so: the only input. */
tdm_value tdm__inputs_first(tdm_config *config, tdm_layer *layer) {
    if (named(config)->count < 2) {
        config->input_uses[0]++;
        return tdm__inputs_value(config, 0);
    }
    if (config->inputs_are_bad) return -1;
    layer->lacks_input = true;
    TDM_FAULT(config, REFERENCE, layer->at, tdm__layer_key(config, 0, "input"),
              TDM_WORDS(config, "write `input: %s`", named(config)->item[0].name),
              "the first layer must say which of the model's inputs it takes: %s", tdm__inputs_list(config));
    return -1;
}

void tdm__inputs_check_uses(tdm_config *config) {
    for (int k = 0; config->graph != NULL && k < named(config)->count; k++) {
        if (config->input_uses[k] > 0 || tdm__fault_skip(&config->faults)) continue;
        const char *const name = named(config)->item[k].name;
        TDM_FAULT(config, REFERENCE, position_of(config, k), key_of(config, k),
                  TDM_WORDS(config, "write `input: %s` at a layer, or remove it", name),
                  "no layer takes the input '%s'", name);
    }
}

/* ---- data.transform ---- */

typedef struct normalize_step {
    const tdm_normalize *step;
    const tdm_normalize_at *at;
} normalize_step;

static normalize_step normalize_of(const tdm_config *config, int i) {
    return (normalize_step){&config->settings.job.data.transform.normalize.item[i], &config->normalize_at[i]};
}

static void check_means(tdm_config *config, const normalize_step *of, int64_t channels, tdm_position other) {
    const int means = of->step->mean.count;
    if (means < 2 || means == channels) return;
    TDM_FAULT(config, CONFLICT, of->at->mean, "data.transform.normalize.mean",
              TDM_WORDS(config, "%s says `%s`", tdm__position_words(&config->faults, other),
                        tdm__position_line(&config->faults, other)),
              "normalize must have 1 mean or one for each of the %lld channels, got %d", (long long)channels, means);
}

/* Is name i of a step among those before it, there or in earlier steps? */
static bool is_repeated(const tdm_config *config, int step, int i) {
    const char *const name = normalize_of(config, step).step->inputs.item[i];
    for (int s = 0; s <= step; s++) {
        const tdm_texts *const names = &normalize_of(config, s).step->inputs;
        for (int k = 0; k < (s < step ? names->count : i); k++)
            if (strcmp(names->item[k], name) == 0) return true;
    }
    return false;
}

/* normalize of several inputs says which of them it is for. */
static void check_named(tdm_config *config, int step) {
    static const char key[] = "data.transform.normalize.inputs";
    const normalize_step of = normalize_of(config, step);
    const tdm_texts *names = &of.step->inputs;
    if (names->count == 0 && named(config)->count > 1 && !of.at->inputs_are_bad)
        TDM_FAULT(config, CONFLICT, of.at->mean, key,
                  TDM_WORDS(config, "write normalize: {inputs: [%s], ...}", named(config)->item[0].name),
                  "normalize must say which of the model's inputs it is for: %s", tdm__inputs_list(config));
    for (int i = 0; i < names->count; i++) {
        const int k = named(config)->count > 0 ? tdm__inputs_find(config, names->item[i]) : -1;
        if (is_repeated(config, step, i))
            TDM_FAULT(config, CONFLICT, of.at->inputs, key, "keep one", "normalize: the input '%s' is listed twice",
                      names->item[i]);
        else if (k >= 0)
            check_means(config, &of, named(config)->item[k].dim[0], position_of(config, k));
        else
            TDM_FAULT(config, REFERENCE, of.at->inputs, key,
                      named(config)->count > 0 ? TDM_WORDS(config, "the inputs are %s", tdm__inputs_list(config))
                                               : "write model.inputs to give inputs names",
                      "normalize: the model has no input '%s'", names->item[i]);
    }
}

static void check_normalize(tdm_config *config, int step) {
    const normalize_step of = normalize_of(config, step);
    const tdm_ints *one = &config->settings.model.input;
    if (of.step->mean.count == 0 || of.step->stdev.count == 0) return; /* that is a fault already */
    if (named(config)->count < 2 && step > 0)
        TDM_FAULT(config, CONFLICT, of.at->mean, "data.transform.normalize", "keep one",
                  "data.transform: normalize is listed twice, and the model has one input");
    else if (named(config)->count > 1 || of.step->inputs.count > 0)
        check_named(config, step);
    else if (named(config)->count == 1)
        check_means(config, &of, named(config)->item[0].dim[0], position_of(config, 0));
    else if (one->count > 0)
        check_means(config, &of, one->item[0], tdm__config_position(config, "model.input"));
}

/* Steps for pictures change a whole sample, which of several inputs is a row of the numbers of all. */
static void check_pictures(tdm_config *config) {
    static const char key[] = "data.transform";
    if (named(config)->count < 2 || tdm__transform_picture_steps(&config->settings.job.data.transform) == 0) return;
    TDM_FAULT(config, CONFLICT, tdm__config_position(config, key), key,
              TDM_WORDS(config, "the inputs are %s; save the pictures as they are to be", tdm__inputs_list(config)),
              "a model with several inputs takes no steps for pictures");
}

void tdm__inputs_check_transform(tdm_config *config) {
    check_pictures(config);
    for (int i = 0; i < config->settings.job.data.transform.normalize.count; i++) check_normalize(config, i);
}
