/* Prints the tables as JSON Schema (draft 7), for editors. The schema covers one key at a time. Shapes, and settings
 * that depend on each other, need `tandem check`: tests/config/schema_test.c says which faults that leaves. */
#include <stdio.h>
#include <string.h>

#include "config/blocks/blocks.h"
#include "config/config_private.h"
#include "runtime/base/field/field_range.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/text/json_write.h"
#include "runtime/data/transforms/transforms.h"
#include "runtime/graph/graph.h"

static void put_names(tdm_json_out *to, const char *key, const char *const *names, unsigned types) {
    tdm__json_put(to, "%s:[", key);
    for (int i = 0; names[i] != NULL; i++) {
        if ((types >> i & 1) != 0) tdm__json_put(to, "%s", names[i]);
    }
    tdm__json_put(to, "]");
}

static void put_bound(tdm_json_out *to, const char *key, double bound) {
    char number[32];
    tdm__print_float(number, bound);
    tdm__json_put_key(to, key);
    tdm__text_puts(to->text, number);
}

/* Type and range of one number or text. */
static void put_scalar(tdm_json_out *to, const char *key, const tdm_field *row, const char *type) {
    tdm_range range = tdm__field_range(row);
    tdm__json_put(to, "%s:{ type:%s", key, type);
    if (range.has_min) put_bound(to, range.open_min ? "exclusiveMinimum" : "minimum", range.min);
    if (range.has_max) put_bound(to, range.open_max ? "exclusiveMaximum" : "maximum", range.max);
    tdm__json_put(to, "}");
}

static void put_list(tdm_json_out *to, const tdm_field *row, const char *type, int least, int most) {
    const bool or_one =
        row->kind == TDM_FIELD_PATHS || row->kind == TDM_FIELD_TEXTS || row->kind == TDM_FIELD_PAIR || least < 2;
    tdm__json_put(to, "{");
    if (or_one) {
        tdm__json_put(to, "anyOf:[");
        put_scalar(to, NULL, row, type);
        tdm__json_put(to, "{");
        if (row->names != NULL) put_names(to, "enum", row->names, ~0u);
        if (row->names != NULL) tdm__json_put(to, "} {");
        if (row->kind == TDM_FIELD_PAIR) tdm__json_put(to, "type:string pattern:%s } {", "^[0-9]+x[0-9]+$");
    }
    tdm__json_put(to, "type:array");
    put_scalar(to, "items", row, type);
    tdm__json_put(to, "minItems:%d maxItems:%d }", least, most);
    if (or_one) tdm__json_put(to, "]}");
}

static void put_type(tdm_json_out *to, const tdm_field *row) {
    static const char *const item_type[TDM_FIELD_KIND_COUNT] = {
        [TDM_FIELD_INT] = "integer",  [TDM_FIELD_FLOAT] = "number",   [TDM_FIELD_PAIR] = "integer",
        [TDM_FIELD_INTS] = "integer", [TDM_FIELD_FLOATS] = "number",  [TDM_FIELD_PATHS] = "string",
        [TDM_FIELD_TEXTS] = "string", [TDM_FIELD_NUMBERS] = "number",
    };
    if (row->kind == TDM_FIELD_BOOL) {
        tdm__json_put(to, "{ type:boolean }");
    } else if (row->kind == TDM_FIELD_TEXT) {
        tdm__json_put(to, "{ type:[ string number ]}");
    } else if (row->kind == TDM_FIELD_PATH) {
        tdm__json_put(to, "{ type:string minLength:%d }", 1);
    } else if (row->kind == TDM_FIELD_INTERVAL) {
        tdm__json_put(to, "{ type:string pattern:%s }", "^([0-9]+ (steps?|epochs?)|([0-9]+(ms|d|h|m|s))+|never)$");
    } else if (row->kind == TDM_FIELD_DURATION) {
        tdm__json_put(to, "{ type:string pattern:%s }", "^([0-9]+(ms|d|h|m|s))+$");
    } else if (row->kind == TDM_FIELD_SIZE) {
        tdm__json_put(to, "{ type:string pattern:%s }", "^[0-9]+ ?([KMGT]iB|B)$");
    } else if (row->kind == TDM_FIELD_ENUM) {
        tdm__json_put(to, "{");
        put_names(to, "enum", row->names, ~0u);
        tdm__json_put(to, "}");
    } else if (row->kind == TDM_FIELD_MAP) {
        tdm__json_put(to, "{ type:object additionalProperties:{ type:string }}");
    } else if (row->kind == TDM_FIELD_SHAPES) {
        tdm__json_put(to, "{ type:object maxProperties:%d", row->max_items);
        tdm__json_put(to, "additionalProperties:{ anyOf:[");
        put_list(to, row, "integer", 1, TDM_SHAPE_DIMS);
        tdm__json_put(to, "]}}");
    } else if (row->kind == TDM_FIELD_PAIR) {
        put_list(to, row, item_type[row->kind], 2, 2);
    } else if (tdm__field_is_list(row)) {
        put_list(to, row, item_type[row->kind], row->min_items, tdm__field_max_items(row));
    } else {
        put_scalar(to, NULL, row, item_type[row->kind]);
        if (row->names == NULL) return;
        tdm__json_put(to, "{");
        put_names(to, "enum", row->names, ~0u);
        tdm__json_put(to, "}");
    }
}

