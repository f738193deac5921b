/* Checkpoints: named tensors, a small state, and a manifest, written so that a crash at any instant leaves the previous
 * checkpoint valid. Format: runtime/docs/checkpoint.md. */
#ifndef TDM_CKPT_CKPT_H
#define TDM_CKPT_CKPT_H

#include <tandem/sys/comm.h> /* tdm_dtype */
#include <tandem/sys/op.h>   /* tdm_shape */

#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/base/memory.h"
#include "runtime/base/text.h"

/* ---- safetensors ---- */

enum { TDM_ST_F32, TDM_ST_F64, TDM_ST_I64, TDM_ST_I32, TDM_ST_U8, TDM_ST_OTHER }; /* dtypes that tandem reads */

typedef struct tdm_tensor {
    const char *name;
    int dtype;           /* TDM_ST_* */
    char dtype_name[12]; /* as in the file: "F32", "BF16" */
    int ndim;
    int64_t dim[16];
    size_t bytes;
    const void *data;     /* to write; NULL when read from a file */
    uint64_t file_offset; /* of its first byte, when read from a file */
} tdm_tensor;

typedef struct tdm_tensor_file tdm_tensor_file;
/* Opens and checks the header by all rules of the format (no holes, overlaps, duplicates, overflows; bounded depth and
 * size) before anything is allocated for it. TDM_E_CHECKPOINT says what is wrong, with found and expected numbers. */
tdm_status tdm__tensor_file_open(tdm_tensor_file **out, const tdm_host *host, const tdm_folder *folder,
                                 const char *name);
int tdm__tensor_file_count(const tdm_tensor_file *file);
const tdm_tensor *tdm__tensor_file_get(const tdm_tensor_file *file, int index);         /* in order of offset */
const tdm_tensor *tdm__tensor_file_find(const tdm_tensor_file *file, const char *name); /* NULL if absent */
const char *tdm__tensor_file_metadata(const tdm_tensor_file *file, const char *key);    /* NULL if absent */
tdm_status tdm__tensor_file_read(const tdm_tensor_file *file, const tdm_tensor *tensor, void *to);
void tdm__tensor_file_close(tdm_tensor_file *file);

/* Writes a file (created, must not exist), fsynced. Tensors may come in any order; hashes[i] and *file_hash,
 * *file_bytes are filled when not NULL. metadata: NULL-terminated key, value, key, value. A number that is
 * infinite or NaN is TDM_E_NUMERIC, which names its tensor; no file is left. */
tdm_status tdm__tensor_file_write(const tdm_host *host, const tdm_folder *folder, const char *name,
                                  const tdm_tensor *tensors, int count, const char *const *metadata,
                                  tdm_hash128 *hashes, tdm_hash128 *file_hash, uint64_t *file_bytes);
/* That alone, of tensors which are not written. */
tdm_status tdm__tensors_finite(const tdm_tensor *tensors, int count);

/* ---- checkpoint directories ---- */

/* What a run needs beside tensors to go on. */
typedef struct tdm_ckpt_state {
    int64_t step;                 /* optimizer steps done */
    int64_t epoch, step_in_epoch; /* of the next step */
    int64_t samples;              /* seen by all replicas together */
    int64_t seed;
    double lr; /* schedules are recursive in lr (as PyTorch's): the value in force */
    int64_t schedule_step;
    char mode[8]; /* that saved it: information only */
    int replicas; /* that saved it: the sampler's order depends on it */
    int64_t per_device;
    char optimizer[16]; /* "adam" */
    char params_xxh3[TDM_HASH_TEXT];
    char data[160];   /* what its samples were: how many, and a hash of some; "" if that is not known */
    int64_t eval_due; /* 1: the run was stopped before the evaluation of its last step, which is still to be made */
} tdm_ckpt_state;

typedef struct tdm_ckpt_parts {
    const tdm_tensor *model; /* parameters and buffers, PyTorch's names and layouts */
    int model_count;
    const tdm_tensor *optimizer; /* exp_avg.<name>, ... */
    int optimizer_count;
    tdm_ckpt_state state;
    const char *config_yaml; /* resolved; NULL: none */
} tdm_ckpt_parts;

/* Writes step-%08d into the checkpoints directory `name`: temporary sibling, every file and directory fsynced, renamed,
 * `latest` updated, then all but the newest keep_last complete ones removed (0: keep all). TDM_E_IO leaves what was
 * there valid. The directory is created. An existing complete checkpoint of the same step is left as it is if its
 * manifest says the same hashes, else replaced. */
tdm_status tdm__ckpt_save(const tdm_host *host, const tdm_folder *folder, const char *name, const tdm_ckpt_parts *parts,
                          int64_t keep_last);

/* Removes what killed saves left in a checkpoints directory. Every save does that first; this is for who will not save.
 */
tdm_status tdm__ckpt_reap(const tdm_host *host, const tdm_folder *folder, const char *name);

/* Moves checkpoints of steps after `step` into before-<time> beside them, with a warning that says so: a run that
 * begins anew or further back must not be continued from them. */
tdm_status tdm__ckpt_set_aside(const tdm_host *host, const tdm_folder *folder, const char *name, int64_t step);

/* A checkpoint opened for reading: manifest parsed, files of the right size. */
typedef struct tdm_ckpt tdm_ckpt;
tdm_status tdm__ckpt_open(tdm_ckpt **out, const tdm_host *host, const tdm_folder *folder,
                          const char *name); /* the step-... directory */
/* The newest in a checkpoints directory whose every hash is right; damaged ones are passed over with a warning each
 * that names the file and the first damaged tensor. *out NULL with TDM_OK when there is no checkpoint at all;
 * TDM_E_CHECKPOINT when there are some and none is usable, TDM_E_IO when it is no folder. */
tdm_status tdm__ckpt_open_newest(tdm_ckpt **out, const tdm_host *host, const tdm_folder *folder, const char *name);
/* `path` as people give it: a step directory, a checkpoints directory, a run directory, or a .safetensors file; the
 * last gives a checkpoint with a model and no state. */
tdm_status tdm__ckpt_open_any(tdm_ckpt **out, const tdm_host *host, const char *path);
const tdm_ckpt_state *tdm__ckpt_state(const tdm_ckpt *ckpt); /* NULL without state */
const tdm_tensor_file *tdm__ckpt_model(const tdm_ckpt *ckpt);
const tdm_tensor_file *tdm__ckpt_optimizer(const tdm_ckpt *ckpt); /* NULL without state */
const char *tdm__ckpt_path(const tdm_ckpt *ckpt);
/* The configuration it was trained with; NULL if it has none. Borrowed from the checkpoint. */
tdm_status tdm__ckpt_config(tdm_ckpt *ckpt, const char **out);
void tdm__ckpt_close(tdm_ckpt *ckpt);

/* Every byte of a step directory against its manifest; TDM_E_CHECKPOINT names file and tensor. */
tdm_status tdm__ckpt_verify(const tdm_host *host, const tdm_folder *folder, const char *name);
/* Text (or JSON) for people: the list of a directory, one checkpoint's tensors. Two are compared by
 * tdm_checkpoint_compare (tandem/checkpoint.h). */
tdm_status tdm__ckpt_list(const tdm_host *host, const char *dir, bool json, tdm_text *out);
tdm_status tdm__ckpt_show(const tdm_host *host, const char *path, bool json, tdm_text *out);

#endif
