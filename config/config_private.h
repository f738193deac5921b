/* What the files of this folder share: the config object, and the stages of a check.
 *
 *   text --yaml.c--> tree --override.c--> tree --schema.c, transform.c--> settings + positions --check.c--> settings
 *                                          \--model.c--> layers, graph
 *
 * Every stage adds its faults to one list and continues. The check ends by sorting the list. */
#ifndef TDM_CONFIG_PRIVATE_H
#define TDM_CONFIG_PRIVATE_H

#include <tandem/config.h>
#include <tandem/sys/module.h>
#include <tandem/sys/op.h>

#include "config/table.h"
#include "config/yaml.h"
#include "runtime/base/field/field.h"
#include "runtime/base/text/names.h"

enum { TDM_LAYERS_MAX = 2048, TDM_LAYER_ATTRS_MAX = 24 };

/* One item of model.layers as written, names resolved. */
typedef struct tdm_layer {
    const tdm_op_def *op;
    const tdm_module *module; /* of a custom layer, with the file it is from; else NULL */
    const char *file;
    tdm_position at;  /* position of the kind */
    const char *name; /* as written, or the index */
    bool is_named;
    tdm_layer_head head;
    tdm_position name_at, id_at, input_at[TDM_MAX_INPUTS];
    tdm_attr *attr;
    tdm_position *attr_at;
    int attr_count;
    void *attrs;     /* the op's struct, all attributes set */
    tdm_value value; /* its output; -1 while unknown */
    bool is_broken;  /* has a fault of its own: not added to the graph */
    int uses;
    bool lacks_input; /* its input names an unknown id */
} tdm_layer;

/* Where a step normalize has what it says; text NULL: nowhere. */
typedef struct tdm_normalize_at {
    tdm_position mean, inputs;
    bool inputs_are_bad;
} tdm_normalize_at;

/* An item of model.layers, or of a block that it uses. */
typedef struct tdm_expanded {
    const tdm_yaml_node *item;
    const char *id, *input; /* that the item does not write; NULL: none */
    const char *ends;       /* "layer1.0", the last use of a block that ends with it; NULL: none */
    tdm_fault_block within;
} tdm_expanded;

typedef struct tdm_override {
    tdm_yaml_text text; /* the whole assignment */
    const char *path;   /* the part before the "=" */
    size_t value;       /* index of the first byte after the "=" */
    bool is_literal;    /* the value is plain text, not YAML */
} tdm_override;

struct tdm_config {
    const tdm_host *host;
    tdm_zone zone; /* holds what lives as long as the config */
    const char *source;
    tdm_yaml_text file;
    bool is_too_large;
    const char *folder, *cwd; /* absolute: the base of relative paths in the file, and in overrides */
    char start_time[24];
    tdm_override *overrides;
    size_t override_count, override_room;
    bool predicts; /* tdm_config_predicts */

    tdm_zone work; /* holds the last check, which is everything below */
    bool is_checked, is_good;
    size_t replaced_bytes; /* total size of the values with a ${...}, after replacement */
    tdm_fault_list faults;
    tdm_settings settings;
    tdm_position position[TDM_SECTION_COUNT][TDM_ROWS_MAX]; /* of each value; text NULL: the default */
    bool is_bad[TDM_SECTION_COUNT][TDM_ROWS_MAX];           /* the written value was refused */
    tdm_position section_at[TDM_SECTION_COUNT];             /* position of its key; text NULL: not written */
    bool section_is_bad[TDM_SECTION_COUNT];
    tdm_normalize_at normalize_at[TDM_SHAPES_MAX];
    const tdm_yaml_node *layers_node, *blocks_node, *inputs_node;
    bool inputs_are_bad;            /* their shapes are unknown after a fault */
    int input_uses[TDM_SHAPES_MAX]; /* by layers, of each of model.inputs */
    tdm_expanded *expanded;         /* the layers, blocks replaced by theirs */
    int expanded_count;
    bool has_block_fault; /* a use of a block has a fault: there is no graph */
    tdm_layer *layers;
    int layer_count;
    tdm_names layer_names, layer_ids; /* of the layers read so far */
    tdm_graph *graph;
};

/* A fault of the file: TDM_FAULT(config, VALUE, position, key, hint, format, ...). Texts must outlive the check. */
#define TDM_FAULT(config, id, ...) tdm__fault_add(&(config)->faults, TDM_FAULT_##id, __VA_ARGS__)
#define TDM_WORDS(config, ...) tdm__fault_text(&(config)->faults, __VA_ARGS__)

/* override.c */
tdm_status tdm__overrides_apply(tdm_config *config, tdm_yaml_node *root);
/* schema.c */
/* Call after tdm__field_set returned false. True if it ran out of memory: the failure is recorded, and it is not a
 * fault of the file. */
