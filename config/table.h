/* The format as one tree of tables. The walker, the printer, `explain` and the JSON Schema read it. A key that is not
 * here does not exist. */
#ifndef TDM_CONFIG_TABLE_H
#define TDM_CONFIG_TABLE_H

#include <tandem/job.h>

/* The keys of the model section other than the layers. */
typedef struct tdm_model_head {
    tdm_ints input;
    const char *builtin, *weights;
} tdm_model_head;

/* Everything that rows write into. Section offsets are relative to this struct. */
typedef struct tdm_settings {
    tdm_job job;
    tdm_model_head model;
} tdm_settings;

/* A key that only some types of its section have: momentum is sgd's. Keys not listed belong to every type. */
typedef struct tdm_only {
    const char *key;
    unsigned types; /* one bit per value of the section's type row */
    bool needed;    /* those types require it */
} tdm_only;

typedef struct tdm_section {
    const char *path;      /* "parallel.dp"; "" is the file itself */
    size_t offset;         /* of the struct that rows write into, in tdm_settings */
    const tdm_field *rows; /* end with a NULL key */
    const char *type_key;  /* the row whose value decides which other rows exist; NULL: all rows always exist */
    const tdm_only *only;  /* ends with a NULL key; NULL with type_key NULL */
    const char *help, *help_zh;
} tdm_section;

/* A key with values that this build does not have. */
typedef struct tdm_lack {
    const char *section, *key;
    unsigned values;            /* one bit per missing value of an enum or bool row; 0: all but the default */
    const char *module;         /* the module that provides them, if it was built; NULL: no build has them */
    const char *what, *what_zh; /* these values in words; NULL: their names are used */
    const char *hint;           /* what to write instead */
} tdm_lack;

enum { TDM_SECTION_COUNT = 18, TDM_ROWS_MAX = 24 };
/* In the order of printing: a section before its parts. */
extern const tdm_section tdm__sections[TDM_SECTION_COUNT];

int tdm__section_find(const char *path); /* -1 if there is none */
/* Index of row `key` of a section; -1 if there is none. */
int tdm__section_row(const tdm_section *section, const char *key);
/* The rest of `path` after `parent`: "train.x" for data.train.x and data. NULL if `path` is not below `parent`. */
const char *tdm__section_below(const char *path, const char *parent);
/* Is the section `path` a direct part of the section `parent`? Then its key is *key. */
bool tdm__section_is_part(const char *path, const char *parent, const char **key);
/* The entry of `key` in section->only, or NULL. */
const tdm_only *tdm__section_only(const tdm_section *section, const char *key);
/* The value of the section's type row. */
int tdm__section_type(const tdm_section *section, const tdm_settings *settings);
/* Does this section, as it is set, have this row? */
bool tdm__section_has(const tdm_section *section, const tdm_field *row, const tdm_settings *settings);
void *tdm__section_object(const tdm_section *section, tdm_settings *settings);

/* Keys that every layer may have. `input` has its own reader because it is a text or a list. */
typedef struct tdm_layer_head {
    const char *name, *id;
    tdm_texts input;
    int64_t stage;
} tdm_layer_head;
extern const tdm_field tdm__layer_rows[];

#endif