static void put_row(tdm_json_out *to, const tdm_field *row, bool chinese) {
    tdm_text about;
    tdm__text_init(&about, to->text->host);
    tdm__row_help(row, chinese, &about);
    tdm__json_put(to, "%s:{ description:%s", row->key, about.data);
    to->text->failed = to->text->failed || about.failed;
    tdm__text_deinit(&about);
    if (row->initial != NULL) {
        char initial[64];
        snprintf(initial, sizeof(initial), "default: %s", row->initial);
        tdm__json_put(to, "$comment:%s", initial);
    }
    tdm__json_put(to, "anyOf:[");
    put_type(to, row);
    if ((row->flags & TDM_FIELD_NULLABLE) != 0) tdm__json_put(to, "{ type:%s }", "null");
    tdm__json_put(to, "{ type:string pattern:%s }]}", "[$][{]");
}

static void put_rows(tdm_json_out *to, const tdm_field *rows, bool chinese) {
    for (const tdm_field *row = rows; row != NULL && row->key != NULL; row++) put_row(to, row, chinese);
}

/* Begins the schema of a mapping, up to its keys. */
static void begin_mapping(tdm_json_out *to) {
    tdm__json_put(to, "type:object additionalProperties:false patternProperties:{ ^x-:{}} properties:{\n");
}

/* Begins the forms of something that may be null, its main argument alone, or a mapping; up to the mapping's keys. */
static void begin_forms(tdm_json_out *to, const tdm_field *main_row) {
    tdm__json_put(to, "anyOf:[ { type:%s }", "null");
    if (main_row != NULL) put_type(to, main_row);
    tdm__json_put(to, "{");
    begin_mapping(to);
}

static void put_required(tdm_json_out *to, const tdm_field *rows) {
    const char *required[TDM_ROWS_MAX + 1] = {NULL};
    int count = 0;
    for (const tdm_field *row = rows; row->key != NULL; row++) {
        if ((row->flags & TDM_FIELD_REQUIRED) != 0) required[count++] = row->key;
    }
    if (count > 0) put_names(to, "required", required, ~0u);
}

/* Forbids a key to other types: momentum is `false` if the type is adam. */
static void put_owners(tdm_json_out *to, const tdm_section *section, const tdm_field *row) {
    const char *type_key = section->type_key;
    tdm__json_put(to, "{ if:{ required:[ %s ] properties:{ %s:{", type_key, type_key);
    put_names(to, "enum", tdm__section_type_row(section)->names, tdm__section_types(section, row));
    tdm__json_put(to, "}}} then:{");
    if ((row->flags & TDM_FIELD_NEEDED) != 0) tdm__json_put(to, "required:[ %s ]", row->key);
    tdm__json_put(to, "} else:{ if:{ required:[ %s ]} then:{ properties:{ %s:false }}}}", type_key, row->key);
}

static void put_transform(tdm_json_out *to, const char *key, const tdm_section *section, bool chinese) {
    tdm__json_put(to, "%s:{ type:[ array %s ] description:%s items:{ anyOf:[\n { enum:[ to_float", key, "null",
                  chinese ? section->help_zh : section->help);
    for (int i = 0; i < TDM_TRANSFORM_KINDS; i++) tdm__json_put(to, "%s", tdm__transforms[i]->name);
    tdm__json_put(to, "]}");
    for (int i = 0; i < TDM_TRANSFORM_KINDS; i++) {
        const tdm_transform_def *def = tdm__transforms[i];
        tdm__json_put(to, "{ type:object required:[ %s ] additionalProperties:false properties:{ %s:{ description:%s",
                      def->name, def->name, chinese ? def->doc_zh : def->doc);
        begin_forms(to, tdm__field_main(def->rows));
        put_rows(to, def->rows, chinese);
        tdm__json_put(to, "}}]}}}");
    }
    tdm__json_put(to, "{ type:object required:[ normalize ] additionalProperties:false properties:{ normalize:{");
    tdm__json_put(to, "type:object required:[ mean std ] additionalProperties:false properties:{\n");
    put_rows(to, tdm__sections[tdm__section_find("data.transform.normalize")].rows, chinese);
    tdm__json_put(to, "}}}}]}}");
}

/* A block's layers may hold parameters in place of any value, so only their form is described. */
static void put_blocks(tdm_json_out *to, bool chinese) {
    tdm__json_put(to, "blocks:{ description:%s type:[ object %s ] maxProperties:%d additionalProperties:{\n",
                  chinese ? "带参数、可重复使用的层列表" : "lists of layers with parameters, to use by name", "null",
                  TDM_BLOCKS_MAX);
    tdm__json_put(to, "type:object required:[ layers ] additionalProperties:false properties:{");
    tdm__json_put(to, "params:{ type:[ object %s ] maxProperties:%d }", "null", TDM_BLOCK_PARAMS_MAX);
    tdm__json_put(to, "layers:{ type:array minItems:%d items:{ type:[ string object ] }}}}}\n", 1);
}

