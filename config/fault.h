/* What is wrong with a file: a list of faults with their positions, reported all at once. */
#ifndef TDM_CONFIG_FAULT_H
#define TDM_CONFIG_FAULT_H

#include <tandem/config.h>

#include "runtime/base/memory.h"
#include "runtime/base/text/text.h"

/* id, number, meaning. Users see and search for the numbers, so a number is never reused. */
#define TDM_FAULT_MAP(X)                                                                                           \
    X(ENCODING, "C001", "the file is not UTF-8 text")                                                              \
    X(SYNTAX, "C002", "the text is not YAML")                                                                      \
    X(LIMIT, "C003", "the file is larger or deeper than the format allows")                                        \
    X(FEATURE, "C004",                                                                                             \
      "the file uses a part of YAML that the format does not allow: aliases, merge keys, tags, several documents") \
    X(DUPLICATE, "C005", "a key is written twice")                                                                 \
    X(UNKNOWN_KEY, "C006", "the section has no such key")                                                          \
    X(VALUE, "C007", "a value has the wrong type or is out of range")                                              \
    X(MISSING, "C008", "a required key is missing")                                                                \
    X(EXCLUSIVE, "C009", "exactly one of several keys must be written")                                            \
    X(OTHER_TYPE, "C010", "a key belongs to another type, as momentum belongs to sgd")                             \
    X(SUBSTITUTION, "C011", "a ${...} cannot be replaced")                                                         \
    X(LAYER, "C012", "a layer has an unknown kind, or is not written as a layer")                                  \
    X(REFERENCE, "C013", "a layer name, id or input is taken, unknown or unused")                                  \
    X(SHAPE, "C014", "shapes do not fit together")                                                                 \
    X(CONFLICT, "C015", "settings contradict each other")                                                          \
    X(OVERRIDE, "C017", "the path of an override leads nowhere")

typedef enum tdm_fault_id {
#define X(id, number, meaning) TDM_FAULT_##id,
    TDM_FAULT_MAP(X)
#undef X
        TDM_FAULT_COUNT
} tdm_fault_id;

const char *tdm__fault_number(tdm_fault_id id);
const char *tdm__fault_meaning(tdm_fault_id id);

/* A text that positions refer to: the file, or one override. */
typedef struct tdm_yaml_text {
    const char *name;
    const char *bytes; /* valid UTF-8 without byte order mark; if it is not, count is 0 and nothing is quoted */
    size_t count;
    int order; /* 0: the file; n: the n-th override of the command line */
} tdm_yaml_text;

/* A position: line and column of a text. */
typedef struct tdm_position {
    const tdm_yaml_text *text; /* NULL: a default, which has no position */
    int line, column;          /* from 1; columns count characters */
} tdm_position;

/* A line of a block, and where the block is used. use_at.text NULL: not in a block. */
typedef struct tdm_fault_block {
    const char *block;
    tdm_position line_at, use_at;
} tdm_fault_block;

enum { TDM_FAULTS_SHOWN = 20, TDM_FAULTS_KEPT = 64 };
typedef struct tdm_fault_list {
    tdm_zone *zone;               /* holds the texts */
    int count, total;             /* kept, and found */
    bool is_cut;                  /* reading ended early: there may be more than `total` */
    tdm_fault_block within;       /* faults that follow are in this block; one at the same position is reported once */
    tdm_status status;            /* TDM_E_MEMORY: out of memory; reported once at the end */
    const tdm_yaml_text *indexed; /* the text that `mark` indexes: the start of every 16th line */
    const char **mark;
    int mark_count;
    tdm_fault item[TDM_FAULTS_KEPT];
    tdm_position position[TDM_FAULTS_KEPT];
} tdm_fault_list;

void tdm__faults_init(tdm_fault_list *list, tdm_zone *zone);
/* `key`: "model.layers[3].kernel", or "" for a fault of the text. `hint`: "" for none. */
void tdm__fault_add(tdm_fault_list *list, tdm_fault_id id, tdm_position at, const char *key, const char *hint,
                    const char *format, ...) TDM_PRINTF(6, 7);
/* True if the list is full: the fault is only counted, and the caller need not build its message. */
bool tdm__fault_skip(tdm_fault_list *list);
/* The start of the next line, by libyaml's line breaks; NULL at the end. */
const char *tdm__line_after(const char *at, const char *end);
/* Sorts by the order of the file and keeps the first TDM_FAULTS_SHOWN. */
void tdm__faults_sort(tdm_fault_list *list);
/* As text for people, and as JSON. */
void tdm__faults_print(const tdm_fault_list *list, tdm_text *out);
void tdm__faults_print_json(const tdm_fault_list *list, tdm_text *out);

/* A text in the zone. Out of memory: "", and list->status is set. */
const char *tdm__fault_text(tdm_fault_list *list, const char *format, ...) TDM_PRINTF(2, 3);
/* "section.key", or "key" if the section is "" (the file itself). */
const char *tdm__fault_key(tdm_fault_list *list, const char *section, const char *key);
/* "a, b, c". */
const char *tdm__fault_list_of(tdm_fault_list *list, const char *const *names, int count);
/* The bytes of the line of `position`; only the first part of a very long line. False beyond the end of the text. */
bool tdm__position_bytes(tdm_fault_list *list, tdm_position position, const char **start, const char **stop);
/* The line at a position, trimmed, for quoting in messages; "" for a default. */
const char *tdm__position_line(tdm_fault_list *list, tdm_position at);
/* "line 12", "the command line" or "the default". */
const char *tdm__position_words(tdm_fault_list *list, tdm_position at);
/* The position as the engine stores it. Line 0 for the command line and for defaults. */
tdm_origin tdm__position_origin(tdm_position at);
/* The origin of the value of `key`. If the value comes from the command line, the file is "command line: key". */
tdm_origin tdm__key_origin(tdm_fault_list *list, tdm_position at, const char *key);
/* A hint that names full-width punctuation in the line, as Chinese input methods write it; "" if there is none. Ignores
 * comments. */
const char *tdm__fault_wide_hint(tdm_fault_list *list, tdm_position at);

#endif
