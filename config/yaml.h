/* Reads YAML text into a tree of nodes, each with its line and column. Scalars stay text; typing happens later.
 *
 * Accepted: one document of mappings, lists and scalars, in block or flow style. Refused with a fault: text that is not
 * UTF-8, aliases and merge keys, tags other than the core schema's, several documents, duplicate keys, and anything
 * beyond the limits below. */
#ifndef TDM_CONFIG_YAML_H
#define TDM_CONFIG_YAML_H

#include "config/fault.h"

enum {
    TDM_YAML_MAX_BYTES = 128 * 1024,
    TDM_YAML_MAX_DEPTH = 32,
    TDM_YAML_MAX_EVENTS = 8192,
    TDM_YAML_MAX_SCALAR = 64 * 1024
};

typedef enum tdm_yaml_kind { TDM_YAML_SCALAR, TDM_YAML_LIST, TDM_YAML_MAP } tdm_yaml_kind;

typedef struct tdm_yaml_node tdm_yaml_node;
struct tdm_yaml_node {
    tdm_yaml_kind kind;
    bool quoted;      /* a scalar in quotes or a block scalar: never null */
    const char *text; /* of a scalar */
    tdm_position at;
    const char *key; /* of a member of a mapping, else NULL */
    tdm_position key_at;
    bool is_reported;                   /* a null that replaces an alias: its fault is already reported */
    bool is_repeated;                   /* a duplicate of an earlier key: its fault is already reported, skip it */
    tdm_yaml_node *first, *last, *next; /* members, and the next member of the parent */
    int count;
};

/* *root is NULL if the text could not be read as one tree; the faults say why. Fails only when out of memory. */
tdm_status tdm__yaml_parse(tdm_yaml_node **root, const tdm_yaml_text *text, tdm_zone *zone, tdm_fault_list *faults);
/* The same for a single value that begins at byte `first` of the text (an override). */
tdm_status tdm__yaml_parse_value(tdm_yaml_node **root, const tdm_yaml_text *text, size_t first, tdm_zone *zone,
                                 tdm_fault_list *faults);

tdm_yaml_node *tdm__yaml_find(const tdm_yaml_node *map, const char *key); /* NULL if absent, or if not a mapping */
bool tdm__yaml_is_null(const tdm_yaml_node *node);
void tdm__yaml_append(tdm_yaml_node *parent, tdm_yaml_node *child);
/* "a mapping", "a list", "null" or the scalar in quotes, for messages. */
const char *tdm__yaml_words(tdm_fault_list *faults, const tdm_yaml_node *node);
/* Prints a scalar or a list of scalars in flow style, for tdm__field_set_text. */
void tdm__yaml_flow(const tdm_yaml_node *node, tdm_text *out);

#endif
