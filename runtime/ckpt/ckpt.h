/* Checkpoints: named tensors, a small state and a manifest. They are written so that a crash at any instant leaves the
 * previous checkpoint valid. The format is in runtime/docs/checkpoint.md. */
#ifndef TDM_CKPT_CKPT_H
#define TDM_CKPT_CKPT_H

#include <string.h>

#include <tandem/checkpoint.h>
#include <tandem/sys/comm.h> /* tdm_dtype */
#include <tandem/sys/op.h>   /* tdm_shape */

#include "runtime/base/system/file.h"
#include "runtime/base/hash.h"
#include "runtime/base/memory.h"
#include "runtime/base/text/text.h"

/* ---- safetensors ---- */

enum { TDM_ST_F32, TDM_ST_F64, TDM_ST_I64, TDM_ST_I32, TDM_ST_U8, TDM_ST_OTHER }; /* dtypes that tandem reads */

typedef struct tdm_tensor {
    const char *name;
    int dtype;           /* TDM_ST_* */
    char dtype_name[12]; /* as in the file: "F32", "BF16" */
    int ndim;
    int64_t dim[16];
    size_t bytes;
    const void *data;     /* to write, or in the memory of a file; NULL when read from a file */
    uint64_t file_offset; /* of its first byte, when read from a file */
} tdm_tensor;

static inline bool tdm__tensor_has_shape(const tdm_tensor *tensor, const tdm_shape *shape) {
    return tensor->ndim == shape->ndim &&
           memcmp(tensor->dim, shape->dim, (size_t)shape->ndim * sizeof(*shape->dim)) == 0;
}

/* What a file of the model says beside its tensors. About the data trained on: names of classes, features of a table.
 * What the model is: YAML (config/print/model_text.c). Where an exported file comes from, in words.
 * The name of the program's own loss that it was trained with. */
typedef enum tdm_note {
    TDM_NOTE_CLASSES,
    TDM_NOTE_FEATURES,
    TDM_NOTES_OF_DATA,
    TDM_NOTE_MODEL = TDM_NOTES_OF_DATA,
    TDM_NOTE_ORIGIN,
    TDM_NOTE_LOSS,
    TDM_NOTES
} tdm_note;
/* Their keys in the metadata of files of tensors. */
extern const char *const tdm__note_keys[TDM_NOTES];

/* A text of the program's own in that metadata, under a key that is none of tandem's. */
typedef struct tdm_property {
    const char *key, *text;
} tdm_property;
/* May a file hold it: a key of 1 to TDM_PROPERTY_KEY bytes, "format" and "tandem..." excepted? */
bool tdm__property_is_key(const char *key, size_t length);

typedef struct tdm_tensor_file tdm_tensor_file;
/* Opens the file and checks its header by all rules of the format (no holes, overlaps, duplicates, overflows; bounded
 * depth and size) before it allocates anything for the tensors. If a rule is broken, TDM_E_CHECKPOINT with the found
 * and expected numbers. */
tdm_status tdm__tensor_file_open(tdm_tensor_file **out, const tdm_host *host, const tdm_folder *folder,
                                 const char *name);
/* The same of a file that is in memory, which stays there until the close; messages call it `name`. tensor->data then
 * points into it. */
tdm_status tdm__tensor_file_open_memory(tdm_tensor_file **out, const tdm_host *host, const void *bytes, size_t count,
                                        const char *name);
int tdm__tensor_file_count(const tdm_tensor_file *file);
const tdm_tensor *tdm__tensor_file_get(const tdm_tensor_file *file, int index);         /* in order of offset */
const tdm_tensor *tdm__tensor_file_find(const tdm_tensor_file *file, const char *name); /* NULL if absent */
tdm_status tdm__tensor_file_read(const tdm_tensor_file *file, const tdm_tensor *tensor, void *to);
/* Where the file is open, to be mapped; -1: it is in memory. The tensors lie at their file_offset. */
int tdm__tensor_file_descriptor(const tdm_tensor_file *file, uint64_t *bytes);
/* NULL: the file does not have it. Those about data are JSON. Borrowed. */
const char *tdm__tensor_file_note(const tdm_tensor_file *file, tdm_note note);
/* The program's own, in the order of the file; *count is how many. Of a file with more than TDM_PROPERTIES, or with
 * more than TDM_PROPERTY_BYTES of them, those that fit. Borrowed. */
