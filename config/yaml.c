/* Builds a tree from libyaml's events. No recursion: an explicit stack of TDM_YAML_MAX_DEPTH. */
#include "config/yaml.h"

#include <string.h>
#include <yaml.h>

#include "config/yaml_words.h"
#include "runtime/base/text/names.h"
#include "runtime/base/text/utf8.h"
#include "runtime/base/status.h"

typedef struct yaml_reader {
    const tdm_yaml_text *text;
    int column_shift; /* added to columns of the first line: where an override's value begins */
    tdm_zone *zone;
    tdm_fault_list *faults;
    tdm_yaml_node *stack[TDM_YAML_MAX_DEPTH];
    const char *key[TDM_YAML_MAX_DEPTH]; /* the key whose value comes next; NULL: a key comes next */
    tdm_position key_at[TDM_YAML_MAX_DEPTH];
    int depth, documents;
    long events;
    tdm_yaml_node *root;
    bool stop;
} yaml_reader;

static tdm_position position_of(const yaml_reader *reader, yaml_mark_t mark) {
    int line = (int)mark.line + 1, column = (int)mark.column + 1;
    return (tdm_position){reader->text, line, line == 1 ? column + reader->column_shift : column};
}

tdm_yaml_node *tdm__yaml_find(const tdm_yaml_node *map, const char *key) {
    if (map == NULL || map->kind != TDM_YAML_MAP) return NULL;
    for (tdm_yaml_node *node = map->first; node != NULL; node = node->next) {
        if (tdm__text_same(node->key, key)) return node;
    }
    return NULL;
}

bool tdm__yaml_is_null(const tdm_yaml_node *node) {
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (node->kind != TDM_YAML_SCALAR || node->quoted) return false;
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++) {
        if (tdm__text_same(node->text, nulls[i])) return true;
    }
    return false;
}

void tdm__yaml_append(tdm_yaml_node *parent, tdm_yaml_node *child) {
    if (parent->last != NULL)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->count++;
}

const char *tdm__yaml_words(tdm_fault_list *faults, const tdm_yaml_node *node) {
    if (node->kind == TDM_YAML_MAP) return "a mapping";
    if (node->kind == TDM_YAML_LIST) return "a list";
    return tdm__yaml_is_null(node) ? "nothing" : tdm__fault_text(faults, "'%s'", node->text);
}

void tdm__yaml_flow(const tdm_yaml_node *node, tdm_text *out) {
    if (node->kind == TDM_YAML_SCALAR) {
        if (node->quoted)
            tdm__text_json_string(out, node->text);
        else
            tdm__text_puts(out, node->text);
        return;
    }
    tdm__text_puts(out, "[");
    for (const tdm_yaml_node *item = node->first; item != NULL; item = item->next) {
        if (item != node->first) tdm__text_puts(out, ", ");
        tdm__yaml_flow(item, out);
    }
    tdm__text_puts(out, "]");
}

/* ---- keys written twice ---- */

static void refuse_repeated(yaml_reader *reader, const tdm_yaml_node *earlier, tdm_yaml_node *node) {
    node->is_repeated = true;
    if (tdm__fault_skip(reader->faults)) return;
    tdm__fault_add(reader->faults, TDM_FAULT_DUPLICATE, node->key_at, node->key,
                   tdm__fault_text(reader->faults, "line %d says `%s`; keep one of the two", earlier->key_at.line,
                                   tdm__position_line(reader->faults, earlier->key_at)),
                   "the key '%s' is written twice in this mapping, on lines %d and %d", node->key, earlier->key_at.line,
                   node->key_at.line);
}

/* Compared in pairs, thousands of keys would take too long. */
static tdm_status check_duplicates(yaml_reader *reader, tdm_yaml_node *map) {
    tdm_names names = {0};
    tdm_yaml_node **members;
    int count = 0;
    TDM_TRY(tdm__zone_new(reader->zone, &members, (size_t)map->count, sizeof(tdm_yaml_node *)));
    for (tdm_yaml_node *node = map->first; node != NULL; node = node->next) {
        int earlier = tdm__names_find(&names, node->key);
        if (earlier >= 0)
            refuse_repeated(reader, members[earlier], node);
        else
            TDM_TRY(tdm__names_add(&names, reader->zone, node->key, count));
        members[count++] = node;
    }
    return TDM_OK;
}

/* ---- nodes ---- */

static tdm_status add_node(yaml_reader *reader, tdm_yaml_kind kind, yaml_mark_t mark, tdm_yaml_node **out) {
    tdm_yaml_node *node;
    TDM_TRY(tdm__zone_new(reader->zone, &node, 1, sizeof(*node)));
    node->kind = kind;
    node->at = position_of(reader, mark);
    if (reader->depth == 0) {
        reader->root = node;
    } else {
        int top = reader->depth - 1;
        tdm_yaml_node *parent = reader->stack[top];
        if (parent->kind == TDM_YAML_MAP) {
            node->key = reader->key[top];
            node->key_at = reader->key_at[top];
            reader->key[top] = NULL;
        }
        tdm__yaml_append(parent, node);
    }
    *out = node;
    return TDM_OK;
}

