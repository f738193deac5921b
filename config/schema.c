/* The walker: checks the tree against the table. It refers to sections and rows by name only for the few that have a
 * special form. */
#include <string.h>

#include "config/config_private.h"
#include "runtime/base/status.h"

tdm_status tdm__settings_init(tdm_settings *settings, tdm_zone *zone) {
    memset(settings, 0, sizeof(*settings));
    settings->job.size = sizeof(settings->job);
    for (int i = 0; i < TDM_SECTION_COUNT; i++) {
        const tdm_section *section = &tdm__sections[i];
        TDM_TRY(tdm__field_set_initial(section->rows, tdm__section_object(section, settings), zone));
    }
    settings->job.version = 1;
    tdm__settings_take_model(settings);
    return TDM_OK;
}

void tdm__settings_take_model(tdm_settings *settings) {
    settings->job.weights = settings->model.weights;
    settings->job.match = settings->model.match;
    settings->job.freeze = settings->model.freeze;
}

tdm_position tdm__config_position(const tdm_config *config, const char *key) {
    int section, row;
    if (tdm__table_find(key, strlen(key), &section, &row)) return config->position[section][row];
    section = tdm__section_find(key);
    return section >= 0 ? config->section_at[section] : (tdm_position){0};
}

bool tdm__config_is_bad(const tdm_config *config, const char *key) {
    int section, row;
    return tdm__table_find(key, strlen(key), &section, &row) && config->is_bad[section][row];
}

/* ---- one section ---- */

static void read_section(tdm_config *config, int section, const tdm_yaml_node *node);

static const char *keys_of_type(tdm_config *config, const tdm_section *section) {
    const char *text = "";
    for (const tdm_field *row = section->rows; row->key != NULL; row++) {
        if (!tdm__section_has(section, row, &config->settings) || strcmp(row->key, section->type_key) == 0) continue;
        text = TDM_WORDS(config, "%s%s%s", text, text[0] != '\0' ? ", " : "", row->key);
    }
    return text;
}

/* For momentum with adam: the fault names the type that has the key, and the hint lists the keys of adam. */
static void refuse_other_type(tdm_config *config, int index, const tdm_yaml_node *node) {
    const tdm_section *section = &tdm__sections[index];
    const tdm_field *type_row = tdm__section_type_row(section);
    const char *type = type_row->names[tdm__section_type(section, &config->settings)];
    tdm_text owners;
    tdm__text_init(&owners, config->host);
    tdm__section_print_types(section, tdm__section_types(section, tdm__field_find(section->rows, node->key)), &owners);
    const char *key = tdm__section_key(config, index, node->key);
    const char *keys = keys_of_type(config, section);
    tdm_position type_at = config->position[index][type_row - section->rows];
    TDM_FAULT(config, OTHER_TYPE, node->key_at, key,
              keys[0] != '\0' ? TDM_WORDS(config, "keys of %s: %s", type, keys)
                              : TDM_WORDS(config, "%s has no other keys", type),
              "%s belongs to %s; the %s is %s (%s)", key, owners.failed ? "" : owners.data, section->type_key, type,
              tdm__position_words(&config->faults, type_at));
    if (owners.failed) config->faults.status = TDM_E_MEMORY;
    tdm__text_deinit(&owners);
}

static void read_member(tdm_config *config, int index, const tdm_yaml_node *node, bool type_is_known) {
    const tdm_section *section = &tdm__sections[index];
    const char *key;
    int row = tdm__section_row(section, node->key), part = 0;
    if (row >= 0) {
        const tdm_field *field = &section->rows[row];
        if (field->kind == TDM_FIELD_SHAPES) config->inputs_node = node;
        if (type_is_known && !tdm__section_has(section, field, &config->settings))
            refuse_other_type(config, index, node);
        else
            tdm__schema_read_row(config, index, row, node, type_is_known && (field->flags & TDM_FIELD_NEEDED) != 0);
        return;
    }
    while ((part = tdm__section_part(section, part, &key)) > 0 && !tdm__text_same(key, node->key)) continue;
    if (part > 0) {
        read_section(config, part, node);
    } else if (strcmp(section->path, "model") == 0 && strcmp(node->key, "layers") == 0) {
        config->layers_node = node;
    } else if (strcmp(section->path, "model") == 0 && strcmp(node->key, "blocks") == 0) {
        config->blocks_node = node;
    } else {
        tdm__unknown_key(config, index, node);
    }
}

static void check_needed(tdm_config *config, int index, tdm_position at) {
    const tdm_section *section = &tdm__sections[index];
    for (int i = 0; section->rows[i].key != NULL; i++) {
        const tdm_field *row = &section->rows[i];
        if (config->position[index][i].text != NULL || (row->flags & TDM_FIELD_NEEDED) == 0) continue;
        if (!tdm__section_has(section, row, &config->settings)) continue;
        const char *type = tdm__section_type_row(section)->names[tdm__section_type(section, &config->settings)];
        const char *key = tdm__section_key(config, index, row->key);
        TDM_FAULT(config, MISSING, at, key, row->help, "%s: %s %s needs the key `%s`", section->path, section->type_key,
                  type, row->key);
    }
}

static void check_required(tdm_config *config, int index, tdm_position at) {
    const tdm_section *section = &tdm__sections[index];
    for (int i = 0; section->rows[i].key != NULL; i++) {
        const tdm_field *row = &section->rows[i];
        if ((row->flags & TDM_FIELD_REQUIRED) == 0 || config->position[index][i].text != NULL) continue;
        const char *key = tdm__section_key(config, index, row->key);
        TDM_FAULT(config, MISSING, at, key, index == 0 ? "write `tandem: 1` as the first line" : row->help,
                  "the key `%s` is missing", key);
    }
}

