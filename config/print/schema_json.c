/* Prints the tables as JSON Schema (draft 7), for editors. The schema covers one key at a time. Shapes, and settings
 * that depend on each other, need `tandem check`. */
#include <string.h>

#include "config/room.h"
#include "runtime/base/field/field_range.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

typedef struct writer {
    tdm_text *out;
    bool chinese;
} writer;

static void add_string(writer *to, const char *text) {
    tdm__text_json_string(to->out, text);
}

static void add_names(writer *to, const char *const *names, unsigned types) {
    bool is_first = true;
    for (int i = 0; names[i] != NULL; i++) {
        if ((types & (1u << i)) == 0) continue;
        if (!is_first) tdm__text_puts(to->out, ", ");
        is_first = false;
        add_string(to, names[i]);
    }
}

/* Type and range of one number or text. */
static void add_scalar(writer *to, const tdm_field *row, const char *type) {
    tdm_range range = tdm__field_range(row);
    char number[32];
    tdm__text_printf(to->out, "{\"type\": \"%s\"", type);
    if (range.has_min) {
        tdm__print_float(number, range.min);
        tdm__text_printf(to->out, ", \"%s\": %s", range.open_min ? "exclusiveMinimum" : "minimum", number);
    }
    if (range.has_max) {
        tdm__print_float(number, range.max);
        tdm__text_printf(to->out, ", \"%s\": %s", range.open_max ? "exclusiveMaximum" : "maximum", number);
    }
    tdm__text_puts(to->out, "}");
}

static void add_list(writer *to, const tdm_field *row, const char *type, int least, int most, bool or_one) {
    if (or_one) {
        tdm__text_puts(to->out, "{\"anyOf\": [");
        add_scalar(to, row, type);
        tdm__text_puts(to->out, ", ");
    }
    tdm__text_puts(to->out, "{\"type\": \"array\", \"items\": ");
    add_scalar(to, row, type);
    tdm__text_printf(to->out, ", \"minItems\": %d, \"maxItems\": %d}", least, most);
    if (or_one) tdm__text_puts(to->out, "]}");
}

static void add_type(writer *to, const tdm_field *row) {
    switch (row->kind) {
    case TDM_FIELD_BOOL:
        tdm__text_puts(to->out, "{\"type\": \"boolean\"}");
        break;
    case TDM_FIELD_INT:
        add_scalar(to, row, "integer");
        break;
    case TDM_FIELD_FLOAT:
        add_scalar(to, row, "number");
        break;
    case TDM_FIELD_TEXT:
        tdm__text_puts(to->out, "{\"type\": [\"string\", \"number\"]}");
        break;
    case TDM_FIELD_PATH:
        tdm__text_puts(to->out, "{\"type\": \"string\", \"minLength\": 1}");
        break;
    case TDM_FIELD_ENUM:
        tdm__text_puts(to->out, "{\"enum\": [");
        add_names(to, row->names, ~0u);
        tdm__text_puts(to->out, "]}");
        break;
    case TDM_FIELD_PAIR:
        add_list(to, row, "integer", 2, 2, true);
        break;
    case TDM_FIELD_INTS:
        add_list(to, row, "integer", row->min_items, tdm__field_max_items(row), row->min_items < 2);
        break;
    case TDM_FIELD_FLOATS:
        add_list(to, row, "number", row->min_items, tdm__field_max_items(row), row->min_items < 2);
        break;
    case TDM_FIELD_PATHS:
        add_list(to, row, "string", row->min_items, tdm__field_max_items(row), true);
        break;
    case TDM_FIELD_INTERVAL:
        tdm__text_puts(
            to->out,
            "{\"type\": \"string\", \"pattern\": \"^([0-9]+ (steps?|epochs?)|([0-9]+(ms|d|h|m|s))+|never)$\"}");
        break;
    case TDM_FIELD_DURATION:
        tdm__text_puts(to->out, "{\"type\": \"string\", \"pattern\": \"^([0-9]+(ms|d|h|m|s))+$\"}");
        break;
    case TDM_FIELD_KIND_COUNT:
        tdm__text_puts(to->out, "{}");
        break;
    }
}