static bool expects_key(const yaml_reader *reader) {
    int top = reader->depth - 1;
    return top >= 0 && reader->stack[top]->kind == TDM_YAML_MAP && reader->key[top] == NULL;
}

static void refuse(yaml_reader *reader, tdm_fault_id id, yaml_mark_t mark, const char *hint, const char *message) {
    tdm__fault_add(reader->faults, id, position_of(reader, mark), "", hint, "%s", message);
    reader->stop = true;
}

/* Of the core schema's tags only !!str has an effect: it makes the scalar text. */
static bool tag_is_core(const yaml_char_t *tag, bool *is_text) {
    static const char prefix[] = "tag:yaml.org,2002:";
    static const char *const core[] = {"str", "int", "float", "bool", "null", "map", "seq"};
    const char *text = (const char *)tag;
    if (text == NULL || strcmp(text, "!") == 0) return true;
    if (strncmp(text, prefix, sizeof(prefix) - 1) != 0) return false;
    for (size_t i = 0; i < sizeof(core) / sizeof(core[0]); i++) {
        if (strcmp(text + sizeof(prefix) - 1, core[i]) != 0) continue;
        *is_text = *is_text || i == 0;
        return true;
    }
    return false;
}

static void check_tag(yaml_reader *reader, const yaml_char_t *tag, yaml_mark_t mark, bool *is_text) {
    if (tag_is_core(tag, is_text)) return;
    tdm__fault_add(reader->faults, TDM_FAULT_FEATURE, position_of(reader, mark), "", "remove the tag",
                   "the tag '%s' is not part of this format; the key decides the type of a value", (const char *)tag);
}

static tdm_status on_scalar(yaml_reader *reader, const yaml_event_t *event) {
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    const char *copy;
    if (length > TDM_YAML_MAX_SCALAR) {
        refuse(reader, TDM_FAULT_LIMIT, event->start_mark, "", "a single value is longer than 64 KiB");
        return TDM_OK;
    }
    if (memchr(text, '\0', length) != NULL) {
        refuse(reader, TDM_FAULT_ENCODING, event->start_mark, "", "a value contains a NUL character");
        return TDM_OK;
    }
    check_tag(reader, event->data.scalar.tag, event->start_mark, &quoted);
    TDM_TRY(tdm__zone_text(reader->zone, &copy, text));
    if (expects_key(reader)) {
        int top = reader->depth - 1;
        if (strcmp(text, "<<") == 0 && !quoted)
            tdm__fault_add(reader->faults, TDM_FAULT_FEATURE, position_of(reader, event->start_mark), "",
                           "write the keys out", "merge keys (<<) are not part of this format");
        reader->key[top] = copy;
        reader->key_at[top] = position_of(reader, event->start_mark);
        return TDM_OK;
    }
    tdm_yaml_node *node;
    TDM_TRY(add_node(reader, TDM_YAML_SCALAR, event->start_mark, &node));
    node->text = copy;
    node->quoted = quoted;
    return TDM_OK;
}

/* An alias is refused. A null takes its place, so that reading can continue. */
static tdm_status on_alias(yaml_reader *reader, const yaml_event_t *event) {
    const char *name = (const char *)event->data.alias.anchor;
    tdm_position at = position_of(reader, event->start_mark);
    if (expects_key(reader)) {
        refuse(reader, TDM_FAULT_FEATURE, event->start_mark, "write the key out", "an alias cannot be a key");
        return TDM_OK;
    }
    const char *key = reader->depth > 0 ? reader->key[reader->depth - 1] : NULL;
    bool is_merge = key != NULL && strcmp(key, "<<") == 0; /* already reported */
    if (!is_merge)
        tdm__fault_add(reader->faults, TDM_FAULT_FEATURE, at, "", "write the value out",
                       "the alias '*%.60s': aliases are not part of this format", name);
    tdm_yaml_node *node;
    TDM_TRY(add_node(reader, TDM_YAML_SCALAR, event->start_mark, &node));
    node->text = "";
    node->is_reported = true;
    return TDM_OK;
}

static tdm_status open_node(yaml_reader *reader, tdm_yaml_kind kind, const yaml_event_t *event,
                            const yaml_char_t *tag) {
    bool is_text = false;
    if (expects_key(reader)) {
        refuse(reader, TDM_FAULT_FEATURE, event->start_mark, "write `key: value`", "a key must be a plain word");
        return TDM_OK;
    }
    if (reader->depth == TDM_YAML_MAX_DEPTH) {
        refuse(reader, TDM_FAULT_LIMIT, event->start_mark, "", "mappings and lists are nested deeper than 32");
        return TDM_OK;
    }
    check_tag(reader, tag, event->start_mark, &is_text);
    tdm_yaml_node *node;
    TDM_TRY(add_node(reader, kind, event->start_mark, &node));
    reader->key[reader->depth] = NULL;
    reader->stack[reader->depth++] = node;
    return TDM_OK;
}

