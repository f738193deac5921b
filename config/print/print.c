/* Prints the settings: as YAML that runs the same job, with or without the origin of each value, and as JSON. */
#include <string.h>

#include "config/room.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

typedef struct printer {
    const tdm_config *config;
    tdm_config_form form;
    tdm_text *out;
    int depth;
    bool is_first; /* the next entry is the first of its mapping or list: for JSON's commas */
} printer;

static bool is_json(const printer *to) {
    return to->form == TDM_CONFIG_JSON;
}

/* ---- lines ---- */

static void begin_entry(printer *to, const char *key) {
    if (is_json(to)) tdm__text_puts(to->out, to->is_first ? "\n" : ",\n");
    to->is_first = false;
    for (int i = 0; i < to->depth; i++) tdm__text_puts(to->out, "  ");
    if (key == NULL) {
        if (!is_json(to)) tdm__text_puts(to->out, "- ");
        return;
    }
    if (is_json(to))
        tdm__text_json_string(to->out, key);
    else
        tdm__text_puts(to->out, key);
    tdm__text_puts(to->out, is_json(to) ? ": " : ":");
}

/* A line break in the name must not end the comment. */
static void add_file_line(tdm_text *out, tdm_place at) {
    char name[256];
    (void)tdm_text_printable(name, sizeof(name), at.text->name, 0);
    tdm__text_printf(out, "  # %s:%d", name, at.line);
}