static void add_row(writer *to, const tdm_field *row) {
    const char *help = to->chinese && row->help_zh != NULL ? row->help_zh : row->help;
    tdm_text about;
    tdm__text_init(&about, to->out->host);
    tdm__text_puts(&about, help);
    if (tdm__lacks(row)) {
        tdm__text_puts(&about, to->chinese ? " (本构建不含：" : " (not in this build: ");
        tdm__lack_print(row, to->chinese, &about);
        tdm__text_puts(&about, ")");
    }
    add_string(to, row->key);
    tdm__text_puts(to->out, ": {\"description\": ");
    add_string(to, about.data == NULL ? "" : about.data);
    to->out->failed = to->out->failed || about.failed;
    tdm__text_deinit(&about);
    if (row->initial != NULL) {
        tdm__text_puts(to->out, ", \"$comment\": ");
        tdm_text words;
        tdm__text_init(&words, to->out->host);
        tdm__text_printf(&words, "default: %s", row->initial);
        add_string(to, words.data == NULL ? "" : words.data);
        to->out->failed = to->out->failed || words.failed;
        tdm__text_deinit(&words);
    }
    tdm__text_puts(to->out, ", \"anyOf\": [");
    add_type(to, row);
    if ((row->flags & TDM_FIELD_NULLABLE) != 0) tdm__text_puts(to->out, ", {\"type\": \"null\"}");
    tdm__text_puts(to->out, ", {\"type\": \"string\", \"pattern\": \"[$][{]\"}]}");
}

static void add_rows(writer *to, const tdm_field *rows, bool *is_first) {
    for (const tdm_field *row = rows; row != NULL && row->key != NULL; row++) {
        tdm__text_puts(to->out, *is_first ? "\n" : ",\n");
        *is_first = false;
        add_row(to, row);
    }
}

static void add_required(writer *to, const tdm_field *rows) {
    bool is_first = true;
    for (const tdm_field *row = rows; row != NULL && row->key != NULL; row++) {
        if ((row->flags & TDM_FIELD_REQUIRED) == 0) continue;
        tdm__text_puts(to->out, is_first ? ", \"required\": [" : ", ");
        is_first = false;
        add_string(to, row->key);
    }
    if (!is_first) tdm__text_puts(to->out, "]");
}

/* Forbids keys of other types: momentum is `false` if the type is adam. */
static void add_only(writer *to, const tdm_section *section) {
    const tdm_field *type = &section->rows[tdm__section_row(section, section->type_key)];
    tdm__text_puts(to->out, ", \"allOf\": [");
    for (const tdm_only *only = section->only; only->key != NULL; only++) {
        tdm__text_printf(to->out, "%s\n{\"if\": {\"required\": [\"%s\"], \"properties\": {\"%s\": {\"enum\": [",
                         only == section->only ? "" : ",", section->type_key, section->type_key);
        add_names(to, type->names, only->types);
        tdm__text_printf(to->out, "]}}}, \"then\": {%s", only->needed ? "\"required\": [" : "");
        if (only->needed) {
            add_string(to, only->key);
            tdm__text_puts(to->out, "]");
        }
        tdm__text_printf(to->out, "}, \"else\": {\"if\": {\"required\": [\"%s\"]}, \"then\": {\"properties\": {",
                         section->type_key);
        add_string(to, only->key);
        tdm__text_puts(to->out, ": false}}}}");
    }
    tdm__text_puts(to->out, "]");
}

static void add_transform(writer *to, const tdm_section *section) {
    tdm__text_puts(to->out, "{\"type\": [\"array\", \"null\"], \"description\": ");
    add_string(to, to->chinese ? section->help_zh : section->help);
    tdm__text_puts(to->out,
                   ", \"items\": {\"anyOf\": [{\"enum\": [\"to_float\"]}, {\"type\": \"object\", \"required\": "
                   "[\"normalize\"], \"additionalProperties\": false, \"properties\": {\"normalize\": {\"type\": "
                   "\"object\", \"required\": [\"mean\", \"std\"], \"additionalProperties\": false, "
                   "\"properties\": {");
    add_row(to, &section->rows[tdm__section_row(section, "mean")]);
    tdm__text_puts(to->out, ", ");
    add_row(to, &section->rows[tdm__section_row(section, "std")]);
    tdm__text_puts(to->out, "}}}}]}}");
}