/* One use of a block. Its other keys are the block's parameters. */
static void put_use(tdm_json_out *to) {
    tdm__json_put(to, "{ type:object required:[ block ] additionalProperties:false properties:{ block:{ type:object");
    tdm__json_put(
        to, "required:[ use name ] properties:{ use:{ type:string } name:{ type:string } id:{ type:[ string %s ]}",
        "null");
    tdm__json_put(to, "repeat:{ type:integer minimum:%d maximum:%d } first:{ type:object }}}}}\n", 1, TDM_LAYERS_MAX);
}

/* A layer of a module. Its other keys are those of its op, which is unknown here. */
static void put_custom(tdm_json_out *to, bool chinese) {
    tdm__json_put(to,
                  "{ type:object required:[ custom ] additionalProperties:false properties:{ custom:{ description:%s",
                  chinese ? tdm__custom_help_zh : tdm__custom_help);
    tdm__json_put(to, "type:object required:[ module op ] properties:{ module:{ type:string } op:{ type:string }");
    put_rows(to, tdm__layer_rows, chinese);
    tdm__json_put(to, "}}}}\n");
}

/* `kind`, `kind: main argument` or `kind: {keys}` for every kind. */
static void put_layers(tdm_json_out *to, bool chinese) {
    tdm__json_put(to, "layers:{ description:%s", chinese ? "各层的列表" : "the list of layers");
    tdm__json_put(to, "type:[ array %s ] minItems:%d items:{ anyOf:[\n { enum:[", "null", 1);
    for (int i = 0; tdm_builtin_ops[i] != NULL; i++) tdm__json_put(to, "%s", tdm_builtin_ops[i]->name);
    tdm__json_put(to, "]}");
    for (int i = 0; tdm_builtin_ops[i] != NULL; i++) {
        const tdm_op_def *op = tdm_builtin_ops[i];
        tdm__json_put(to, "{ type:object required:[ %s ] additionalProperties:false properties:{ %s:{ description:%s",
                      op->name, op->name, chinese ? op->doc_zh : op->doc);
        begin_forms(to, tdm__field_main(op->attrs));
        put_rows(to, tdm__layer_rows, chinese);
        put_rows(to, op->attrs, chinese);
        tdm__json_put(to, "}}]}}}");
    }
    put_use(to);
    put_custom(to, chinese);
    tdm__json_put(to, "]}}");
}

/* A section that is a list of mappings. */
static void put_items(tdm_json_out *to, const char *key, const tdm_section *section, bool chinese) {
    tdm__json_put(to, "%s:{ type:[ array %s ] description:%s maxItems:%d items:{", key, "null",
                  chinese ? section->help_zh : section->help, tdm__section_list(section)->most);
    begin_mapping(to);
    put_rows(to, section->rows, chinese);
    tdm__json_put(to, "}");
    put_required(to, section->rows);
    tdm__json_put(to, "}}");
}

/* The members of a section's schema. Recursive: a section has parts, as deep as the table. */
static void put_section(tdm_json_out *to, int index, bool chinese) {
    const tdm_section *section = &tdm__sections[index];
    const char *key;
    tdm__json_put(to, "description:%s", chinese ? section->help_zh : section->help);
    if (index > 0)
        begin_forms(to, tdm__field_main(section->rows));
    else
        begin_mapping(to);
    put_rows(to, section->rows, chinese);
    if (strcmp(section->path, "model") == 0) {
        put_blocks(to, chinese);
        put_layers(to, chinese);
    }
    for (int i = 0; (i = tdm__section_part(section, i, &key)) > 0;) {
        if (strcmp(tdm__sections[i].path, "data.transform") == 0) {
            put_transform(to, key, &tdm__sections[i], chinese);
            continue;
        }
        if (tdm__section_list(&tdm__sections[i]) != NULL) {
            put_items(to, key, &tdm__sections[i], chinese);
            continue;
        }
        tdm__json_put(to, "%s:{", key);
        put_section(to, i, chinese);
        tdm__json_put(to, "}");
    }
    tdm__json_put(to, "}");
    if (index == 0)
        tdm__json_put(to, "required:[ tandem model ]");
    else
        put_required(to, section->rows);
    if (section->type_key != NULL) {
        tdm__json_put(to, "allOf:[\n");
        for (const tdm_field *row = section->rows; row->key != NULL; row++) {
            if (tdm__section_types(section, row) != 0) put_owners(to, section, row);
        }
        tdm__json_put(to, "]");
    }
    if (index > 0) tdm__json_put(to, "}]");
}

tdm_status tdm_config_schema(tdm_language language, char **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_config_schema: out is NULL");
    TDM_EXTRA(TEXTS);
    tdm_text text;
    tdm__text_init(&text, tdm_host_default());
    tdm_json_out json = tdm__json_out(&text, " ");
    tdm__json_put(&json, "{ $schema:%s title:%s", "http://json-schema.org/draft-07/schema#", "tandem job, format 1");
    put_section(&json, 0, language == TDM_CHINESE);
    tdm__json_put(&json, "}\n");
    return tdm__text_take_public(&text, out);
}
