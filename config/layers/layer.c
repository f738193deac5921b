/* One item of model.layers: `kind`, `kind: main argument` or `kind: {keys}`. The op's own rows read the attributes, so
 * that all their faults are reported at once. Shapes are checked later, in model.c. */
#include <string.h>

#include "config/config_private.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/loss_use.h"

/* ---- the kind ---- */

/* "": the loss has nothing to do with it. */
static const char *hint_for_softmax(tdm_config *config) {
    const tdm_loss_def *loss = tdm_builtin_losses[config->settings.job.loss.type];
    const tdm_loss_use *use = tdm__loss_use(loss);
    if (use->contains != NULL)
        return TDM_WORDS(config, "remove it: the loss %s expects the outputs before softmax", loss->name);
    if (use->needs == NULL) return "";
    return TDM_WORDS(config, "write `- %s`: the loss %s expects log-probabilities", use->needs, loss->name);
}

static const char *hint_for_kind(tdm_config *config, const char *kind) {
    const char *names[128];
    int count = 0;
    for (; tdm_builtin_ops[count] != NULL && count < 127; count++) names[count] = tdm_builtin_ops[count]->name;
    names[count++] = "custom";
    if (tdm__yaml_find(config->blocks_node, kind) != NULL)
        return TDM_WORDS(config, "write `- block: {use: %s, name: ...}`", kind);
    const char *other = tdm__foreign_layer(kind);
    if (other != NULL) return TDM_WORDS(config, "tandem calls it `%s`", other);
    const char *near = strcasecmp(kind, "softmax") == 0 ? hint_for_softmax(config) : "";
    if (near[0] == '\0') near = tdm__hint_nearest(config, kind, names, count);
    return near[0] != '\0' ? near : TDM_WORDS(config, "kinds: %s", tdm__fault_list_of(&config->faults, names, count));
}

/* Splits an item into its kind and its keys. False after a fault about how the item is written. */
static bool split_item(tdm_config *config, int index, const tdm_yaml_node *item, const char **kind, tdm_position *at,
                       const tdm_yaml_node **keys) {
    static const char form[] = "write `- relu`, `- linear: 10` or `- conv2d: {out: 64, kernel: 3}`";
    const char *key = tdm__layer_key(config, index, "");
    *keys = NULL;
    if (item->is_reported) return false;
    if (item->kind == TDM_YAML_SCALAR && !tdm__yaml_is_null(item)) {
        *kind = item->text;
        *at = item->at;
        return true;
    }
    if (item->kind == TDM_YAML_MAP && item->count == 1) {
        *keys = item->first;
        *kind = (*keys)->key;
        *at = (*keys)->key_at;
        return true;
    }
    if (item->kind != TDM_YAML_MAP || item->count == 0) {
        TDM_FAULT(config, LAYER, item->at, key, form, "%s must be a layer, got %s", key,
                  tdm__yaml_words(&config->faults, item));
        return false;
    }
    const char *first = item->first->key;
    const char *hint = form;
    if (tdm__op_find(first) != NULL && tdm__yaml_is_null(item->first))
        hint = TDM_WORDS(config, "indent the keys of %s deeper, or write `- %s: {%s: ...}`", first, first,
                         item->first->next->key);
    TDM_FAULT(config, LAYER, item->first->next->key_at, key, hint,
              "%s must be one kind with its keys inside, got '%s' beside '%s'", key, item->first->next->key, first);
    return false;
}

/* ---- the keys ---- */

