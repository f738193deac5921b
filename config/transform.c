/* data.transform: a list of steps. Those for pictures are a table (runtime/data/transforms); `to_float` and
 * `normalize: {mean: .., std: ..}` follow them. */
#include <string.h>

#include "config/checks/job_conflicts.h"
#include "config/config_private.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/data/transforms/mixing.h"
#include "runtime/data/transforms/transforms.h"

static const char key[] = "data.transform";

typedef struct transform_item {
    const char *name;
    const tdm_yaml_node *value; /* NULL: none */
    tdm_position at;
} transform_item;

/* ---- to_float and normalize ---- */

static const char normalize_key[] = "data.transform.normalize";

static void read_normalize(tdm_config *config, int section, const tdm_yaml_node *map) {
    const tdm_section *table = &tdm__sections[section];
    for (const tdm_yaml_node *node = map->first; node != NULL; node = node->next) {
        const int row = tdm__section_row(table, node->key);
        if (row >= 0 && !node->is_repeated) {
            tdm__schema_read_row(config, section, row, node, true);
        } else if (!node->is_repeated) {
            TDM_FAULT(config, UNKNOWN_KEY, node->key_at, key, "the keys of normalize are mean, std and inputs",
                      "unknown key '%s' in normalize", node->key);
        }
    }
}

/* What only the whole step shows. */
static void check_normalize(tdm_config *config, int section, const transform_item *item) {
    const tdm_section *table = &tdm__sections[section];
    const int mean = tdm__section_row(table, "mean"), stdev = tdm__section_row(table, "std"),
              inputs = tdm__section_row(table, "inputs");
    const int last = config->settings.job.data.transform.normalize.count - 1;
    tdm_text why;
    config->normalize_at[last] = (tdm_normalize_at){config->position[section][mean], config->position[section][inputs],
                                                    config->is_bad[section][inputs]};
    if (config->position[section][mean].text == NULL || config->position[section][stdev].text == NULL) {
        TDM_FAULT(config, MISSING, item->at, key, "write normalize: {mean: [0.5], std: [0.5]}",
                  "data.transform: normalize needs both mean and std");
        return;
    }
    if (config->is_bad[section][mean] || config->is_bad[section][stdev]) return;
    tdm__text_init(&why, config->host);
    if (tdm__normalize_is_uneven(&config->settings.job.data.transform.normalize.item[last], &why) && !why.failed)
        TDM_FAULT(config, CONFLICT, config->position[section][stdev], key, "", "%s", why.data);
    if (why.failed) config->faults.status = TDM_E_MEMORY;
    tdm__text_deinit(&why);
}

static void add_normalize(tdm_config *config, const transform_item *item) {
    const int section = tdm__section_find(normalize_key);
    tdm_normalizes *all = &config->settings.job.data.transform.normalize;
    if (item->value == NULL || item->value->kind != TDM_YAML_MAP) {
        TDM_FAULT(config, VALUE, item->at, key, "write normalize: {mean: [0.5], std: [0.5]}",
                  "data.transform: normalize needs mean and std");
        return;
    }
    if (all->count == TDM_SHAPES_MAX) {
        TDM_FAULT(config, VALUE, item->at, key, "write one for all inputs of the same mean and std",
                  "data.transform: more than %d steps normalize", TDM_SHAPES_MAX);
        return;
    }
    all->count++;
    memset(config->position[section], 0, sizeof(config->position[section]));
    memset(config->is_bad[section], 0, sizeof(config->is_bad[section]));
    config->section_at[section] = item->at;
    if (tdm__field_set_initial(tdm__sections[section].rows, &all->item[all->count - 1], &config->work) != TDM_OK)
        config->faults.status = TDM_E_MEMORY;
    read_normalize(config, section, item->value);
    check_normalize(config, section, item);
}

static void add_to_float(tdm_config *config, int section, const transform_item *item) {
    const tdm_yaml_node *value = item->value;
    config->position[section][tdm__section_row(&tdm__sections[section], "to_float")] = item->at;
    config->settings.job.data.transform.to_float = true;
    if (value != NULL && !tdm__yaml_is_null(value) &&
        !(value->kind == TDM_YAML_SCALAR && strcmp(value->text, "true") == 0))
        TDM_FAULT(config, VALUE, value->at, key, "write `to_float` alone", "data.transform: to_float has no keys");
    if (config->settings.job.data.transform.normalize.count > 0)
        TDM_FAULT(config, CONFLICT, item->at, key, "write to_float first",
                  "data.transform: to_float comes after normalize, which needs floats");
}

