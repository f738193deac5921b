/* key.path=value: parses the assignment, and puts its value into the tree before the tree is read.
 *
 * A path goes through sections, list items ("data.transform[1]") and layers, whose kind may be left out
 * ("model.layers[3].out"). Short forms on the path are expanded: `loss: mse` becomes {type: mse}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_private.h"
#include "runtime/base/status.h"
#include "runtime/base/text/utf8.h"
#include "runtime/graph/graph.h"

enum { PATH_BYTES = 512 };

/* One step of a path: a key, or an index. */
typedef struct path_step {
    char key[128];
    long index; /* -1: a key */
} path_step;

/* The next step of the path; moves *at past it. False if malformed. */
static bool next_step(const char **at, bool is_first, path_step *out) {
    const char *text = *at;
    *out = (path_step){.index = -1};
    if (*text == '[') {
        size_t digits = strspn(text + 1, "0123456789");
        if (is_first || digits == 0 || digits > 6 || text[1 + digits] != ']') return false;
        if (text[1] == '0' && digits > 1) return false;
        out->index = strtol(text + 1, NULL, 10);
        *at = text + digits + 2;
        return true;
    }
    if (!is_first) {
        if (*text != '.') return false;
        text++;
    }
    size_t length = strcspn(text, ".[]= \t");
    if (length == 0 || length >= sizeof(out->key)) return false;
    memcpy(out->key, text, length);
    *at = text + length;
    return true;
}

static bool is_path(const char *path) {
    path_step step;
    const char *at = path;
    int count = 0;
    do {
        if (!next_step(&at, count == 0, &step) || ++count > 16) return false;
    } while (*at != '\0');
    return true;
}

/* The text after the "=" must be valid YAML by itself. The message quotes the assignment: there is no file to point
 * to. */
static tdm_status check_value(tdm_config *config, const tdm_override *override) {
    tdm_zone zone;
    tdm_fault_list *faults = NULL;
    tdm_yaml_node *node;
    tdm__zone_init(&zone, config->host);
    tdm_status status = tdm__zone_new(&zone, &faults, 1, sizeof(*faults));
    if (status == TDM_OK) {
        tdm__faults_init(faults, &zone);
        status = tdm__yaml_parse_value(&node, &override->text, override->value, &zone, faults);
    }
    if (status == TDM_OK && faults->total > 0)
        status = tdm__fail(TDM_E_USAGE, __FILE__, __LINE__, NULL, "%s: %s%s%s", override->text.bytes,
                           faults->item[0].message, faults->item[0].hint[0] != '\0' ? "; " : "", faults->item[0].hint);
    tdm__zone_deinit(&zone);
    return status;
}

/* The path is the first `length` bytes of the assignment; the value is behind the "=". */
static tdm_status add_override(tdm_config *config, const char *assignment, size_t length, bool is_literal) {
    tdm_override override = {.value = length + 1, .is_literal = is_literal};
    size_t bad;
    TDM_TRY(tdm__zone_printf(&config->zone, &override.path, "%.*s", (int)length, assignment));
    const char *path = override.path;
    if (!is_path(path))
        TDM_FAIL(TDM_E_USAGE, "'%s' is not the path of a key; write section.key=value, as in optimizer.lr=0.01", path);
    if (strlen(assignment) > TDM_YAML_MAX_SCALAR || !tdm__text_is_utf8(assignment, strlen(assignment), &bad))
        TDM_FAIL(TDM_E_USAGE, "the value of '%s' must be UTF-8 text of at most 64 KiB", path);
    TDM_TRY(tdm__zone_text(&config->zone, &override.text.bytes, assignment));
    override.text.count = strlen(assignment);
    override.text.name = "command line";
    override.text.order = (int)config->override_count + 1;
    if (!is_literal) TDM_TRY(check_value(config, &override));
    TDM_TRY(tdm__grow(config->host, &config->overrides, &config->override_room, config->override_count + 1,
                      sizeof(override), "overrides"));
    config->overrides[config->override_count++] = override;
    config->is_checked = config->is_good = false;
    return TDM_OK;
}

