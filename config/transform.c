/* data.transform: a list of steps, `to_float` and `normalize: {mean: .., std: ..}`. */
#include <string.h>

#include "config/room.h"

static const char key[] = "data.transform";

/* Steps for image files, which this build cannot read. */
const char *const tdm__transform_later[] = {"resize",          "center_crop",         "random_crop",
                                            "to_gray",         "color_jitter",        "random_horizontal_flip",
                                            "random_rotation", "random_resized_crop", NULL};

static const char *const ours[] = {"to_float", "normalize"};

static void add_normalize(tdm_config *config, int section, const tdm_yaml_node *map, tdm_position at) {
    const tdm_section *table = &tdm__sections[section];
    int mean = tdm__section_row(table, "mean"), stdev = tdm__section_row(table, "std");
    if (map == NULL || map->kind != TDM_YAML_MAP) {
        TDM_FAULT(config, VALUE, at, key, "write normalize: {mean: [0.5], std: [0.5]}",
                  "data.transform: normalize needs mean and std");
        return;
    }
    for (const tdm_yaml_node *node = map->first; node != NULL; node = node->next) {
        int row = strcmp(node->key, "mean") == 0 ? mean : strcmp(node->key, "std") == 0 ? stdev : -1;
        if (row >= 0 && !node->is_repeated) {
            tdm__schema_read_row(config, section, row, node, true);
        } else if (!node->is_repeated) {
            TDM_FAULT(config, UNKNOWN_KEY, node->key_at, key, "the keys of normalize are mean and std",
                      "unknown key '%s' in normalize", node->key);
        }
    }
    if (config->position[section][mean].text == NULL || config->position[section][stdev].text == NULL)
        TDM_FAULT(config, MISSING, at, key, "write normalize: {mean: [0.5], std: [0.5]}",
                  "data.transform: normalize needs both mean and std");
}

static void unknown_step(tdm_config *config, const char *name, tdm_position at) {
    for (int i = 0; tdm__transform_later[i] != NULL; i++) {
        if (strcmp(name, tdm__transform_later[i]) != 0) continue;
        TDM_FAULT(config, UNSUPPORTED, at, key, "this build has to_float and normalize",
                  "data.transform: %s is not in this build", name);
        return;
    }
    const char *hint = strcasecmp(name, "to_tensor") == 0 || strcasecmp(name, "ToTensor") == 0
                           ? "did you mean `to_float`?"
                           : tdm__hint_nearest(config, name, ours, 2);
    TDM_FAULT(config, VALUE, at, key, hint[0] != '\0' ? hint : "steps are to_float and normalize",
              "data.transform: unknown step '%s'", name);
}

static void add_step(tdm_config *config, int section, const tdm_yaml_node *item) {
    const char *name = item->kind == TDM_YAML_SCALAR ? item->text : "";
    const tdm_yaml_node *value = NULL;
    tdm_position at = item->at;
    if (item->is_reported) return;
    if (item->kind == TDM_YAML_MAP && item->count == 1) {
        value = item->first;
        name = value->key;
        at = value->key_at;
    } else if (item->kind != TDM_YAML_SCALAR || tdm__yaml_is_null(item)) {
        TDM_FAULT(config, VALUE, at, key, "write [to_float, {normalize: {mean: [0.5], std: [0.5]}}]",
                  "data.transform: an item must be the name of a step, or a step with its keys");
        return;
    }
    int to_float = tdm__section_row(&tdm__sections[section], "to_float");
    int mean = tdm__section_row(&tdm__sections[section], "mean");
    bool is_twice = false;
    if (strcmp(name, "to_float") == 0) {
        is_twice = config->position[section][to_float].text != NULL;
        config->position[section][to_float] = at;
        config->settings.job.data.transform.to_float = true;
        if (value != NULL && !tdm__yaml_is_null(value) &&
            !(value->kind == TDM_YAML_SCALAR && strcmp(value->text, "true") == 0))
            TDM_FAULT(config, VALUE, value->at, key, "write `to_float` alone", "data.transform: to_float has no keys");
        if (config->position[section][mean].text != NULL)
            TDM_FAULT(config, CONFLICT, at, key, "write to_float first",
                      "data.transform: to_float comes after normalize, which needs floats");
    } else if (strcmp(name, "normalize") == 0) {
        is_twice = config->position[section][mean].text != NULL;
        if (!is_twice) add_normalize(config, section, value, at);
    } else {
        unknown_step(config, name, at);
    }
    if (is_twice) TDM_FAULT(config, CONFLICT, at, key, "keep one", "data.transform: %s is listed twice", name);
}

void tdm__transform_read(tdm_config *config, const tdm_yaml_node *node) {
    int section = tdm__section_find(key);
    if (node->kind != TDM_YAML_LIST) {
        TDM_FAULT(config, VALUE, node->at, key, "write [to_float, {normalize: {mean: [0.5], std: [0.5]}}]",
                  "data.transform must be a list of steps, got %s", tdm__yaml_words(&config->faults, node));
        return;
    }
    for (const tdm_yaml_node *item = node->first; item != NULL; item = item->next) add_step(config, section, item);
}
