/* Prints the settings: as YAML that runs the same job, with or without the origin of each value, and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "config/builtin.h"
#include "config/config_private.h"
#include "runtime/data/transforms/transforms.h"
#include "runtime/base/status.h"
#include "runtime/base/text/json_write.h"

typedef struct printer {
    const tdm_config *config;
    tdm_config_form form;
    tdm_text *out;
    tdm_json_out json; /* writes to `out` */
    int depth;         /* of the YAML */
} printer;

static bool is_json(const printer *to) {
    return to->form == TDM_CONFIG_JSON;
}

/* ---- lines ---- */

/* Begins an entry, up to its value. */
static void begin_entry(printer *to, const char *key) {
    if (is_json(to))
        tdm__json_put_key(&to->json, key);
    else
        tdm__text_printf(to->out, "%*s%s: ", 2 * to->depth, "", key);
}

/* A line break in the name must not end the comment. */
static void add_file_line(tdm_text *out, tdm_position at) {
    char name[256];
    (void)tdm_text_printable(name, sizeof(name), at.text->name, 0);
    tdm__text_printf(out, "  # %s:%d", name, at.line);
}

static void add_origin(printer *to, size_t line_start, tdm_position at) {
    if (to->form != TDM_CONFIG_ORIGINS || to->out->failed) return;
    int used = tdm_text_columns(to->out->data + line_start);
    for (int column = used; column < 48; column++) tdm__text_puts(to->out, " ");
    if (at.text == NULL)
        tdm__text_puts(to->out, "  # default");
    else if (at.text->order != 0)
        tdm__text_puts(to->out, "  # command line");
    else
        add_file_line(to->out, at);
}

static void end_entry(printer *to, size_t line_start, tdm_position at) {
    if (is_json(to)) return;
    add_origin(to, line_start, at);
    tdm__text_puts(to->out, "\n");
}

static void open_map(printer *to, const char *key) {
    if (is_json(to))
        tdm__json_put(&to->json, "%s:{\n", key);
    else
        tdm__text_printf(to->out, "%*s%s:\n", 2 * to->depth, "", key);
    to->depth++;
}

static void close_map(printer *to) {
    if (is_json(to)) tdm__json_put(&to->json, "}");
    to->depth--;
}

/* ---- values ---- */

/* Intervals, durations, sizes and values of enums are strings in JSON. All other values but texts are written as in
 * YAML. */
static void put_value(tdm_json_out *to, const char *key, const tdm_field *row, const void *object) {
    const void *value = (const char *)object + row->offset;
    const tdm_texts *texts = value;
    tdm_text words;
    if (row->kind == TDM_FIELD_TEXT || row->kind == TDM_FIELD_PATH) {
        tdm__json_put(to, "%s:%s", key, *(const char *const *)value);
        return;
    }
    if (row->kind == TDM_FIELD_PATHS || row->kind == TDM_FIELD_TEXTS) {
        tdm__json_put(to, "%s:[", key);
        for (int i = 0; i < texts->count; i++) tdm__json_put(to, "%s", texts->item[i]);
        tdm__json_put(to, "]");
        return;
    }
    tdm__text_init(&words, to->text->host);
    tdm__field_print(row, object, &words);
    const char *printed = words.failed ? "" : words.data;
    const bool is_size = row->kind == TDM_FIELD_SIZE && *(const int64_t *)value != TDM_INT_NULL;
    const bool is_word = is_size || (row->names != NULL && printed[0] >= 'a' && printed[0] <= 'z');
    if (row->kind == TDM_FIELD_ENUM || row->kind == TDM_FIELD_INTERVAL || row->kind == TDM_FIELD_DURATION || is_word) {
        tdm__json_put(to, "%s:%s", key, printed);
    } else {
        tdm__json_put_key(to, key);
        tdm__text_puts(to->text, printed);
    }
    to->text->failed = to->text->failed || words.failed;
    tdm__text_deinit(&words);
}

/* ---- layers ---- */