tdm_status tdm_config_override(tdm_config *config, const char *assignment) {
    if (config == NULL || assignment == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_override: an argument is NULL");
    size_t length = strcspn(assignment, "=");
    if (assignment[length] == '\0')
        TDM_FAIL(TDM_E_USAGE, "'%s' has no '='; write section.key=value, as in optimizer.lr=0.01", assignment);
    if (length >= PATH_BYTES) TDM_FAIL(TDM_E_USAGE, "the path of an override must have fewer than 512 characters");
    return add_override(config, assignment, length, false);
}

tdm_status tdm_config_override_text(tdm_config *config, const char *key, const char *text) {
    if (config == NULL || key == NULL || text == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_config_override_text: an argument is NULL");
    const char *assignment;
    TDM_TRY(tdm__zone_printf(&config->zone, &assignment, "%s=%s", key, text));
    return add_override(config, assignment, strlen(key), true);
}

/* ---- applying ---- */

static tdm_position position_in(const tdm_override *override, size_t byte) {
    return (tdm_position){&override->text, 1, 1 + tdm__utf8_characters(override->text.bytes, byte)};
}

static void refuse(tdm_config *config, const tdm_override *override, const char *at, const char *hint,
                   const char *why) {
    size_t byte = (size_t)(at - override->path);
    TDM_FAULT(config, OVERRIDE, position_in(override, byte), override->path, hint, "%s: %s", override->path, why);
}

/* A member of a mapping, created if it is missing. */
static tdm_status member(tdm_config *config, tdm_yaml_node *map, const char *key, tdm_position at,
                         tdm_yaml_node **out) {
    *out = tdm__yaml_find(map, key);
    if (*out != NULL) return TDM_OK;
    TDM_TRY(tdm__zone_new(&config->work, out, 1, sizeof(**out)));
    (*out)->text = ""; /* a null until it gets a value */
    (*out)->at = (*out)->key_at = at;
    TDM_TRY(tdm__zone_text(&config->work, &(*out)->key, key));
    tdm__yaml_append(map, *out);
    return TDM_OK;
}

/* Turns a scalar or list into a mapping that holds it under `key`. A null becomes an empty mapping. */
static tdm_status wrap(tdm_config *config, tdm_yaml_node *node, const char *key) {
    if (node->kind == TDM_YAML_MAP) return TDM_OK;
    tdm_yaml_node *inner = NULL;
    if (!tdm__yaml_is_null(node)) {
        TDM_TRY(tdm__zone_new(&config->work, &inner, 1, sizeof(*inner)));
        *inner = *node;
        inner->next = NULL;
        inner->key = key;
        inner->key_at = node->at;
    }
    node->kind = TDM_YAML_MAP;
    node->first = node->last = NULL;
    node->count = 0;
    if (inner != NULL) tdm__yaml_append(node, inner);
    return TDM_OK;
}

/* Descends into an item of model.layers: *node becomes the mapping that holds the kind's keys. */
static tdm_status enter_layer(tdm_config *config, tdm_yaml_node **node, const char *key) {
    tdm_yaml_node *item = *node;
    if (item->kind == TDM_YAML_SCALAR) { /* `relu` */
        tdm_yaml_node *inner;
        const char *kind = item->text;
        item->kind = TDM_YAML_MAP;
        item->first = item->last = NULL;
        item->count = 0;
        TDM_TRY(member(config, item, kind, item->at, &inner));
    }
    if (item->kind != TDM_YAML_MAP || item->count != 1 || strcmp(item->first->key, key) == 0) return TDM_OK;
    tdm_yaml_node *keys = item->first;
    const tdm_op_def *op = tdm__op_find(keys->key);
    const tdm_field *main_row = op != NULL ? tdm__field_main(op->attrs) : NULL;
    if (keys->kind != TDM_YAML_MAP && !tdm__yaml_is_null(keys) && main_row == NULL) return TDM_OK;
    TDM_TRY(wrap(config, keys, main_row != NULL ? main_row->key : ""));
    *node = keys;
    return TDM_OK;
}

/* Replaces the value of `node` by that of `from`. The key stays; its position becomes `key_at`. */
static void replace(tdm_yaml_node *node, const tdm_yaml_node *from, tdm_position key_at) {
    const tdm_yaml_node old = *node;
    *node = *from;
    node->key = old.key;
    node->key_at = key_at;
    node->next = old.next;
}

static tdm_status value_of(tdm_config *config, const tdm_override *override, tdm_yaml_node **out) {
    if (!override->is_literal)
        return tdm__yaml_parse_value(out, &override->text, override->value, &config->work, &config->faults);
    TDM_TRY(tdm__zone_new(&config->work, out, 1, sizeof(**out)));
    (*out)->quoted = true;
    (*out)->text = override->text.bytes + override->value;
    (*out)->at = position_in(override, override->value);
    return TDM_OK;
}

/* One step down from *node; sets *node to NULL after a fault. */
static tdm_status descend(tdm_config *config, const tdm_override *override, const char *at, const path_step *step,
                          char *section, tdm_yaml_node **node) {
    const size_t length = strlen(section);
    bool in_layers = strcmp(section, "model.layers[]") == 0 || /* or the layers of a block */
                     (strncmp(section, "model.blocks.", 13) == 0 && strcmp(section + length - 9, ".layers[]") == 0);
    if (step->index >= 0) {
        tdm_yaml_node *item = (*node)->kind == TDM_YAML_LIST ? (*node)->first : NULL;
        for (long i = 0; i < step->index && item != NULL; i++) item = item->next;
        if (item == NULL) {
            const char *why = TDM_WORDS(config, "there is no item %ld: items count from 0, and there are %d",
                                        step->index, (*node)->kind == TDM_YAML_LIST ? (*node)->count : 0);
            refuse(config, override, at, "", why);
        }
        *node = item;
        snprintf(section + strlen(section), 3, "[]");
        return TDM_OK;
    }
    if (in_layers) TDM_TRY(enter_layer(config, node, step->key));
    int index = tdm__section_find(section);
    const tdm_field *main_row = index >= 0 ? tdm__field_main(tdm__sections[index].rows) : NULL;
    if (tdm__yaml_is_null(*node) || ((*node)->kind == TDM_YAML_SCALAR && main_row != NULL))
        TDM_TRY(wrap(config, *node, main_row != NULL ? main_row->key : ""));
    if ((*node)->kind != TDM_YAML_MAP) {
        refuse(config, override, at, "",
               TDM_WORDS(config, "there is no key '%s' here: the file has %s", step->key,
                         tdm__yaml_words(&config->faults, *node)));
        *node = NULL;
        return TDM_OK;
    }
    TDM_TRY(member(config, *node, step->key, position_in(override, (size_t)(at - override->path)), node));
    size_t used = strlen(section);
    snprintf(section + used, PATH_BYTES - used, "%s%s", used > 0 ? "." : "", step->key);
    return TDM_OK;
}

static tdm_status apply(tdm_config *config, const tdm_override *override, tdm_yaml_node *root) {
    char section[PATH_BYTES] = ""; /* the path so far, indices as [] */
    tdm_yaml_node *node = root, *value;
    const char *at = override->path, *start = at;
    for (bool is_first = true; *at != '\0'; is_first = false) {
        path_step step;
        start = at + (*at == '.');
        if (!next_step(&at, is_first, &step)) TDM_FAIL(TDM_E_INTERNAL, "override '%s' was accepted", override->path);
        TDM_TRY(descend(config, override, start, &step, section, &node));
        if (node == NULL) return TDM_OK;
    }
    TDM_TRY(value_of(config, override, &value));
    if (value != NULL) replace(node, value, position_in(override, (size_t)(start - override->path)));
    return TDM_OK;
}

tdm_status tdm__overrides_apply(tdm_config *config, tdm_yaml_node *root) {
    if (root->kind != TDM_YAML_MAP) return TDM_OK; /* schema.c reports it */
    for (size_t i = 0; i < config->override_count; i++) {
        /* Positions point to the override's text, and config->overrides moves when it grows. So copy it. */
        tdm_override *copy;
        TDM_TRY(tdm__zone_new(&config->work, &copy, 1, sizeof(*copy)));
        *copy = config->overrides[i];
        TDM_TRY(apply(config, copy, root));
    }
    return config->faults.status;
}
