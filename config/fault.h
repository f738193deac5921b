/* What is wrong with a file: a list of faults with their places, told all at once. */
#ifndef TDM_CONFIG_FAULT_H
#define TDM_CONFIG_FAULT_H

#include <tandem/config.h>

#include "runtime/base/memory.h"
#include "runtime/base/text.h"

/* id, number, what it means. Numbers are printed, searched for and never reused. */
#define TDM_FAULT_MAP(X)                                                                                          \
    X(ENCODING, "C001", "the file is not UTF-8 text")                                                             \
    X(SYNTAX, "C002", "the text is not YAML")                                                                     \
    X(LIMIT, "C003", "the file is larger or deeper than the format allows")                                       \
    X(FEATURE, "C004", "a part of YAML that the format leaves out: aliases, merge keys, tags, several documents") \
    X(DUPLICATE, "C005", "a key is written twice")                                                                \
    X(UNKNOWN_KEY, "C006", "a key that does not exist here")                                                      \
    X(VALUE, "C007", "a value of the wrong type or out of range")                                                 \
    X(MISSING, "C008", "a key that must be written is not there")                                                 \
    X(EXCLUSIVE, "C009", "of several keys exactly one must be written")                                           \
    X(OTHER_TYPE, "C010", "a key that belongs to another type, as momentum does to sgd")                          \
    X(SUBSTITUTION, "C011", "a ${...} that cannot be replaced")                                                   \
    X(LAYER, "C012", "a layer that is not one of the known kinds, or not written as one")                         \
    X(REFERENCE, "C013", "a layer name, id or input that is taken, unknown or unused")                            \
    X(SHAPE, "C014", "shapes that do not fit together")                                                           \
    X(CONFLICT, "C015", "settings that contradict each other")                                                    \
    X(UNSUPPORTED, "C016", "part of the format, but not in this build")                                           \
    X(OVERRIDE, "C017", "an override whose path leads nowhere")

typedef enum tdm_fault_id {
#define X(id, number, meaning) TDM_FAULT_##id,
    TDM_FAULT_MAP(X)
#undef X
        TDM_FAULT_COUNT
} tdm_fault_id;

const char *tdm__fault_number(tdm_fault_id id);
const char *tdm__fault_meaning(tdm_fault_id id);

/* A text that places point into: the file, or one override. */
typedef struct tdm_yaml_text {
    const char *name;
    const char *bytes; /* valid UTF-8 without byte order mark, or nothing is quoted from it */
    size_t count;
    int order; /* 0: the file; n: the n-th override of the command line */
} tdm_yaml_text;

typedef struct tdm_place {
    const tdm_yaml_text *text; /* NULL: a default, no place */
    int line, column;          /* from 1; columns count characters */
} tdm_place;

enum { TDM_FAULTS_SHOWN = 20, TDM_FAULTS_KEPT = 64 };
typedef struct tdm_fault_list {
    tdm_arena *arena;             /* of the texts */
    int count, total;             /* kept, and found */
    int unsupported;              /* of the found ones, those of TDM_FAULT_UNSUPPORTED */
    bool is_cut;                  /* reading ended early: there may be more than `total` */
    tdm_status status;            /* out of memory, told once at the end */
    const tdm_yaml_text *indexed; /* the text of which `mark` knows each 256th line */
    const char **mark;
    int mark_count;
    tdm_fault item[TDM_FAULTS_KEPT];
    tdm_place place[TDM_FAULTS_KEPT];
} tdm_fault_list;

void tdm__faults_init(tdm_fault_list *list, tdm_arena *arena);
/* `key`: "model.layers[3].kernel", or "" for faults of the text; `hint`: "" if there is nothing to say. */
void tdm__fault_add(tdm_fault_list *list, tdm_fault_id id, tdm_place at, const char *key, const char *hint,
                    const char *format, ...) TDM_PRINTF(6, 7);
/* True when nothing more is kept; the fault is then counted here, and no time is spent on its words. */
bool tdm__fault_skip(tdm_fault_list *list);
/* Behind the next line break, of those that libyaml knows; NULL at the end. */
const char *tdm__line_after(const char *at, const char *end);
/* Into the order of the file, cut to TDM_FAULTS_SHOWN. */
void tdm__faults_sort(tdm_fault_list *list);
/* As people read them, and as JSON. */
void tdm__faults_print(const tdm_fault_list *list, tdm_text *out);
void tdm__faults_print_json(const tdm_fault_list *list, tdm_text *out);

/* A text in the arena; "" and a remembered failure when memory is out. */
const char *tdm__fault_text(tdm_fault_list *list, const char *format, ...) TDM_PRINTF(2, 3);
/* "section.key", and "key" where the section is "": the file itself. */
const char *tdm__fault_key(tdm_fault_list *list, const char *section, const char *key);
/* "a, b, c". */
const char *tdm__fault_list_of(tdm_fault_list *list, const char *const *names, int count);
/* The bytes of the line of a place, of a very long one the first part; false beyond the end. */
bool tdm__place_bytes(tdm_fault_list *list, tdm_place place, const char **start, const char **stop);
/* The line of a place without the spaces around it, for quoting in messages; "" if there is no place. */
const char *tdm__place_line(tdm_fault_list *list, tdm_place at);
/* "line 12", "the command line" or "the default". */
const char *tdm__place_words(tdm_fault_list *list, tdm_place at);
/* The place as the engine keeps it. Line 0 for the command line and for defaults. */
tdm_origin tdm__place_origin(tdm_place at);
/* Of the value of `key`, which stands behind "command line" where it comes from there. */
tdm_origin tdm__key_origin(tdm_fault_list *list, tdm_place at, const char *key);
/* Full-width punctuation, as Chinese input methods write it, outside of comments: a hint that names it, or "". */
const char *tdm__fault_wide_hint(tdm_fault_list *list, tdm_place at);

#endif