void tdm__print_layer_keys(const tdm_field *rows, const void *object, tdm_json_out *json, int *count, tdm_text *out) {
    for (const tdm_field *row = rows; row != NULL && row->key != NULL; row++) {
        tdm_text words;
        tdm__text_init(&words, out->host);
        tdm__field_print(row, object, &words);
        const bool is_default = row->initial != NULL && strcmp(row->initial, "null") == 0;
        if (words.failed) {
            out->failed = true;
        } else if (is_default && strcmp(words.data, "null") == 0) {
            /* left out */
        } else if (json != NULL) {
            put_value(json, row->key, row, object);
        } else {
            tdm__text_printf(out, "%s%s: %s", (*count)++ > 0 ? ", " : ": {", row->key, words.data);
        }
        tdm__text_deinit(&words);
    }
}

void tdm__print_custom(const char *file, const char *op, tdm_json_out *json, int *count, tdm_text *out) {
    if (json != NULL) {
        tdm__json_put(json, "module:%s op:%s", file, op);
        return;
    }
    tdm__text_printf(out, ": {module: %s, op: %s", file, op);
    *count += 2;
}

static void print_layers(printer *to) {
    tdm_json_out *json = is_json(to) ? &to->json : NULL;
    if (is_json(to))
        tdm__json_put(&to->json, "layers:[\n");
    else
        tdm__text_puts(to->out, "  layers:\n");
    for (int i = 0; i < to->config->layer_count; i++) {
        const tdm_layer *layer = &to->config->layers[i];
        size_t start = to->out->length;
        const char *kind = layer->module != NULL ? "custom" : layer->op->name;
        int count = 0;
        if (is_json(to))
            tdm__json_put(&to->json, "{ %s:{", kind);
        else
            tdm__text_printf(to->out, "    - %s", kind);
        if (layer->module != NULL) tdm__print_custom(layer->file, layer->op->name, json, &count, to->out);
        tdm__print_layer_keys(tdm__layer_rows, &layer->head, json, &count, to->out);
        tdm__print_layer_keys(layer->op->attrs, layer->attrs, json, &count, to->out);
        if (is_json(to))
            tdm__json_put(&to->json, "}}");
        else
            tdm__text_puts(to->out, count > 0 ? "}" : "");
        end_entry(to, start, layer->at);
    }
    if (is_json(to)) tdm__json_put(&to->json, "]");
}

/* ---- sections ---- */

/* Of inputs, which need no quotes in YAML. */
static void print_names(const tdm_texts *names, bool json, tdm_text *out) {
    const char *mark = json ? "\"" : "";
    tdm__text_printf(out, ", %sinputs%s: [", mark, mark);
    for (int i = 0; i < names->count; i++)
        tdm__text_printf(out, "%s%s%s%s", i > 0 ? ", " : "", mark, names->item[i], mark);
    tdm__text_puts(out, "]");
}

static void print_normalize(const tdm_normalize *step, bool json, tdm_text *out) {
    const tdm_field *rows = tdm__sections[tdm__section_find("data.transform.normalize")].rows;
    const char *mark = json ? "\"" : "";
    tdm__text_printf(out, "{%snormalize%s: {%smean%s: ", mark, mark, mark, mark);
    tdm__field_print(tdm__field_find(rows, "mean"), step, out);
    tdm__text_printf(out, ", %sstd%s: ", mark, mark);
    tdm__field_print(tdm__field_find(rows, "std"), step, out);
    if (step->inputs.count > 0) print_names(&step->inputs, json, out);
    tdm__text_puts(out, "}}");
}

void tdm__print_transform(const tdm_transform_spec *transform, bool json, tdm_text *out) {
    const char *mark = json ? "\"" : "", *comma = "";
    tdm__text_puts(out, "[");
    for (int i = 0; i < transform->step_count; i++, comma = ", ") {
        tdm__text_puts(out, comma);
        tdm__transform_print(&transform->step[i], json, out);
    }
    if (transform->to_float) {
        tdm__text_printf(out, "%s%sto_float%s", comma, mark, mark);
        comma = ", ";
    }
    for (int i = 0; i < transform->normalize.count; i++, comma = ", ") {
        tdm__text_puts(out, comma);
        print_normalize(&transform->normalize.item[i], json, out);
    }
    tdm__text_puts(out, "]");
}