static void read_map(tdm_config *config, int index, const tdm_yaml_node *map) {
    const tdm_section *section = &tdm__sections[index];
    bool type_is_known = true;
    /* Read first what other keys depend on: the type of a section, and the name for ${name}. */
    const char *first_key = index == 0 ? "name" : section->type_key;
    const tdm_yaml_node *first = first_key != NULL ? tdm__yaml_find(map, first_key) : NULL;
    if (first != NULL) {
        int row = tdm__section_row(section, first_key);
        tdm__schema_read_row(config, index, row, first, false);
        type_is_known = !config->is_bad[index][row];
    } else if (section->type_key != NULL) {
        type_is_known = (tdm__section_type_row(section)->flags & TDM_FIELD_REQUIRED) == 0;
    }
    for (const tdm_yaml_node *node = map->first; node != NULL; node = node->next) {
        bool is_reported = node->is_repeated || strcmp(node->key, "<<") == 0;
        if (node == first || is_reported || strncmp(node->key, "x-", 2) == 0) continue;
        read_member(config, index, node, type_is_known);
    }
    tdm_position at = index == 0 ? (tdm_position){map->at.text, 1, 1} : map->key != NULL ? map->key_at : map->at;
    check_required(config, index, at);
    bool has_type = section->type_key != NULL && type_is_known;
    if (has_type && config->position[index][tdm__section_row(section, section->type_key)].text != NULL)
        check_needed(config, index, at);
}

/* A single value where a section is expected, typically `train.batch: 32`. */
static void refuse_value(tdm_config *config, int index, const tdm_yaml_node *node) {
    const char *path = tdm__sections[index].path;
    int64_t number;
    config->section_is_bad[index] = true;
    const char *hint = tdm__fault_wide_hint(&config->faults, node->at);
    if (hint[0] == '\0')
        hint = TDM_WORDS(config, "`tandem explain%s%s` lists %s", path[0] != '\0' ? " " : "", path,
                         path[0] != '\0' ? "its keys" : "the sections");
    if (strcmp(path, "train.batch") == 0 && node->kind == TDM_YAML_SCALAR && tdm__parse_int(node->text, &number)) {
        hint = TDM_WORDS(
            config,
            "write `batch: {per_device: %s}` for each device, or `batch: {global: %s}` for all devices together",
            node->text, node->text);
        TDM_FAULT(config, VALUE, node->at, path, hint,
                  "train.batch must have per_device or global, got the bare number %s", node->text);
        return;
    }
    TDM_FAULT(config, VALUE, node->at, path, hint, "%s must be a mapping of keys, got %s",
              path[0] == '\0' ? "the file" : path, tdm__yaml_words(&config->faults, node));
}

/* A section that is a list of mappings. */
static void read_items(tdm_config *config, int index, const tdm_yaml_node *node) {
    const tdm_section *section = &tdm__sections[index];
    const tdm_section_list *list = tdm__section_list(section);
    int *count = tdm__list_count(list, &config->settings);
    if (node->kind != TDM_YAML_LIST || node->count > list->most) {
        TDM_FAULT(config, VALUE, node->at, section->path, "", "%s must be a list of at most %d mappings, got %s",
                  section->path, list->most,
                  node->kind != TDM_YAML_LIST ? tdm__yaml_words(&config->faults, node)
                                              : TDM_WORDS(config, "%d", node->count));
        return;
    }
    for (const tdm_yaml_node *item = node->first; item != NULL; item = item->next) {
        ++*count;
        memset(config->position[index], 0, sizeof(config->position[index]));
        if (tdm__field_set_initial(section->rows, tdm__section_object(section, &config->settings), &config->work) !=
            TDM_OK)
            config->faults.status = TDM_E_MEMORY;
        if (item->kind == TDM_YAML_MAP)
            read_map(config, index, item);
        else
            refuse_value(config, index, item);
    }
}

static void read_section(tdm_config *config, int index, const tdm_yaml_node *node) {
    const tdm_section *section = &tdm__sections[index];
    config->section_at[index] = node->key != NULL ? node->key_at : node->at;
    config->section_is_bad[index] = node->is_reported;
    if (tdm__yaml_is_null(node)) return; /* the same as not written */
    if (strcmp(section->path, "data.transform") == 0) {
        tdm__transform_read(config, node);
        return;
    }
    if (tdm__section_list(section) != NULL) {
        read_items(config, index, node);
        return;
    }
    const tdm_field *main_row = tdm__field_main(section->rows);
    if (node->kind == TDM_YAML_SCALAR && main_row != NULL) { /* `loss: mse` */
        int row = (int)(main_row - section->rows);
        tdm__schema_read_row(config, index, row, node, false);
        if (!config->is_bad[index][row]) check_needed(config, index, node->at);
    } else if (node->kind == TDM_YAML_MAP) {
        read_map(config, index, node);
    } else {
        refuse_value(config, index, node);
    }
}

tdm_status tdm__schema_read(tdm_config *config, const tdm_yaml_node *root) {
    config->section_at[0] = (tdm_position){root->at.text, 1, 1};
    if (root->kind == TDM_YAML_MAP)
        read_map(config, 0, root);
    else
        refuse_value(config, 0, root);
    return config->faults.status;
}