static void add_origin(printer *to, size_t line_start, tdm_place at) {
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

static void end_entry(printer *to, size_t line_start, tdm_place at) {
    if (is_json(to)) return;
    add_origin(to, line_start, at);
    tdm__text_puts(to->out, "\n");
}

static void open_map(printer *to, const char *key, char bracket) {
    begin_entry(to, key);
    if (is_json(to))
        tdm__text_printf(to->out, "%c", bracket);
    else
        tdm__text_puts(to->out, "\n");
    to->depth++;
    to->is_first = true;
}

static void close_map(printer *to, char bracket) {
    to->depth--;
    to->is_first = false;
    if (!is_json(to)) return;
    tdm__text_puts(to->out, "\n");
    for (int i = 0; i < to->depth; i++) tdm__text_puts(to->out, "  ");
    tdm__text_printf(to->out, "%c", bracket);
}

/* ---- values ---- */

static void print_json_texts(const tdm_texts *texts, tdm_text *out) {
    tdm__text_puts(out, "[");
    for (int i = 0; i < texts->count; i++) {
        if (i > 0) tdm__text_puts(out, ", ");
        tdm__text_json_string(out, texts->item[i]);
    }
    tdm__text_puts(out, "]");
}

static void print_json_value(const tdm_field *row, const void *object, tdm_text *out) {
    const void *value = (const char *)object + row->offset;
    tdm_text words;
    switch (row->kind) {
    case TDM_FIELD_TEXT:
    case TDM_FIELD_PATH: {
        const char *text = *(const char *const *)value;
        if (text == NULL)
            tdm__text_puts(out, "null");
        else
            tdm__text_json_string(out, text);
        break;
    }
    case TDM_FIELD_PATHS:
        print_json_texts(value, out);
        break;
    case TDM_FIELD_ENUM:
    case TDM_FIELD_INTERVAL:
    case TDM_FIELD_DURATION:
        tdm__text_init(&words, out->host);
        tdm__field_print(row, object, &words);
        tdm__text_json_string(out, words.data == NULL ? "" : words.data);
        out->failed = out->failed || words.failed;
        tdm__text_deinit(&words);
        break;
    case TDM_FIELD_BOOL:
    case TDM_FIELD_INT:
    case TDM_FIELD_FLOAT:
    case TDM_FIELD_PAIR:
    case TDM_FIELD_INTS:
    case TDM_FIELD_FLOATS:
    case TDM_FIELD_KIND_COUNT:
        tdm__field_print(row, object, out);
        break; /* YAML's flow style is JSON here */
    }
}

static void print_value(const tdm_field *row, const void *object, bool json, tdm_text *out) {
    if (json)
        print_json_value(row, object, out);
    else
        tdm__field_print(row, object, out);
}

static bool holds_null(const tdm_field *row, const void *object) {
    const void *value = (const char *)object + row->offset;
    switch (row->kind) {
    case TDM_FIELD_INT:
        return *(const int64_t *)value == TDM_INT_NULL;
    case TDM_FIELD_TEXT:
    case TDM_FIELD_PATH:
        return *(const char *const *)value == NULL;
    case TDM_FIELD_PATHS:
        return ((const tdm_texts *)value)->count == 0;
    case TDM_FIELD_PAIR:
        return ((const int64_t *)value)[0] == 0 && ((const int64_t *)value)[1] == 0;
    case TDM_FIELD_BOOL:
    case TDM_FIELD_FLOAT:
    case TDM_FIELD_ENUM:
    case TDM_FIELD_INTS:
    case TDM_FIELD_FLOATS:
    case TDM_FIELD_INTERVAL:
    case TDM_FIELD_DURATION:
    case TDM_FIELD_KIND_COUNT:
        break;
    }
    return false;
}

/* ---- layers ---- */

/* True for a null that is also the default, such as `in`, a pooling stride, or the keys that every layer has. */
static bool is_omitted(const tdm_field *row, const void *object) {
    return row->initial != NULL && strcmp(row->initial, "null") == 0 && holds_null(row, object);
}

static int print_rows_inline(const tdm_field *rows, const void *object, bool json, int count, tdm_text *out) {
    for (const tdm_field *row = rows; row != NULL && row->key != NULL; row++) {
        if (is_omitted(row, object)) continue;
        tdm__text_puts(out, count++ > 0 ? ", " : "{");
        if (json)
            tdm__text_json_string(out, row->key);
        else
            tdm__text_puts(out, row->key);
        tdm__text_puts(out, ": ");
        print_value(row, object, json, out);
    }
    return count;
}

void tdm__model_print_layer(const tdm_config *config, int index, bool json, tdm_text *out) {
    const tdm_layer *layer = &config->layers[index];
    tdm_text keys;
    tdm__text_init(&keys, config->host);
    int count = print_rows_inline(tdm__layer_rows, &layer->head, json, 0, &keys);
    count = print_rows_inline(layer->op->attrs, layer->attrs, json, count, &keys);
    const char *words = keys.data == NULL ? "{" : keys.data;
    if (json)
        tdm__text_printf(out, "{\"%s\": %s}}", layer->op->name, words);
    else if (count > 0)
        tdm__text_printf(out, "%s: %s}", layer->op->name, words);
    else
        tdm__text_puts(out, layer->op->name);
    out->failed = out->failed || keys.failed;
    tdm__text_deinit(&keys);
}

static void print_layers(printer *to) {
    open_map(to, "layers", '[');
    for (int i = 0; i < to->config->layer_count; i++) {
        size_t start = to->out->length;
        begin_entry(to, NULL);
        tdm__model_print_layer(to->config, i, is_json(to), to->out);
        end_entry(to, start, to->config->layers[i].at);
    }
    close_map(to, ']');
}

/* ---- sections ---- */

static void print_null(printer *to, const char *key, tdm_place at) {
    size_t start = to->out->length;
    begin_entry(to, key);
    tdm__text_puts(to->out, is_json(to) ? "null" : " null");
    end_entry(to, start, at);
}

static void print_transform(printer *to, int section) {
    const tdm_transform_spec *transform = &to->config->settings.job.data.transform;
    const tdm_section *table = &tdm__sections[section];
    int mean = tdm__section_row(table, "mean"), stdev = tdm__section_row(table, "std");
    const char *mark = is_json(to) ? "\"" : "";
    size_t start = to->out->length;
    begin_entry(to, "transform");
    tdm__text_printf(to->out, "%s[", is_json(to) ? "" : " ");
    if (transform->to_float) tdm__text_printf(to->out, "%sto_float%s", mark, mark);
    if (transform->mean.count > 0) {
        tdm__text_printf(to->out, "%s{%snormalize%s: {%smean%s: ", transform->to_float ? ", " : "", mark, mark, mark,
                         mark);
        tdm__field_print(&table->rows[mean], transform, to->out);
        tdm__text_printf(to->out, ", %sstd%s: ", mark, mark);
        tdm__field_print(&table->rows[stdev], transform, to->out);
        tdm__text_puts(to->out, "}}");
    }
    tdm__text_puts(to->out, "]");
    end_entry(to, start, to->config->section_at[section]);
}

/* `path` and `split` of cifar10 are not printed: check.c turned them into `files`. */
static bool is_expanded(const tdm_section *section, const tdm_field *row, const tdm_settings *settings) {
    if (section->type_key == NULL || strcmp(section->type_key, "format") != 0) return false;
    const tdm_data_spec *spec = (const void *)((const char *)settings + section->offset);
    return spec->format == TDM_DATA_CIFAR10 && (strcmp(row->key, "path") == 0 || strcmp(row->key, "split") == 0);
}

static tdm_place origin_of(const tdm_config *config, int section, int row) {
    const tdm_place *places = config->place[section];
    if (strcmp(tdm__sections[section].rows[row].key, "files") == 0 && places[row].text == NULL)
        return places[tdm__section_row(&tdm__sections[section], "path")];
    return places[row];
}

static void print_section(printer *to, int index) {
    const tdm_section *section = &tdm__sections[index];
    const tdm_settings *settings = &to->config->settings;
    const void *object = (const char *)settings + section->offset;
    const char *key = strrchr(section->path, '.');
    key = key != NULL ? key + 1 : section->path;
    if (strcmp(section->path, "data.transform") == 0) {
        print_transform(to, index);
        return;
    }
    if (section->type_key != NULL && strcmp(section->type_key, "format") == 0 &&
        tdm__section_type(section, settings) == TDM_DATA_NONE) {
        print_null(to, key, to->config->section_at[index]);
        return;
    }
    if (index > 0) open_map(to, key, '{');
    for (int i = 0; section->rows[i].key != NULL; i++) {
        const tdm_field *row = &section->rows[i];
        if (!tdm__section_has(section, row, settings) || is_expanded(section, row, settings)) continue;
        size_t start = to->out->length;
        begin_entry(to, row->key);
        if (!is_json(to)) tdm__text_puts(to->out, " ");
        print_value(row, object, is_json(to), to->out);
        end_entry(to, start, origin_of(to->config, index, i));
    }
    if (strcmp(section->path, "model") == 0) print_layers(to);
    const char *part;
    for (int i = 1; i < TDM_SECTION_COUNT; i++) {
        if (tdm__section_is_part(tdm__sections[i].path, section->path, &part)) print_section(to, i);
    }
    if (index > 0) close_map(to, '}');
}

tdm_status tdm_config_print(const tdm_config *config, tdm_config_form form, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_print: out is NULL");
    *out = NULL;
    if (config == NULL || !config->is_good)
        TDM_FAIL(TDM_E_USAGE, "tdm_config_print: the config has not passed tdm_config_check");
    tdm_text text;
    tdm__text_init(&text, config->host);
    printer to = {.config = config, .form = form, .out = &text};
    if (form == TDM_CONFIG_JSON) {
        tdm__text_puts(&text, "{");
        to.depth = 1;
        to.is_first = true;
    }
    print_section(&to, 0);
    if (form == TDM_CONFIG_JSON) tdm__text_puts(&text, "\n}\n");
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
    long index = -1;
    for (size_t i = 0; i < digits && digits < 7; i++) index = (index < 0 ? 0 : index) * 10 + (number[i] - '0');
    if (index < 0 || index >= config->layer_count || strncmp(number + digits, "].", 2) != 0)
        TDM_FAIL(TDM_E_USAGE, "there is no '%s'; layers are numbered 0 to %d, as in model.layers[0].out", key,
                 config->layer_count - 1);
    const tdm_layer *layer = &config->layers[index];
    const char *attr = number + digits + 2;
    const tdm_field *head = tdm__field_find(tdm__layer_rows, attr);
    const tdm_field *row = layer->op->attrs != NULL ? tdm__field_find(layer->op->attrs, attr) : NULL;
    if (head == NULL && row == NULL) TDM_FAIL(TDM_E_USAGE, "layer %s has no key '%s'", layer->op->name, attr);
    if (strcmp(attr, "name") == 0)
        tdm__text_puts(out, layer->name);
    else
        print_raw(row != NULL ? row : head, row != NULL ? layer->attrs : (const void *)&layer->head, out);
    return TDM_OK;
}

static tdm_status get_of_section(const tdm_config *config, const char *key, tdm_text *out) {
    const char *dot = strrchr(key, '.');
    size_t length = dot != NULL ? (size_t)(dot - key) : 0;
    for (int i = 0; i < TDM_SECTION_COUNT; i++) {
        const tdm_section *section = &tdm__sections[i];
        if (strlen(section->path) != length || strncmp(section->path, key, length) != 0) continue;
        int row = tdm__section_row(section, dot != NULL ? dot + 1 : key);
        if (row < 0) break;
        print_raw(&section->rows[row], (const char *)&config->settings + section->offset, out);
        return TDM_OK;
    }
    TDM_FAIL(TDM_E_USAGE, "there is no key '%s' with a value; `tandem show` prints them all", key);
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