static bool has_to_float(const tdm_config *config, int section) {
    return config->position[section][tdm__section_row(&tdm__sections[section], "to_float")].text != NULL;
}

/* ---- steps for pictures ---- */

static const char *step_key(tdm_config *config, const char *name, const char *row) {
    return TDM_WORDS(config, "data.transform.%s%s%s", name, row[0] != '\0' ? "." : "", row);
}

/* False after a fault. */
static bool read_value(tdm_config *config, tdm_transform_step *step, const tdm_field *row, const tdm_yaml_node *node) {
    const char *name = tdm__transforms[step->kind]->name, *text;
    tdm_text flow, why;
    const int before = config->faults.total;
    if (node->is_reported) return false;
    tdm__text_init(&flow, config->host);
    tdm__text_init(&why, config->host);
    tdm__yaml_flow(node, &flow);
    if (tdm__zone_text(&config->work, &text, flow.data == NULL ? "" : flow.data) != TDM_OK) {
        config->faults.status = TDM_E_MEMORY;
    } else if (strstr(text, "${") != NULL) {
        text = tdm__substitute(config, text, node->at, step_key(config, name, row->key));
    }
    if (text != NULL && (node->kind == TDM_YAML_MAP || !tdm__field_set_text(row, step, text, &config->work, &why))) {
        if (node->kind == TDM_YAML_MAP) tdm__text_puts(&why, "must be a value, got a mapping");
        const bool sides = node->kind == TDM_YAML_LIST && strcmp(row->key, "size") == 0 &&
                           tdm__field_find(tdm__transforms[step->kind]->rows, "height") != NULL;
        const char *hint = sides ? TDM_WORDS(config, "write `%s: {height: ..., width: ...}`", name) : "";
        if (!tdm__config_lacks_memory(config, &why))
            TDM_FAULT(config, VALUE, node->at, step_key(config, name, row->key), hint, "%s: %s %s", name, row->key,
                      why.data == NULL ? "has a wrong value" : why.data);
    }
    if (flow.failed || why.failed) config->faults.status = TDM_E_MEMORY;
    tdm__text_deinit(&flow);
    tdm__text_deinit(&why);
    return config->faults.total == before;
}

static bool read_map(tdm_config *config, tdm_transform_step *step, const tdm_yaml_node *map, unsigned *given) {
    const tdm_transform_def *def = tdm__transforms[step->kind];
    bool good = true;
    for (const tdm_yaml_node *node = map->first; node != NULL; node = node->next) {
        const tdm_field *row = tdm__field_find(def->rows, node->key);
        if (node->is_repeated) continue;
        if (row != NULL) {
            *given |= 1u << (row - def->rows);
            good = read_value(config, step, row, node) && good;
            continue;
        }
        const char *names[TDM_ROWS_MAX];
        int count = 0;
        for (row = def->rows; row != NULL && row->key != NULL && count < TDM_ROWS_MAX; row++) names[count++] = row->key;
        const char *near = tdm__hint_nearest(config, node->key, names, count);
        TDM_FAULT(config, UNKNOWN_KEY, node->key_at, step_key(config, def->name, node->key),
                  near[0] != '\0'
                      ? near
                      : TDM_WORDS(config, "its keys are %s", tdm__fault_list_of(&config->faults, names, count)),
                  "unknown key '%s' in %s", node->key, def->name);
        good = false;
    }
    return good;
}

/* What only the whole step shows: a key that is missing, keys that contradict each other. */
static void check_step(tdm_config *config, const tdm_transform_step *step, const transform_item *item, unsigned given) {
    const tdm_transform_def *def = tdm__transforms[step->kind];
    for (const tdm_field *row = def->rows; row != NULL && row->key != NULL; row++) {
        if ((row->flags & TDM_FIELD_REQUIRED) == 0 || (given >> (row - def->rows) & 1) != 0) continue;
        TDM_FAULT(config, MISSING, item->at, step_key(config, def->name, row->key),
                  TDM_WORDS(config, "%s: %s", row->key, row->help), "%s needs the key `%s`", def->name, row->key);
        return;
    }
    const char *fault = def->fault != NULL ? def->fault(step) : NULL;
    if (fault != NULL)
        TDM_FAULT(config, CONFLICT, item->at, step_key(config, def->name, ""), "", "%s %s", def->name, fault);
}