static void add_attr(tdm_config *config, int index, tdm_layer *layer, const tdm_field *row, const tdm_yaml_node *node) {
    tdm_text flow, why;
    bool is_nested = node->kind == TDM_YAML_MAP;
    if (node->is_reported) {
        layer->is_broken = true;
        return;
    }
    for (const tdm_yaml_node *item = node->first; item != NULL; item = item->next)
        is_nested = is_nested || item->kind != TDM_YAML_SCALAR;
    tdm__text_init(&flow, config->host);
    tdm__text_init(&why, config->host);
    if (is_nested) {
        tdm__field_describe(row, &why, false);
        TDM_FAULT(config, VALUE, node->at, tdm__layer_key(config, index, row->key), "", "%s: %s: expected %s, got %s",
                  layer->op->name, row->key, why.data == NULL ? "" : why.data,
                  node->kind == TDM_YAML_MAP ? "a mapping" : "a list of lists");
        layer->is_broken = true;
        goto done;
    }
    tdm__yaml_flow(node, &flow);
    const char *text;
    if (tdm__zone_text(&config->work, &text, flow.data == NULL ? "" : flow.data) != TDM_OK)
        config->faults.status = TDM_E_MEMORY;
    else if (strstr(text, "${") != NULL)
        text = tdm__substitute(config, text, node->at, tdm__layer_key(config, index, row->key));
    if (text == NULL) {
        layer->is_broken = true;
        goto done;
    }
    if (!tdm__field_set_text(row, layer->attrs, text, &config->work, &why)) {
        if (!tdm__config_lacks_memory(config, &why))
            TDM_FAULT(config, VALUE, node->at, tdm__layer_key(config, index, row->key),
                      tdm__fault_wide_hint(&config->faults, node->at), "%s: %s %s", layer->op->name, row->key,
                      why.data == NULL ? "has a wrong value" : why.data);
        layer->is_broken = true;
    } else if (layer->attr_count < TDM_LAYER_ATTRS_MAX) {
        layer->attr[layer->attr_count] = (tdm_attr){row->key, text, tdm__position_origin(node->at)};
        layer->attr_at[layer->attr_count++] = node->at;
    }
done:
    if (flow.failed || why.failed) config->faults.status = TDM_E_MEMORY;
    tdm__text_deinit(&flow);
    tdm__text_deinit(&why);
}

static void add_inputs(tdm_config *config, int index, tdm_layer *layer, const tdm_yaml_node *node) {
    const char *key = tdm__layer_key(config, index, "input");
    const tdm_yaml_node *item = node->kind == TDM_YAML_LIST ? node->first : node;
    if (tdm__yaml_is_null(node)) return;
    bool is_list = node->kind == TDM_YAML_LIST;
    for (; item != NULL; item = is_list ? item->next : NULL) {
        if (item->kind != TDM_YAML_SCALAR || tdm__yaml_is_null(item) || layer->head.input.count == TDM_MAX_INPUTS)
            break;
        layer->input_at[layer->head.input.count] = item->at;
        layer->head.input.item[layer->head.input.count++] = item->text;
    }
    if (item == NULL && layer->head.input.count > 0) return;
    layer->is_broken = true;
    TDM_FAULT(config, VALUE, item != NULL ? item->at : node->at, key,
              "write input: a, or input: [a, b], with the ids of earlier layers", "%s: input must have 1 to %d ids",
              layer->op->name, TDM_MAX_INPUTS);
}

/* Sets a key that layers of every kind have: name, id, stage. */
static void set_head(tdm_config *config, int index, tdm_layer *layer, const tdm_field *row, const tdm_yaml_node *node) {
    const char *item = node->kind == TDM_YAML_SCALAR ? node->text : "";
    tdm_written written = {
        .is_list = node->kind != TDM_YAML_SCALAR, .is_null = tdm__yaml_is_null(node), .count = 1, .item = &item};
    tdm_text why;
    tdm__text_init(&why, config->host);
    if (node->kind == TDM_YAML_MAP || !tdm__field_set(row, &layer->head, &written, &config->work, &why)) {
        if (!tdm__config_lacks_memory(config, &why))
            TDM_FAULT(config, VALUE, node->at, tdm__layer_key(config, index, row->key), "", "%s: %s %s",
                      layer->op->name, row->key, why.data == NULL ? "must be a single value" : why.data);
        layer->is_broken = true;
    }
    if (strcmp(row->key, "name") == 0) layer->name_at = node->at;
    if (strcmp(row->key, "id") == 0) layer->id_at = node->at;
    tdm__text_deinit(&why);
}

