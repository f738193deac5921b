/* The format as one tree of tables. The walker, the printer, `explain` and the JSON Schema read it. A key that is not
 * here does not exist. */
#ifndef TDM_CONFIG_TABLE_H
#define TDM_CONFIG_TABLE_H

#include <tandem/job.h>

#include "runtime/base/field/field.h"
#include "runtime/base/text/json_write.h"

/* The keys of the model section other than the layers. */
typedef struct tdm_model_head {
    tdm_ints input;
    tdm_shapes inputs;
    const char *weights;
    int builtin; /* of config/builtin.c; 0: none */
    int64_t classes;
    bool small_input, zero_init_residual;
    tdm_weights_section match;
    tdm_texts freeze;
} tdm_model_head;

/* Everything that rows write into. Section offsets are relative to this struct. */
typedef struct tdm_settings {
    tdm_job job;
    tdm_model_head model;
} tdm_settings;

typedef struct tdm_section {
    const char *path;      /* "parallel.dp"; "" is the file itself */
    size_t offset;         /* of the struct that rows write into, in tdm_settings */
    const tdm_field *rows; /* end with a NULL key */
    const char *type_key;  /* the row whose value decides which other rows exist; NULL: all rows always exist */
    /* Does the definition of the type have the key? Keys that no type has belong to all of them, as lr does. NULL: the
     * rows say which types have them. */
    bool (*has)(int type, const char *key);
    const char *help, *help_zh;
} tdm_section;

/* A section that is a list of mappings; its offset is that of the first item. */
typedef struct tdm_section_list {
    const tdm_field *rows;       /* of the section */
    size_t count_at, item_bytes; /* where the number of items is, in tdm_settings; the size of one */
    int most;
} tdm_section_list;

/* A key with values for which this build may have no module. */
typedef struct tdm_lack {
    const char *section, *key;
    unsigned values;    /* one bit per missing value of an enum or bool row */
    const char *module; /* that provides them */
} tdm_lack;

enum { TDM_SECTION_COUNT = 25, TDM_ROWS_MAX = 32 };
/* In the order of printing: a section before its parts. */
extern const tdm_section tdm__sections[TDM_SECTION_COUNT];

int tdm__section_find(const char *path); /* -1 if there is none */
/* Index of row `key` of a section; -1 if there is none. */
int tdm__section_row(const tdm_section *section, const char *key);
/* "train.batch.global", of `length` bytes, to its section and row. False if there is no such key. */
bool tdm__table_find(const char *key, size_t length, int *section, int *row);
/* The next direct part of a section after section `last` (0: the first part), and its key; 0 at the end. */
int tdm__section_part(const tdm_section *section, int last, const char **key);
/* The keys that a section may have: rows, parts, and the model's layers. Returns how many, at most `room`. */
int tdm__section_keys(int section, const char *keys[], int room);
/* The row that holds the section's type. */
const tdm_field *tdm__section_type_row(const tdm_section *section);
/* The types that have the row: one bit for each value of the type row; 0: all types. */
unsigned tdm__section_types(const tdm_section *section, const tdm_field *row);
/* Adds the names of these types: "adam, adamw". */
void tdm__section_print_types(const tdm_section *section, unsigned types, tdm_text *out);
/* The value of the section's type row. */
int tdm__section_type(const tdm_section *section, const tdm_settings *settings);
/* Does this section, as it is set, have this row? */
bool tdm__section_has(const tdm_section *section, const tdm_field *row, const tdm_settings *settings);
/* NULL: the section is a mapping. */
const tdm_section_list *tdm__section_list(const tdm_section *section);
/* How many items the list has. */
static inline int *tdm__list_count(const tdm_section_list *list, tdm_settings *settings) {
    return (int *)(void *)((char *)settings + list->count_at);
}
/* The struct that rows write into. Of a list: its last item. */
void *tdm__section_object(const tdm_section *section, tdm_settings *settings);

/* Keys that every layer may have. `input` has its own reader because it is a text or a list. */
typedef struct tdm_layer_head {
    const char *name, *id;
    tdm_texts input;
    int64_t stage;
} tdm_layer_head;
extern const tdm_field tdm__layer_rows[];
/* May the layer with this index in the list have the name? An unnamed layer is called by its index, so a name may not
 * be another number. "0.conv" is not a number. */
bool tdm__layer_name_fits(const char *name, int index);

/* ---- print/print.c ---- */

/* The list of data.transform, as YAML flow or JSON. */
void tdm__print_transform(const tdm_transform_spec *transform, bool json, tdm_text *out);
/* The keys of a layer, but for a null that is also the default, such as `in`, a pooling stride, or the keys that every
 * layer has; in YAML (json is NULL) in braces that stay open, behind the *count keys that it has so far. */
void tdm__print_layer_keys(const tdm_field *rows, const void *object, tdm_json_out *json, int *count, tdm_text *out);
extern const char *const tdm__custom_help, *const tdm__custom_help_zh;
/* The keys of a custom layer that name its op; the first ones. */
void tdm__print_custom(const char *file, const char *op, tdm_json_out *json, int *count, tdm_text *out);

#endif