bool tdm__config_lacks_memory(tdm_config *config, const tdm_text *why);
tdm_status tdm__schema_read(tdm_config *config, const tdm_yaml_node *root);
void tdm__schema_read_row(tdm_config *config, int section, int row, const tdm_yaml_node *node, bool needed);
/* "train.batch.global": a key of a section, for messages. */
const char *tdm__section_key(tdm_config *config, int section, const char *key);
tdm_status tdm__settings_init(tdm_settings *settings, tdm_zone *zone);
/* What rows of the model section set, and the job has. */
void tdm__settings_take_model(tdm_settings *settings);
/* transform.c: data.transform, which is a list of steps */
void tdm__transform_read(tdm_config *config, const tdm_yaml_node *node);
/* check.c: checks that involve several settings */
tdm_status tdm__check_settings(tdm_config *config);
/* Two settings contradict each other. The fault points to `key` and quotes `other`; the other way round if `key` has
 * its default. */
void tdm__conflict(tdm_config *config, const char *key, const char *other, const char *message);
/* lacking.c: parts of the format for which this build has no module */
bool tdm__lacks(const tdm_field *row); /* does this build lack some of its values? */
void tdm__lack_print(const tdm_field *row, bool chinese,
                     tdm_text *out); /* "not in this build: gloo, mpi", or nothing */
/* The help of a row, with what this build lacks in brackets. */
void tdm__row_help(const tdm_field *row, bool chinese, tdm_text *out);
/* model.c: the layers. May leave config->graph NULL if there are faults. */
tdm_status tdm__model_build(tdm_config *config);
/* checks/batch_rows.c: finds batches that are too small for a layer. Call only if the settings have no faults. */
void tdm__check_rows(tdm_config *config);
/* checks/stages.c: parallel.stages and the settings beside it; layers with a stage where there is one; where a finished
 * graph is cut. */
void tdm__check_stages(tdm_config *config);
void tdm__check_missing_stages(tdm_config *config);
tdm_status tdm__check_cuts(tdm_config *config);
/* "model.layers[3].kernel", or "model.layers[3]" for the key "". */
static inline const char *tdm__layer_key(tdm_config *config, int index, const char *key) {
    return TDM_WORDS(config, "model.layers[%d]%s%s", index, key[0] != '\0' ? "." : "", key);
}
/* layers/refused.c: turns the engine's error record into a fault at the position of the layer, or of the attribute that
 * it names. */
tdm_status tdm__engine_fault(tdm_config *config, tdm_status status, tdm_position at, const char *key, const char *hint);
/* layers/inputs.c: exactly one of model.input and model.inputs */
void tdm__inputs_choose(tdm_config *config);
/* Opens config->graph with the model's inputs; it stays NULL after some faults */
tdm_status tdm__inputs_open(tdm_config *config);
int tdm__inputs_find(const tdm_config *config, const char *id);   /* by the id for layers; -1: there is none */
tdm_value tdm__inputs_value(const tdm_config *config, int index); /* -1 while unknown */
const char *tdm__inputs_words(tdm_config *config, int index);     /* "the input 'image'" */
const char *tdm__inputs_list(tdm_config *config);                 /* their names */
void tdm__inputs_check_name(tdm_config *config, int index); /* does a layer, or its output, have that of an input? */
tdm_value tdm__inputs_first(tdm_config *config, tdm_layer *layer);
void tdm__inputs_check_uses(tdm_config *config);
void tdm__inputs_check_transform(tdm_config *config);
/* layers/layer.c: reads one layer */
tdm_status tdm__layer_read(tdm_config *config, int index, const tdm_yaml_node *item, tdm_layer *layer);
/* layers/custom.c: the op of a layer `custom`, from its module. False after a fault. */
bool tdm__custom_read(tdm_config *config, int index, const tdm_yaml_node *keys, tdm_layer *layer);
bool tdm__custom_has_key(const char *key);
/* names.c: "did you mean" */
void tdm__unknown_key(tdm_config *config, int section, const tdm_yaml_node *node);
/* Our name for what other frameworks call Conv2d, fc or dense; NULL if unknown. */
const char *tdm__foreign_layer(const char *kind);
const char *tdm__foreign_attr(const char *key); /* the same for kernel_size, out_channels */
const char *tdm__foreign_value(tdm_config *config, const char *key,
                               const char *value); /* a hint for `format: mnist`; "" if unknown */
const char *tdm__hint_nearest(tdm_config *config, const char *word, const char *const *names, int count);
/* subst.c: ${env:X}, ${name}, ${start_time}. NULL after a fault. */
const char *tdm__substitute(tdm_config *config, const char *text, tdm_position at, const char *key);
/* The absolute path. `at` decides whether a relative path starts at the file's folder or at the working directory. NULL
 * after a fault. */
const char *tdm__path_resolve(tdm_config *config, const char *path, tdm_position at, const char *key);
/* For a row or a section by its key, "train.steps", "data.transform": where it was written. For a row: was what was
 * written refused? */
tdm_position tdm__config_position(const tdm_config *config, const char *key);
bool tdm__config_is_bad(const tdm_config *config, const char *key);

#endif
