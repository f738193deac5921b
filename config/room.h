/* What the files of this room share: the config itself, and the stages of a check.
 *
 *   text --yaml.c--> tree --override.c--> tree --schema.c, transform.c--> settings + places --check.c--> settings
 *                                          \--model.c--> layers, graph
 *
 * Every stage adds faults to the one list and goes on; the check ends with the sorted list. */
#ifndef TDM_CONFIG_ROOM_H
#define TDM_CONFIG_ROOM_H

#include <tandem/config.h>
#include <tandem/sys/op.h>

#include "config/table.h"
#include "config/yaml.h"
#include "runtime/base/field.h"
#include "runtime/base/names.h"

enum { TDM_LAYERS_MAX = 2048, TDM_LAYER_ATTRS_MAX = 24 };

/* One item of model.layers as written, names resolved. */
typedef struct tdm_layer {
    const tdm_op_def *op;
    const tdm_yaml_node *item; /* the item of the list */
    tdm_place at;              /* of the kind */
    const char *name;          /* as written, or the index */
    bool is_named;
    tdm_layer_head head;
    tdm_place name_at, id_at, input_at[TDM_MAX_INPUTS];
    tdm_attr *attr;
    tdm_place *attr_at;
    int attr_count;
    void *attrs;     /* the op's struct, all attributes set */
    tdm_value value; /* its output; -1 while unknown */
    bool is_broken;  /* has a fault of its own: not given to the graph */
    int uses;
    bool lacks_input; /* names an id that is not there */
} tdm_layer;

typedef struct tdm_override {
    tdm_yaml_text text; /* the whole assignment */
    const char *path;   /* in front of the "=" */
    size_t value;       /* byte behind the "=" */
    bool is_literal;    /* the value is a text as it stands, no YAML */
} tdm_override;

struct tdm_config {
    const tdm_host *host;
    tdm_arena arena; /* of what lives as long as the config */
    const char *source;
    tdm_yaml_text file;
    bool is_too_large;
    const char *folder, *cwd; /* absolute: where relative paths of the file and of overrides begin */
    char start_time[24];
    tdm_override *overrides;
    size_t override_count, override_room;

    tdm_arena work; /* of the last check, all of the following */
    bool is_checked, is_good;
    size_t replaced_bytes; /* of the values that hold a ${...}, with it replaced */
    tdm_fault_list faults;
    tdm_settings settings;
    tdm_place place[TDM_SECTION_COUNT][TDM_ROWS_MAX]; /* of each value; text NULL: its default */
    bool is_bad[TDM_SECTION_COUNT][TDM_ROWS_MAX];     /* what was written there was refused */
    tdm_place section_at[TDM_SECTION_COUNT];          /* of its key; text NULL: not written */
    bool section_is_bad[TDM_SECTION_COUNT];
    const tdm_yaml_node *layers_node;
    tdm_layer *layers;
    int layer_count;
    tdm_names layer_names, layer_ids; /* of the layers that are written out already */
    tdm_graph *graph;
};

/* override.c */
tdm_status tdm__overrides_apply(tdm_config *config, tdm_yaml_node *root);
/* schema.c */
/* After tdm__field_set said no: was it for want of memory? Then the failure is remembered, and it is no fault. */
bool tdm__config_lacks_memory(tdm_config *config, const tdm_text *why);
tdm_status tdm__schema_read(tdm_config *config, const tdm_yaml_node *root);
void tdm__schema_read_row(tdm_config *config, int section, int row, const tdm_yaml_node *node, bool needed);
/* "train.batch.global": a key of a section, for messages. */
const char *tdm__section_key(tdm_config *config, int section, const char *key);
tdm_status tdm__settings_init(tdm_settings *settings, tdm_arena *arena);
/* transform.c: data.transform, which is a list of steps */
void tdm__transform_read(tdm_config *config, const tdm_yaml_node *node);
extern const char *const tdm__transform_later[]; /* steps that this build does not have; ends with NULL */
/* check.c: what several settings say together */
tdm_status tdm__check_settings(tdm_config *config);
/* lacking.c: what the format has and this build does not */
void tdm__check_lacking(tdm_config *config);
bool tdm__lacks(const tdm_field *row);                                   /* some of its values */
void tdm__lack_print(const tdm_field *row, bool chinese, tdm_text *out); /* "gloo, mpi" */
/* model.c: the layers; may leave config->graph NULL when there are faults */
tdm_status tdm__model_build(tdm_config *config);
/* rows.c: batches too small for a layer; for settings without faults */
void tdm__check_rows(tdm_config *config);
/* layer.c: one layer's own grammar */
tdm_status tdm__layer_read(tdm_config *config, int index, const tdm_yaml_node *item, tdm_layer *layer);
/* names.c: "did you mean" */
void tdm__unknown_key(tdm_config *config, int section, const tdm_yaml_node *node);
const char *tdm__foreign_layer(const char *kind);                   /* Conv2d, fc, dense; NULL if not known elsewhere */
const char *tdm__foreign_attr(const char *key);                     /* kernel_size, out_channels */
const char *tdm__foreign_value(const char *key, const char *value); /* format: mnist; "" if not known elsewhere */
const char *tdm__hint_nearest(tdm_config *config, const char *word, const char *const *names, int count);
/* subst.c: ${env:X}, ${name}, ${start_time}. NULL after a fault. */
const char *tdm__substitute(tdm_config *config, const char *text, tdm_place at, const char *key);
/* An absolute path, relative ones taken from where their place is. NULL after a fault. */
const char *tdm__path_resolve(tdm_config *config, const char *path, tdm_place at, const char *key);
/* print.c */
void tdm__model_print_layer(const tdm_config *config, int index, bool json, tdm_text *out);

/* Of a row by its key, "train.steps": where it was written, and whether what was written was refused. */
tdm_place tdm__config_place(const tdm_config *config, const char *key);
bool tdm__config_is_bad(const tdm_config *config, const char *key);

#endif