/* `path` and `split` of cifar10 are not printed: check.c turned them into `files`. */
static bool is_expanded(const tdm_section *section, const tdm_field *row, const tdm_settings *settings) {
    if (section->type_key == NULL || strcmp(section->type_key, "format") != 0) return false;
    const tdm_data_spec *spec = (const void *)((const char *)settings + section->offset);
    return spec->format == TDM_DATA_CIFAR10 && (strcmp(row->key, "path") == 0 || strcmp(row->key, "split") == 0);
}

static tdm_position origin_of(const tdm_config *config, int section, int row) {
    const tdm_position *positions = config->position[section];
    if (strcmp(tdm__sections[section].rows[row].key, "files") == 0 && positions[row].text == NULL)
        return positions[tdm__section_row(&tdm__sections[section], "path")];
    return positions[row];
}

/* A section that is a list of mappings. */
static void put_items(printer *to, const tdm_section *section) {
    const tdm_section_list *list = tdm__section_list(section);
    const tdm_settings *settings = &to->config->settings;
    const int count = *(const int *)(const void *)((const char *)settings + list->count_at);
    tdm__text_puts(to->out, "[");
    for (int i = 0; i < count; i++) {
        const char *item = (const char *)settings + section->offset + (size_t)i * list->item_bytes;
        tdm_json_out json = tdm__json_out(to->out, " ");
        tdm__text_puts(to->out, i > 0 ? ", " : "");
        if (is_json(to)) tdm__json_put(&json, "{");
        for (const tdm_field *row = section->rows; row->key != NULL; row++) {
            if (is_json(to)) {
                put_value(&json, row->key, row, item);
                continue;
            }
            tdm__text_printf(to->out, "%s%s: ", row == section->rows ? "{" : ", ", row->key);
            tdm__field_print(row, item, to->out);
        }
        if (is_json(to))
            tdm__json_put(&json, "}");
        else
            tdm__text_puts(to->out, "}");
    }
    tdm__text_puts(to->out, "]");
}

/* Sections that have one value, in one line, and none for each of their keys. */
static bool is_list(const tdm_section *section) {
    return strcmp(section->path, "data.transform") == 0 || tdm__section_list(section) != NULL;
}

static void put_list(printer *to, const tdm_section *section) {
    if (tdm__section_list(section) != NULL)
        put_items(to, section);
    else
        tdm__print_transform(&to->config->settings.job.data.transform, is_json(to), to->out);
}

/* What the section's rows print. model.builtin has become layers: what is printed is a file without it. */
static const void *object_of(const tdm_section *section, const tdm_settings *settings, tdm_model_head *model) {
    if (strcmp(section->path, "model") != 0) return (const char *)settings + section->offset;
    *model = settings->model;
    model->builtin = TDM_BUILTIN_none;
    model->classes = TDM_INT_NULL;
    model->small_input = model->zero_init_residual = false;
    return model;
}

static void print_section(printer *to, int index) {
    const tdm_section *section = &tdm__sections[index];
    const tdm_settings *settings = &to->config->settings;
    tdm_model_head model;
    const void *object = object_of(section, settings, &model);
    const char *key = strrchr(section->path, '.');
    key = key != NULL ? key + 1 : section->path;
    if (is_list(section)) {
        const size_t start = to->out->length;
        begin_entry(to, key);
        put_list(to, section);
        end_entry(to, start, to->config->section_at[index]);
        return;
    }
    if (section->type_key != NULL && strcmp(section->type_key, "format") == 0 &&
        tdm__section_type(section, settings) == TDM_DATA_NONE) {
        size_t start = to->out->length;
        begin_entry(to, key);
        tdm__text_puts(to->out, "null");
        end_entry(to, start, to->config->section_at[index]);
        return;
    }
    if (index > 0) open_map(to, key);
    for (int i = 0; section->rows[i].key != NULL; i++) {
        const tdm_field *row = &section->rows[i];
        if (!tdm__section_has(section, row, settings) || is_expanded(section, row, settings)) continue;
        size_t start = to->out->length;
        if (is_json(to)) {
            put_value(&to->json, row->key, row, object);
            continue;
        }
        begin_entry(to, row->key);
        tdm__field_print(row, object, to->out);
        end_entry(to, start, origin_of(to->config, index, i));
    }
    if (strcmp(section->path, "model") == 0) print_layers(to);
    for (int i = 0; (i = tdm__section_part(section, i, &key)) > 0;) print_section(to, i);
    if (index > 0) close_map(to);
}