static void add_picture_step(tdm_config *config, int section, int kind, const transform_item *item) {
    tdm_transform_spec *spec = &config->settings.job.data.transform;
    const tdm_transform_def *def = tdm__transforms[kind];
    const tdm_field *main_row = tdm__field_main(def->rows);
    unsigned given = 0;
    bool good = true;
    if (!TDM_WITH_PICTURES) {
        TDM_FAULT(config, VALUE, item->at, key, TDM_EXTRA_HINT("PICTURES"),
                  "%s: " TDM_EXTRA_PICTURES TDM_EXTRA_IS_ABSENT, def->name);
        return;
    }
    if (spec->step_count == TDM_TRANSFORMS_MAX) {
        TDM_FAULT(config, VALUE, item->at, key, "", "data.transform: more than %d steps", TDM_TRANSFORMS_MAX);
        return;
    }
    if (has_to_float(config, section) || spec->normalize.count > 0)
        TDM_FAULT(config, CONFLICT, item->at, key, "write to_float and normalize last",
                  "data.transform: %s changes pictures, and comes after their conversion to floats", def->name);
    tdm_transform_step *step = &spec->step[spec->step_count++];
    if (tdm_transform_init(step, kind) != TDM_OK) config->faults.status = TDM_E_MEMORY;
    if (item->value != NULL && item->value->kind == TDM_YAML_MAP) {
        good = read_map(config, step, item->value, &given);
    } else if (item->value != NULL && !tdm__yaml_is_null(item->value)) {
        if (main_row == NULL) {
            TDM_FAULT(config, VALUE, item->value->at, key,
                      TDM_WORDS(config, "write `%s` alone, or {%s: {...}}", def->name, def->name),
                      "%s has no main argument, got %s", def->name, tdm__yaml_words(&config->faults, item->value));
            return;
        }
        given = 1u << (main_row - def->rows);
        good = read_value(config, step, main_row, item->value);
    }
    if (good) check_step(config, step, item, given);
}

/* ---- the list ---- */

static void unknown_step(tdm_config *config, const transform_item *item) {
    const char *names[TDM_TRANSFORM_KINDS + 2] = {"to_float", "normalize"};
    for (int i = 0; i < TDM_TRANSFORM_KINDS; i++) names[i + 2] = tdm__transforms[i]->name;
    const char *hint = strcasecmp(item->name, "to_tensor") == 0 || strcasecmp(item->name, "ToTensor") == 0
                           ? "did you mean `to_float`?"
                           : tdm__hint_nearest(config, item->name, names, TDM_TRANSFORM_KINDS + 2);
    if (hint[0] == '\0')
        hint = TDM_WORDS(config, "steps: %s", tdm__fault_list_of(&config->faults, names, TDM_TRANSFORM_KINDS + 2));
    TDM_FAULT(config, VALUE, item->at, key, hint, "data.transform: unknown step '%s'", item->name);
}

static void add_step(tdm_config *config, int section, const tdm_yaml_node *node) {
    transform_item item = {.name = node->kind == TDM_YAML_SCALAR ? node->text : "", .at = node->at};
    if (node->is_reported) return;
    if (node->kind == TDM_YAML_MAP && node->count == 1) {
        item = (transform_item){node->first->key, node->first, node->first->key_at};
    } else if (node->kind != TDM_YAML_SCALAR || tdm__yaml_is_null(node)) {
        TDM_FAULT(config, VALUE, node->at, key, "write [to_float, {normalize: {mean: [0.5], std: [0.5]}}]",
                  "data.transform: an item must be the name of a step, or a step with its keys");
        return;
    }
    const int kind = tdm__transform_find(item.name);
    if (strcmp(item.name, "to_float") == 0) {
        if (has_to_float(config, section))
            TDM_FAULT(config, CONFLICT, item.at, key, "keep one", "data.transform: to_float is listed twice");
        add_to_float(config, section, &item);
    } else if (strcmp(item.name, "normalize") == 0) {
        add_normalize(config, &item);
    } else if (kind >= 0) {
        add_picture_step(config, section, kind, &item);
    } else {
        unknown_step(config, &item);
    }
}

void tdm__transform_read(tdm_config *config, const tdm_yaml_node *node) {
    int section = tdm__section_find(key);
    if (node->kind != TDM_YAML_LIST) {
        TDM_FAULT(config, VALUE, node->at, key, "write [to_float, {normalize: {mean: [0.5], std: [0.5]}}]",
                  "data.transform must be a list of steps, got %s", tdm__yaml_words(&config->faults, node));
        return;
    }
    for (const tdm_yaml_node *item = node->first; item != NULL; item = item->next) add_step(config, section, item);
    const char *fault = tdm__mixing_fault(&config->settings.job.data.transform);
    if (fault != NULL) TDM_FAULT(config, CONFLICT, node->at, key, "", "data.transform: %s", fault);
}