/* `kind`, `kind: main argument` or `kind: {keys}` for every kind. */
static void add_layers(writer *to) {
    tdm__text_puts(to->out, "{\"description\": ");
    add_string(to, to->chinese ? "各层的列表" : "the list of layers");
    tdm__text_puts(to->out, ", \"type\": \"array\", \"minItems\": 1, \"items\": {\"anyOf\": [\n{\"enum\": [");
    for (int i = 0; tdm_builtin_ops[i] != NULL; i++) {
        if (i > 0) tdm__text_puts(to->out, ", ");
        add_string(to, tdm_builtin_ops[i]->name);
    }
    tdm__text_puts(to->out, "]}");
    for (int i = 0; tdm_builtin_ops[i] != NULL; i++) {
        const tdm_op_def *op = tdm_builtin_ops[i];
        const tdm_field *main_row = op->attrs != NULL ? tdm__field_main(op->attrs) : NULL;
        bool is_first = true;
        tdm__text_printf(to->out,
                         ",\n{\"type\": \"object\", \"required\": [\"%s\"], \"additionalProperties\": false, "
                         "\"properties\": {\"%s\": {\"description\": ",
                         op->name, op->name);
        add_string(to, to->chinese ? op->doc_zh : op->doc);
        tdm__text_puts(to->out, ", \"anyOf\": [{\"type\": \"null\"}, ");
        if (main_row != NULL) {
            add_type(to, main_row);
            tdm__text_puts(to->out, ", ");
        }
        tdm__text_puts(to->out,
                       "{\"type\": \"object\", \"additionalProperties\": false, \"patternProperties\": {\"^x-\": "
                       "{}}, \"properties\": {");
        add_rows(to, tdm__layer_rows, &is_first);
        add_rows(to, op->attrs, &is_first);
        tdm__text_puts(to->out, "}}]}}}");
    }
    tdm__text_puts(to->out, "]}}");
}

/* A section's members and, recursively, its parts. The depth is that of the table. */
static void add_section(writer *to, int index) {
    const tdm_section *section = &tdm__sections[index];
    const tdm_field *main_row = tdm__field_main(section->rows);
    bool is_first = true;
    const char *part;
    if (strcmp(section->path, "data.transform") == 0) {
        add_transform(to, section);
        return;
    }
    tdm__text_puts(to->out, "{\"description\": ");
    add_string(to, to->chinese ? section->help_zh : section->help);
    if (index > 0) {
        tdm__text_puts(to->out, ", \"anyOf\": [{\"type\": \"null\"}, ");
        if (main_row != NULL) {
            add_type(to, main_row);
            tdm__text_puts(to->out, ", ");
        }
        tdm__text_puts(to->out, "{");
    } else {
        tdm__text_puts(to->out, ", ");
    }
    tdm__text_puts(to->out,
                   "\"type\": \"object\", \"additionalProperties\": false, \"patternProperties\": {\"^x-\": {}}, "
                   "\"properties\": {");
    add_rows(to, section->rows, &is_first);
    if (strcmp(section->path, "model") == 0) {
        tdm__text_puts(to->out, ",\n\"layers\": ");
        add_layers(to);
    }
    for (int i = 1; i < TDM_SECTION_COUNT; i++) {
        if (!tdm__section_is_part(tdm__sections[i].path, section->path, &part)) continue;
        tdm__text_puts(to->out, is_first ? "\n" : ",\n");
        is_first = false;
        add_string(to, part);
        tdm__text_puts(to->out, ": ");
        add_section(to, i);
    }
    tdm__text_puts(to->out, "}");
    if (index == 0)
        tdm__text_puts(to->out, ", \"required\": [\"tandem\", \"model\"]");
    else
        add_required(to, section->rows);
    if (section->only != NULL) add_only(to, section);
    tdm__text_puts(to->out, index > 0 ? "}]}" : "}");
}

tdm_status tdm_config_schema(tdm_language language, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_schema: out is NULL");
    *out = NULL;
    tdm_text text, section;
    tdm__text_init(&text, tdm_host_default());
    tdm__text_init(&section, tdm_host_default());
    writer to = {&section, language == TDM_CHINESE};
    add_section(&to, 0);
    tdm__text_puts(&text,
                   "{\"$schema\": \"http://json-schema.org/draft-07/schema#\", \"title\": \"tandem job, format 1\",\n");
    if (section.data != NULL) tdm__text_puts(&text, section.data + 1);
    tdm__text_puts(&text, "\n");
    text.failed = text.failed || section.failed;
    tdm__text_deinit(&section);
    return tdm__text_take_public(&text, out);
}