static tdm_status on_event(yaml_reader *reader, const yaml_event_t *event) {
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (reader->documents++ > 0)
            refuse(reader, TDM_FAULT_FEATURE, event->start_mark, "write one job per file",
                   "a second document begins here; a file may have only one");
        return TDM_OK;
    case YAML_SCALAR_EVENT:
        return on_scalar(reader, event);
    case YAML_ALIAS_EVENT:
        return on_alias(reader, event);
    case YAML_MAPPING_START_EVENT:
        return open_node(reader, TDM_YAML_MAP, event, event->data.mapping_start.tag);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(reader, TDM_YAML_LIST, event, event->data.sequence_start.tag);
    case YAML_MAPPING_END_EVENT:
        return check_duplicates(reader, reader->stack[--reader->depth]);
    case YAML_SEQUENCE_END_EVENT:
        reader->depth--;
        return TDM_OK;
    case YAML_STREAM_END_EVENT:
        reader->stop = true;
        return TDM_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return TDM_OK;
    }
    return TDM_OK;
}

static tdm_status read_events(yaml_reader *reader, yaml_parser_t *parser) {
    while (!reader->stop) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            if (parser->error == YAML_MEMORY_ERROR) TDM_FAIL(TDM_E_MEMORY, "reading YAML: out of memory");
            yaml_mark_t mark = parser->error == YAML_READER_ERROR ? parser->mark : parser->problem_mark;
            tdm__yaml_explain_error(parser, position_of(reader, mark), position_of(reader, parser->context_mark),
                                    reader->faults);
            reader->root = NULL;
            return TDM_OK;
        }
        if (++reader->events > TDM_YAML_MAX_EVENTS)
            refuse(reader, TDM_FAULT_LIMIT, event.start_mark, "", "the file has more than 8,192 values and brackets");
        tdm_status status = reader->stop ? TDM_OK : on_event(reader, &event);
        bool ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        TDM_TRY(status);
        if (reader->faults->count == TDM_FAULTS_KEPT && !ended) reader->stop = reader->faults->is_cut = true;
        if (reader->stop && !ended) reader->root = NULL;
    }
    return TDM_OK;
}

/* libyaml compares each %TAG line with all earlier ones: 30,000 lines take a second. The format has no custom tags, so
 * refuse them first. */
static bool refuse_tag_lines(yaml_reader *reader) {
    const char *at = reader->text->bytes, *end = at + reader->text->count;
    yaml_mark_t mark = {0};
    if (memmem(at, reader->text->count, "%TAG", 4) == NULL) return false;
    for (; at != NULL; at = tdm__line_after(at, end), mark.line++) {
        if (end - at < 4 || memcmp(at, "%TAG", 4) != 0) continue;
        refuse(reader, TDM_FAULT_FEATURE, mark, "remove the line", "a %TAG line is not part of this format");
        return true;
    }
    return false;
}

static tdm_status parse(tdm_yaml_node **root, yaml_reader *reader, size_t first) {
    *root = NULL;
    if (refuse_tag_lines(reader)) return TDM_OK;
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) TDM_FAIL(TDM_E_MEMORY, "reading YAML: out of memory");
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)reader->text->bytes + first,
                                 reader->text->count - first);
    tdm_status status = read_events(reader, &parser);
    yaml_parser_delete(&parser);
    TDM_TRY(status);
    TDM_TRY(reader->faults->status);
    *root = reader->root;
    return TDM_OK;
}

tdm_status tdm__yaml_parse(tdm_yaml_node **root, const tdm_yaml_text *text, tdm_zone *zone, tdm_fault_list *faults) {
    yaml_reader reader = {.text = text, .zone = zone, .faults = faults};
    return parse(root, &reader, 0);
}

tdm_status tdm__yaml_parse_value(tdm_yaml_node **root, const tdm_yaml_text *text, size_t first, tdm_zone *zone,
                                 tdm_fault_list *faults) {
    const int shift = tdm__utf8_characters(text->bytes, first);
    yaml_reader reader = {.text = text, .zone = zone, .faults = faults, .column_shift = shift};
    TDM_TRY(parse(root, &reader, first));
    if (*root == NULL && faults->total == 0) { /* nothing after the "=" */
        TDM_TRY(tdm__zone_new(zone, root, 1, sizeof(**root)));
        (*root)->text = "";
        (*root)->at = (tdm_position){text, 1, reader.column_shift + 1};
    }
    return TDM_OK;
}