const tdm_property *tdm__tensor_file_properties(const tdm_tensor_file *file, int *count);
void tdm__tensor_file_close(tdm_tensor_file *file);

/* Writes a new file, which must not exist, and fsyncs it. Tensors may come in any order. Fills in hashes[i], *file_hash
 * and *file_bytes unless they are NULL. metadata: key, value, key, value, NULL. If a number is infinite or NaN,
 * TDM_E_NUMERIC names its tensor, and no file is left. */
tdm_status tdm__tensor_file_write(const tdm_host *host, const tdm_file_ops *ops, const tdm_folder *folder,
                                  const char *name, const tdm_tensor *tensors, int count, const char *const *metadata,
                                  tdm_hash128 *hashes, tdm_hash128 *file_hash, uint64_t *file_bytes);
/* The metadata of tandem's own files: format, step (below 0: none) and notes (NULL, or each may be NULL). `step_text`
 * and the notes must live as long as `out`. */
enum { TDM_METADATA = 7 + 2 * (TDM_NOTES + TDM_PROPERTIES), TDM_METADATA_STEP = 24 };
void tdm__tensor_metadata(const char *out[TDM_METADATA], char step_text[TDM_METADATA_STEP], int64_t step,
                          const char *const *note);
/* Adds properties to it, which must live as long; at most TDM_PROPERTIES. */
void tdm__tensor_metadata_add(const char *out[TDM_METADATA], const tdm_property *property, int count);
/* Only that check, without writing. */
tdm_status tdm__tensors_finite(const tdm_tensor *tensors, int count);

/* ---- checkpoint directories ---- */

/* What a run needs, beside the tensors, to continue. */
typedef struct tdm_ckpt_state {
    int64_t step;                 /* steps done */
    int64_t epoch, step_in_epoch; /* of the next step */
    int64_t samples;              /* processed by all replicas together */
    int64_t seed;
    double lr; /* the current value: like PyTorch's, schedules compute the next lr from it */
    int64_t schedule_step;
    char mode[8];     /* of the run that saved it; information only */
    int64_t replicas; /* of the run that saved it; the order of samples depends on it */
    int64_t per_device;
    char optimizer[16]; /* its name */
    char params_xxh3[TDM_HASH_TEXT];
    char data[160];    /* describes the data: the number of samples and a hash of some; "" if unknown */
    char identity[64]; /* tdm_source.identity of the samples; "": none */
    int64_t eval_due;  /* 1: the run was stopped before the evaluation after its last step, which is still due */
    int64_t skipped;   /* steps without an update of the optimizer */
    /* The best evaluation by checkpoint.keep_best, and by train.stop_early, with the evaluations since then. Metric "":
     * there is none. */
    char best_metric[12], stop_metric[12];
    int64_t best_step, stop_step, stop_waited;
    double best_score, stop_score;
    /* Of the schedule that looks at evaluations. Metric "": it has no best yet. */
    char plateau_metric[12];
    double plateau_best;
    int64_t plateau_bad, plateau_cooldown, plateau_reductions;
} tdm_ckpt_state;

typedef struct tdm_ckpt_parts {
    const tdm_tensor *model; /* parameters and buffers, with PyTorch's names and layouts */
    int model_count;
    const tdm_tensor *optimizer; /* exp_avg.<name>, ... */
    int optimizer_count;
    const tdm_tensor *average; /* like `model`, with averages of the parameters; NULL: none */
    int average_count;
    const tdm_tensor *compression; /* what compressed gradients have kept back; NULL: none */
    int compression_count;
    tdm_ckpt_state state;
    const char *config_yaml;      /* the resolved configuration; NULL: none */
    const char *note[TDM_NOTES];  /* NULL: none */
    const tdm_property *property; /* of the model and the average */
    int property_count;
} tdm_ckpt_parts;

/* Writes step-%08d into the checkpoints directory `name`, which is created if missing: fills a temporary sibling,
 * fsyncs every file and directory, renames it, updates `latest`, then removes all but the newest keep_last complete
 * checkpoints (0: keeps all) and that of parts->state.best_step. After TDM_E_IO the existing checkpoints are still
 * valid. A complete checkpoint of the same step is kept if its manifest has the same hashes, else replaced. */
tdm_status tdm__ckpt_save(const tdm_host *host, const tdm_file_ops *ops, const tdm_folder *folder, const char *name,
                          const tdm_ckpt_parts *parts, int64_t keep_last);