tdm_status tdm_config_print(const tdm_config *config, tdm_config_form form, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_print: out is NULL");
    *out = NULL;
    if (config == NULL || !config->is_good)
        TDM_FAIL(TDM_E_USAGE, "tdm_config_print: the config has not passed tdm_config_check");
    tdm_text text;
    tdm__text_init(&text, config->host);
    printer to = {.config = config, .form = form, .out = &text, .json = tdm__json_out(&text, " ")};
    if (is_json(&to)) tdm__json_put(&to.json, "{\n");
    print_section(&to, 0);
    if (is_json(&to)) tdm__json_put(&to.json, "}\n");
    return tdm__text_take_public(&text, out);
}

/* ---- one value ---- */

static void print_raw(const tdm_field *row, const void *object, tdm_text *out) {
    bool is_text = row->kind == TDM_FIELD_TEXT || row->kind == TDM_FIELD_PATH;
    const char *text = is_text ? *(const char *const *)(const void *)((const char *)object + row->offset) : NULL;
    if (text != NULL)
        tdm__text_puts(out, text);
    else
        tdm__field_print(row, object, out);
}

/* "model.layers[3].out" */
static tdm_status get_of_layer(const tdm_config *config, const char *key, tdm_text *out) {
    static const char prefix[] = "model.layers[";
    const char *number = key + sizeof(prefix) - 1;
    size_t digits = strspn(number, "0123456789");
    const long index = digits > 0 && digits < 7 ? strtol(number, NULL, 10) : -1;
    if (index < 0 || index >= config->layer_count || strncmp(number + digits, "].", 2) != 0)
        TDM_FAIL(TDM_E_USAGE, "there is no '%s'; layers are numbered 0 to %d, as in model.layers[0].out", key,
                 config->layer_count - 1);
    const tdm_layer *layer = &config->layers[index];
    const char *attr = number + digits + 2;
    const tdm_field *head = tdm__field_find(tdm__layer_rows, attr);
    const tdm_field *row = tdm__field_find(layer->op->attrs, attr);
    if (head == NULL && row == NULL) TDM_FAIL(TDM_E_USAGE, "layer %s has no key '%s'", layer->op->name, attr);
    if (strcmp(attr, "name") == 0)
        tdm__text_puts(out, layer->name);
    else
        print_raw(row != NULL ? row : head, row != NULL ? layer->attrs : (const void *)&layer->head, out);
    return TDM_OK;
}

static tdm_status get_of_section(const tdm_config *config, const char *key, tdm_text *out) {
    int section = tdm__section_find(key), row;
    if (section >= 0 && is_list(&tdm__sections[section])) {
        printer to = {.config = config, .form = TDM_CONFIG_RESOLVED, .out = out};
        put_list(&to, &tdm__sections[section]);
        return TDM_OK;
    }
    if (!tdm__table_find(key, strlen(key), &section, &row))
        TDM_FAIL(TDM_E_USAGE, "there is no key '%s' with a value; `tandem show` prints them all", key);
    print_raw(&tdm__sections[section].rows[row], (const char *)&config->settings + tdm__sections[section].offset, out);
    return TDM_OK;
}

tdm_status tdm_config_get(const tdm_config *config, const char *key, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_get: out is NULL");
    *out = NULL;
    if (key == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_get: key is NULL");
    if (config == NULL || !config->is_good)
        TDM_FAIL(TDM_E_USAGE, "tdm_config_get: the config has not passed tdm_config_check");
    tdm_text text;
    tdm__text_init(&text, config->host);
    tdm_status status =
        strncmp(key, "model.layers[", 13) == 0 ? get_of_layer(config, key, &text) : get_of_section(config, key, &text);
    if (status != TDM_OK) {
        tdm__text_deinit(&text);
        return tdm__frame(status, __FILE__, __LINE__);
    }
    return tdm__text_take_public(&text, out);
}