static void unknown_attr(tdm_config *config, int index, tdm_layer *layer, const tdm_yaml_node *node) {
    layer->is_broken = true;
    if (tdm__fault_skip(&config->faults)) return;
    const char *names[64], *kind = layer->op->name;
    int count = 0;
    for (const tdm_field *row = layer->op->attrs; row != NULL && row->key != NULL && count < 56; row++)
        names[count++] = row->key;
    for (const tdm_field *row = tdm__layer_rows; row->key != NULL; row++) names[count++] = row->key;
    const char *hint = tdm__fault_wide_hint(&config->faults, node->key_at);
    const char *foreign = tdm__foreign_attr(node->key);
    bool is_ours = foreign != NULL && tdm__field_find(layer->op->attrs, foreign) != NULL;
    if (hint[0] == '\0' && foreign != NULL && (is_ours || strcmp(foreign, "input") == 0))
        hint = TDM_WORDS(config, "tandem calls it `%s`", foreign);
    if (hint[0] == '\0') hint = tdm__hint_nearest(config, node->key, names, count);
    if (hint[0] == '\0')
        hint = TDM_WORDS(config, "keys of %s: %s", kind, tdm__fault_list_of(&config->faults, names, count));
    TDM_FAULT(config, UNKNOWN_KEY, node->key_at, tdm__layer_key(config, index, node->key), hint,
              "unknown key '%s' in layer %s", node->key, kind);
}

static void read_keys(tdm_config *config, int index, tdm_layer *layer, const tdm_yaml_node *keys) {
    for (const tdm_yaml_node *node = keys->first; node != NULL; node = node->next) {
        if (node->is_repeated || strncmp(node->key, "x-", 2) == 0 || strcmp(node->key, "<<") == 0) continue;
        if (layer->module != NULL && tdm__custom_has_key(node->key)) continue;
        const tdm_field *row = tdm__field_find(layer->op->attrs, node->key);
        const tdm_field *head = tdm__field_find(tdm__layer_rows, node->key);
        if (row != NULL)
            add_attr(config, index, layer, row, node);
        else if (head != NULL && strcmp(node->key, "input") == 0)
            add_inputs(config, index, layer, node);
        else if (head != NULL)
            set_head(config, index, layer, head, node);
        else
            unknown_attr(config, index, layer, node);
    }
}

static void read_main(tdm_config *config, int index, tdm_layer *layer, const tdm_yaml_node *value) {
    const tdm_field *row = tdm__field_main(layer->op->attrs);
    if (row != NULL) {
        add_attr(config, index, layer, row, value);
        return;
    }
    layer->is_broken = true;
    const char *kind = layer->op->name;
    const char *hint = layer->op->min_inputs > 1
                           ? TDM_WORDS(config, "write `- %s: {input: [a, b]}`", kind)
                           : TDM_WORDS(config, "write `- %s`, or `- %s: {...}` with keys", kind, kind);
    TDM_FAULT(config, VALUE, value->at, tdm__layer_key(config, index, ""), hint, "%s has no main argument, got %s",
              kind, tdm__yaml_words(&config->faults, value));
}

static void check_attrs(tdm_config *config, int index, tdm_layer *layer) {
    for (const tdm_field *row = layer->op->attrs; row != NULL && row->key != NULL; row++) {
        bool is_given = layer->is_broken; /* a refused value has its own fault already */
        for (int i = 0; i < layer->attr_count; i++) is_given = is_given || strcmp(layer->attr[i].key, row->key) == 0;
        if ((row->flags & TDM_FIELD_REQUIRED) == 0 || is_given) continue;
        TDM_FAULT(config, MISSING, layer->at, tdm__layer_key(config, index, row->key),
                  TDM_WORDS(config, "%s: %s", row->key, row->help), "layer %s needs the key `%s`", layer->op->name,
                  row->key);
        layer->is_broken = true;
        return;
    }
}

