/* Reads one node of the tree as one row of the table. */
#include <string.h>

#include "config/config_private.h"
#include "runtime/base/field/field_range.h"

const char *tdm__section_key(tdm_config *config, int section, const char *key) {
    return tdm__fault_key(&config->faults, tdm__sections[section].path, key);
}

bool tdm__config_lacks_memory(tdm_config *config, const tdm_text *why) {
    const bool lacks = tdm__field_lacks_memory(why);
    if (lacks) config->faults.status = TDM_E_MEMORY;
    return lacks;
}

static bool is_path(int section, const tdm_field *row, const char *text) {
    if (row->kind == TDM_FIELD_PATH || row->kind == TDM_FIELD_PATHS) return true;
    if ((row->flags & TDM_FIELD_OF_PATHS) != 0) return text[0] != '\0';
    return strcmp(tdm__sections[section].path, "checkpoint") == 0 && strcmp(row->key, "resume") == 0 &&
           strcmp(text, "auto") != 0 && strcmp(text, "never") != 0 && text[0] != '\0';
}

static bool is_list_of_scalars(const tdm_yaml_node *node) {
    if (node->kind != TDM_YAML_LIST) return false;
    for (const tdm_yaml_node *item = node->first; item != NULL; item = item->next)
        if (item->kind != TDM_YAML_SCALAR) return false;
    return true;
}

/* "[3, 32, 32]"; NULL without memory. */
static const char *flow_of(tdm_config *config, const tdm_yaml_node *node) {
    const char *text = NULL;
    tdm_text flow;
    tdm__text_init(&flow, config->host);
    tdm__yaml_flow(node, &flow);
    if (flow.failed || tdm__zone_text(&config->work, &text, flow.data) != TDM_OK) config->faults.status = TDM_E_MEMORY;
    tdm__text_deinit(&flow);
    return text;
}

/* The scalars of a node, with ${...} replaced and paths made absolute; of a list at most `most` and one more. False
 * after a fault. */
static bool read_items(tdm_config *config, int section, const tdm_field *row, const tdm_yaml_node *node,
                       const char *key, const char **items, int most, tdm_written *written) {
    bool is_list = node->kind != TDM_YAML_SCALAR, is_map = node->kind == TDM_YAML_MAP;
    const tdm_yaml_node *item = is_list ? node->first : node;
    int index = 0;
    for (; item != NULL && index <= most; item = is_list ? item->next : NULL, index++) {
        if (item->is_reported) return false;
        if (is_map && index < most) items[index++] = item->key;
        const char *text = item->text;
        if (row->kind == TDM_FIELD_SHAPES && is_list_of_scalars(item)) {
            text = flow_of(config, item);
        } else if (item->kind != TDM_YAML_SCALAR || (is_list && tdm__yaml_is_null(item))) {
            const char *which = is_map ? TDM_WORDS(config, "'%s'", item->key) : TDM_WORDS(config, "item %d", index + 1);
            TDM_FAULT(config, VALUE, item->at, key, "", "%s: %s must be %s, got %s", key, which,
                      row->kind == TDM_FIELD_SHAPES ? "a number or a list of numbers" : "a single value",
                      tdm__yaml_words(&config->faults, item));
            return false;
        }
        if (text != NULL) text = tdm__substitute(config, text, item->at, key);
        if (text != NULL && is_path(section, row, text)) text = tdm__path_resolve(config, text, item->at, key);
        if (text == NULL) return false;
        items[index] = text;
    }
    /* If the row expects a list, a single value is a list of one. */
    bool expects_list = row->kind == TDM_FIELD_INTS || row->kind == TDM_FIELD_FLOATS ||
                        row->kind == TDM_FIELD_NUMBERS || row->kind == TDM_FIELD_PATHS || row->kind == TDM_FIELD_TEXTS;
    *written = (tdm_written){.is_list = is_list || expects_list,
                             .is_map = is_map,
                             .count = is_map    ? 2 * node->count
                                      : is_list ? node->count
                                                : 1,
                             .item = items};
    return true;
}

void tdm__schema_read_row(tdm_config *config, int section, int row_index, const tdm_yaml_node *node, bool needed) {
    const tdm_field *row = &tdm__sections[section].rows[row_index];
    const char *key = tdm__section_key(config, section, row->key);
    const char *few[TDM_LIST_MAX + 1] = {""}, **items = few;
    int most = TDM_LIST_MAX;
    tdm_text why;
    tdm__text_init(&why, config->host);
    const int before = config->faults.total;
    config->position[section][row_index] = node->at;
    if (row->kind == TDM_FIELD_NUMBERS && node->count > most) {
        most = node->count;
        if (tdm__zone_new(&config->work, &items, (size_t)most + 1, sizeof(*items)) != TDM_OK) {
            config->faults.status = TDM_E_MEMORY;
            return;
        }
    }
    tdm_written written = {.is_null = true, .item = items};
    if (node->is_reported) {
        /* nothing to read */
    } else if (node->kind == TDM_YAML_MAP && !tdm__field_is_map(row)) {
        tdm__field_describe(row, &why, false);
        TDM_FAULT(config, VALUE, node->at, key, "", "%s: expected %s, got a mapping", key,
                  why.data == NULL ? "" : why.data);
    } else if (tdm__yaml_is_null(node) && needed) {
        TDM_FAULT(config, MISSING, node->at, key, "", "%s needs a value: %s", key, row->help);
    } else if (tdm__yaml_is_null(node) || read_items(config, section, row, node, key, items, most, &written)) {
        void *object = tdm__section_object(&tdm__sections[section], &config->settings);
        if (!tdm__field_set(row, object, &written, &config->work, &why) && !tdm__config_lacks_memory(config, &why)) {
            const char *hint = tdm__fault_wide_hint(&config->faults, node->at);
            if (hint[0] == '\0' && row->kind == TDM_FIELD_ENUM) hint = tdm__foreign_value(config, row->key, items[0]);
            TDM_FAULT(config, VALUE, node->at, key, hint, "%s %s", key,
                      why.data == NULL ? "has a wrong value" : why.data);
        }
    }
    config->is_bad[section][row_index] = node->is_reported || config->faults.total != before;
    if (why.failed) config->faults.status = TDM_E_MEMORY;
    tdm__text_deinit(&why);
}
