/* Checkpoint directories, for the files of this folder. ckpt.h is the interface for other folders. */
#ifndef TDM_CKPT_FOLDER_H
#define TDM_CKPT_FOLDER_H

#include "runtime/base/text/json_write.h"
#include "runtime/ckpt/ckpt.h"

#define TDM_CKPT_MANIFEST "MANIFEST.json"
/* The files of a checkpoint beside the manifest. A manifest that lists any other name is refused. */
enum {
    TDM_CKPT_MODEL,
    TDM_CKPT_OPTIMIZER,
    TDM_CKPT_AVERAGE,
    TDM_CKPT_COMPRESSION,
    TDM_CKPT_STATE,
    TDM_CKPT_CONFIG,
    TDM_CKPT_FILES
};
enum { TDM_CKPT_TENSORS = TDM_CKPT_STATE }; /* the first of them hold tensors */
extern const char *const tdm__ckpt_file_names[TDM_CKPT_FILES];

enum { TDM_CKPT_VERSION = 1, TDM_CKPT_MAX_STATE = 64 * 1024, TDM_CKPT_MAX_CONFIG = 1024 * 1024 };

typedef struct tdm_manifest_file {
    bool listed;
    uint64_t bytes;
    tdm_hash128 hash;
    tdm_hash128 *tensor_hash; /* in the order of the caller's tensors when writing, of the file's when reading */
} tdm_manifest_file;

typedef struct tdm_manifest {
    tdm_manifest_file file[TDM_CKPT_FILES];
} tdm_manifest;

/* The files of a checkpoint in memory, which is borrowed; the manifest behind the others. bytes NULL: there is no such
 * file. */
typedef struct tdm_ckpt_memory {
    struct {
        const char *bytes;
        uint64_t count;
    } file[TDM_CKPT_FILES + 1];
    char folder[32]; /* its name */
} tdm_ckpt_memory;

struct tdm_ckpt {
    const tdm_host *host;
    tdm_zone zone;
    const char *path;
    tdm_folder folder;             /* not open if the checkpoint is a single model file, or in memory */
    const tdm_ckpt_memory *memory; /* instead of the folder; in the zone */
    bool has_state;                /* it is a directory with manifest, optimizer and state */
    tdm_manifest manifest;
    tdm_tensor_file *tensors[TDM_CKPT_TENSORS]; /* NULL: the checkpoint does not have the file */
    tdm_ckpt_state state;
};

/* One file of a checkpoint, to be read. */
typedef struct tdm_ckpt_file {
    const tdm_host *host;
    int fd;             /* -1: it is in memory */
    const char *memory; /* borrowed */
    uint64_t bytes;
    const char *path; /* for messages */
} tdm_ckpt_file;
/* Opens file `part`, or the manifest, which is part TDM_CKPT_FILES. */
tdm_status tdm__ckpt_file_open(tdm_ckpt_file *out, tdm_ckpt *ckpt, int part);
tdm_status tdm__ckpt_file_read(const tdm_ckpt_file *file, void *to, size_t count, uint64_t offset);
tdm_status tdm__ckpt_file_hash(const tdm_ckpt_file *file, uint64_t from, uint64_t count, tdm_hash128 *out);
void tdm__ckpt_file_close(tdm_ckpt_file *file);

/* Reads an archive (archive.c). Its fields point into `bytes`. */
tdm_status tdm__archive_read(tdm_ckpt_memory *out, const void *bytes, size_t count);
bool tdm__archive_is(const void *bytes, size_t count);

/* MANIFEST.json; manifest.c has its format. `tensors` and `counts`: of each file of tensors. */
void tdm__manifest_print(tdm_text *out, const tdm_manifest *manifest, const tdm_tensor *const tensors[TDM_CKPT_TENSORS],
                         const int counts[TDM_CKPT_TENSORS]);
/* Reads it, and opens the tensor files that it lists. Their sizes must be those in the manifest. */
tdm_status tdm__manifest_read(tdm_ckpt *ckpt);

/* state.json, as an entry of a larger text. */
void tdm__state_print(tdm_json_out *to, const char *key, const tdm_ckpt_state *state);
tdm_status tdm__state_read(tdm_ckpt_state *state, const char *text, size_t bytes, const char *folder);

/* *out = <folder>/<name>, in the zone. */
tdm_status tdm__path_join(tdm_zone *zone, const char **out, const char *folder, const char *name);
/* The hash of `count` bytes of an open file. */
tdm_status tdm__file_hash(const tdm_host *host, int fd, const char *path, uint64_t from, uint64_t count,
                          tdm_hash128 *out);
bool tdm__hash_equal(tdm_hash128 a, tdm_hash128 b);

/* The steps in a checkpoints directory, newest first, whether complete or not. */
tdm_status tdm__steps_list(tdm_zone *zone, const tdm_folder *dir, int64_t **steps, size_t *count);
void tdm__step_name(char out[32], int64_t step); /* "step-00000391" */
/* Reads the step from a name. False unless the name is exactly what tdm__step_name makes of that step. */
bool tdm__step_of(const char *name, int64_t *step);
/* Is the user's path one checkpoint: a folder with such a name, or with a manifest in it? */
tdm_status tdm__is_step(tdm_zone *zone, const char *path, bool *out);
/* Opens a checkpoints directory by the user's path, which may also be the run directory around it. */
tdm_status tdm__steps_open(tdm_folder *out, tdm_zone *zone, const char *path);

/* ---- the files `latest` and `best` of a checkpoints directory: one line, the name of a step directory beside them
 * ---- */
bool tdm__is_pointer(const char *name);
/* Replaces the file, unless there is no checkpoint of this step: then the file stays. */
tdm_status tdm__pointer_set(const tdm_file_ops *ops, const tdm_folder *dir, const char *name, int64_t step);
tdm_status tdm__pointer_remove(const tdm_file_ops *ops, const tdm_folder *dir, const char *name);
/* If the user's path is such a file, *out is the path of the step directory that it names, in the zone; else NULL.
 * TDM_E_CHECKPOINT if it holds anything else. */
tdm_status tdm__pointer_follow(tdm_zone *zone, const char *path, const char **out);

#endif