/* The same files as one archive, tar, to a file system that takes files one behind the other, such as a tdm_sink. */
tdm_status tdm__ckpt_save_archive(const tdm_host *host, const tdm_file_ops *ops, const tdm_ckpt_parts *parts);

/* Makes the file `best` of a checkpoints directory name the checkpoint of `step`; removes the file if there is no such
 * checkpoint. A save does the first for parts->state.best_step, after which it removes older checkpoints. */
tdm_status tdm__ckpt_name_best(const tdm_host *host, const tdm_folder *folder, const char *name, int64_t step);

/* Removes what killed processes have left in a folder: entries "<base>.tmp-<pid>", or numbered ones,
 * "<base>.tmp-<pid>-<n>", whose base is ours. What cannot be removed is a warning. */
tdm_status tdm__leftovers_remove(const tdm_host *host, const tdm_file_ops *ops, const tdm_folder *dir,
                                 const char *subsystem, bool (*is_ours)(const char *base, bool numbered));
/* Removes what killed saves have left in a checkpoints directory. Every save begins with that; this is for runs that do
 * not save. */
tdm_status tdm__ckpt_remove_leftovers(const tdm_host *host, const tdm_folder *folder, const char *name);

/* Moves checkpoints of steps after `step` into the folder before-<time> beside them, and warns. For a run that begins
 * anew or from an earlier step: it must not be resumed from them. */
tdm_status tdm__ckpt_set_aside(const tdm_host *host, const tdm_folder *folder, const char *name, int64_t step);

/* A checkpoint opened for reading: its manifest is read, and all files have the sizes in it. */
typedef struct tdm_ckpt tdm_ckpt;
tdm_status tdm__ckpt_open(tdm_ckpt **out, const tdm_host *host, const tdm_folder *folder,
                          const char *name); /* the step-... directory */
/* Opens the newest checkpoint of a checkpoints directory whose hashes are all right. Damaged ones are skipped; a
 * warning names the file and the first damaged tensor. If there is no checkpoint at all, TDM_OK and *out is NULL. If
 * there are some but none is usable, TDM_E_CHECKPOINT. If `name` is not a folder, TDM_E_IO. */
tdm_status tdm__ckpt_open_newest(tdm_ckpt **out, const tdm_host *host, const tdm_folder *folder, const char *name);
/* Opens a path as users give it: a step directory, a checkpoints directory, a run directory, the file `best` or
 * `latest` that names a step directory beside it, or a .safetensors, .pt or .onnx file. The last three give a
 * checkpoint with a model and without state. */
tdm_status tdm__ckpt_open_any(tdm_ckpt **out, const tdm_host *host, const char *path);
/* Opens what is in memory: an archive of a step directory, of which every byte is checked, or a .safetensors file. The
 * bytes are borrowed until the close. */
tdm_status tdm__ckpt_open_memory(tdm_ckpt **out, const tdm_host *host, const void *bytes, size_t count);
const tdm_ckpt_state *tdm__ckpt_state(const tdm_ckpt *ckpt); /* NULL without state */
const tdm_tensor_file *tdm__ckpt_model(const tdm_ckpt *ckpt);
const tdm_tensor_file *tdm__ckpt_optimizer(const tdm_ckpt *ckpt);   /* NULL without state */
const tdm_tensor_file *tdm__ckpt_average(const tdm_ckpt *ckpt);     /* NULL without one */
const tdm_tensor_file *tdm__ckpt_compression(const tdm_ckpt *ckpt); /* NULL without one */
const char *tdm__ckpt_path(const tdm_ckpt *ckpt);
/* The configuration of the run that saved it; NULL if the checkpoint has none. Borrowed from the checkpoint. */
tdm_status tdm__ckpt_config(tdm_ckpt *ckpt, const char **out);
void tdm__ckpt_close(tdm_ckpt *ckpt);

/* Checks every byte of a step directory against its manifest. TDM_E_CHECKPOINT names the file and the tensor. */
tdm_status tdm__ckpt_verify(const tdm_host *host, const tdm_folder *folder, const char *name);
/* As text or JSON: the checkpoints in a directory; the tensors of one checkpoint. The caller checks text->failed.
 * tdm_checkpoint_compare (tandem/checkpoint.h) compares two. */
tdm_status tdm__ckpt_list(const tdm_host *host, const char *dir, bool json, tdm_text *out);
tdm_status tdm__ckpt_show(const tdm_host *host, const char *path, bool json, tdm_text *out);

#endif
