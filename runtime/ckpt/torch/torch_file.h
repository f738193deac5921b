/* PyTorch's files (.pt, .pth): a zip archive of a pickle, which describes tensors, and of their storages. The pickle is
 * a program; it is not run. A reader follows it through a closed list of instructions and of names, in a process
 * without rights. For the files of this folder, and for its fuzz target. */
#ifndef TDM_CKPT_TORCH_FILE_H
#define TDM_CKPT_TORCH_FILE_H

#include "runtime/ckpt/tensor_file.h"
#include "runtime/ckpt/torch/zip.h"

enum {
    TDM_TORCH_PICKLE = 64 * 1024 * 1024, /* bytes */
    TDM_TORCH_VALUES = 4 * 1024 * 1024,  /* that a pickle makes */
    TDM_TORCH_DEPTH = 16,                /* of nested dictionaries */
    TDM_TORCH_WHY = TDM_ZIP_WHY
};

/* A tensor as the pickle describes it, and where its storage is. Plain data: it is sent from one process to another. */
typedef struct tdm_torch_tensor {
    char name[TDM_ST_MAX_NAME + 1];
    char dtype[8]; /* safetensors' name */
    int ndim;
    int64_t dim[TDM_ST_MAX_RANK], stride[TDM_ST_MAX_RANK], offset; /* in elements of the storage */
    char key[64];                                                  /* of the storage */
    int64_t numel;                                                 /* of the storage */
    tdm_zip_data data;                                             /* of the storage */
} tdm_torch_tensor;

typedef struct tdm_torch_list {
    const tdm_host *host;
    tdm_torch_tensor *tensor;
    size_t count, room;
    int left_out; /* entries of the dictionary that are no tensors */
} tdm_torch_list;

/* Follows the pickle and lists the tensors of its dictionary, or of the dictionary `key` in it (NULL: "state_dict",
 * "model", or the only one). */
bool tdm__pickle_read(tdm_torch_list *out, const uint8_t *bytes, size_t count, const char *key,
                      char why[TDM_TORCH_WHY]);

/* Both, on an open file: what the confined process does. The list's memory is the host's. */
bool tdm__torch_describe(tdm_torch_list *out, const tdm_zip_file *file, const char *key, char why[TDM_TORCH_WHY]);

/* What that process answers. Nothing in it is checked but its length, and that texts end. */
typedef struct tdm_torch_answer {
    void *bytes;              /* the caller's, to be freed with tdm__delete */
    tdm_torch_tensor *tensor; /* in `bytes` */
    size_t count;             /* at least 1 */
    int left_out;
} tdm_torch_answer;
tdm_status tdm__torch_ask(tdm_torch_answer *out, const tdm_zip_file *file, const char *path, const char *key);

/* The storage types of PyTorch: "FloatStorage", "F32", 4 bytes; NULL behind the last. */
typedef struct tdm_torch_type {
    const char *storage, *dtype;
    int bytes;
} tdm_torch_type;
extern const tdm_torch_type tdm__torch_types[];

/* A .pt file as a file of tensors, in the order of its dictionary. Their numbers are read one storage at a time. */
tdm_status tdm__torch_open(tdm_tensor_file **out, const tdm_host *host, const char *path, const char *key);
/* By its first bytes, or its name where they are not those of a .safetensors file. */
tdm_status tdm__torch_is(bool *out, const char *path);
bool tdm__torch_named(const char *path);              /* .pt, .pth */
int tdm__torch_left_out(const tdm_tensor_file *file); /* entries that are no tensors */

/* A .pt file into a .safetensors file, and a file of tensors into a .pt file; `to` must not exist yet. */
tdm_status tdm__torch_convert(const tdm_host *host, const char *from, const char *to, const char *key,
                              tdm_text *report);
tdm_status tdm__torch_write(const tdm_host *host, const tdm_tensor_file *from, const char *to, tdm_text *report);

#endif