bool tdm__layer_name_fits(const char *name, int index) {
    int64_t number;
    size_t length = strlen(name), digits = strspn(name, "0123456789");
    bool is_index = digits == length && tdm__parse_int(name, &number) && number == index;
    bool is_good =
        length > 0 && length <= 200 && (is_index || digits == 0 || (name[digits] == '.' && digits + 1 < length));
    is_good = is_good && name[0] != '.' && name[length - 1] != '.' && strstr(name, "..") == NULL;
    for (size_t i = 0; i < length; i++) is_good = is_good && (unsigned char)name[i] > 0x20 && name[i] != 0x7F;
    unsigned char first = (unsigned char)name[0], lower = (unsigned char)(first | 0x20);
    bool is_letter = first >= 0x80 || (lower >= 'a' && lower <= 'z') || first == '_' || digits > 0;
    return is_good && is_letter;
}

static void check_name(tdm_config *config, int index, tdm_layer *layer) {
    const char *name = layer->head.name;
    if (name == NULL) {
        layer->name = TDM_WORDS(config, "%d", index);
        return;
    }
    if (tdm__layer_name_fits(name, index)) {
        layer->name = name;
        layer->is_named = true;
        return;
    }
    layer->name = TDM_WORDS(config, "%d", index);
    TDM_FAULT(
        config, REFERENCE, layer->name_at, tdm__layer_key(config, index, "name"), "",
        "a layer's name must begin with a letter or be its index %d, have no spaces, and have dots only between parts, "
        "got '%.220s'",
        index, name);
}

tdm_status tdm__layer_read(tdm_config *config, int index, const tdm_yaml_node *item, tdm_layer *layer) {
    const char *kind;
    const tdm_yaml_node *keys;
    layer->value = -1;
    layer->is_broken = true;
    layer->at = item->at;
    layer->name = "";
    layer->head.stage = TDM_INT_NULL;
    if (!split_item(config, index, item, &kind, &layer->at, &keys)) return config->faults.status;
    layer->op = tdm__op_find(kind);
    if (strcmp(kind, "custom") == 0) {
        if (!tdm__custom_read(config, index, keys, layer)) return config->faults.status;
    } else if (layer->op == NULL) {
        if (!tdm__fault_skip(&config->faults))
            TDM_FAULT(config, LAYER, layer->at, tdm__layer_key(config, index, ""), hint_for_kind(config, kind),
                      "unknown layer kind '%s'", kind);
        return config->faults.status;
    }
    layer->is_broken = false;
    if (layer->op->attrs != NULL) {
        TDM_TRY(tdm__zone_new(&config->work, &layer->attrs, 1, layer->op->attrs_bytes));
        TDM_TRY(tdm__field_set_initial(layer->op->attrs, layer->attrs, &config->work));
    }
    size_t most = keys == NULL ? 0 : keys->kind == TDM_YAML_MAP ? (size_t)keys->count : 1;
    if (most > TDM_LAYER_ATTRS_MAX) most = TDM_LAYER_ATTRS_MAX;
    TDM_TRY(tdm__zone_new(&config->work, &layer->attr, most, sizeof(*layer->attr)));
    TDM_TRY(tdm__zone_new(&config->work, &layer->attr_at, most, sizeof(*layer->attr_at)));
    if (keys != NULL && keys->kind == TDM_YAML_MAP)
        read_keys(config, index, layer, keys);
    else if (keys != NULL && !tdm__yaml_is_null(keys))
        read_main(config, index, layer, keys);
    check_attrs(config, index, layer);
    check_name(config, index, layer);
    return config->faults.status;
}
