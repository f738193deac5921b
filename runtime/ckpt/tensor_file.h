/* Tensor files (safetensors), for the files of this folder. ckpt.h is the interface for other folders. */
#ifndef TDM_CKPT_TENSOR_FILE_H
#define TDM_CKPT_TENSOR_FILE_H

#include "runtime/base/finite.h"
#include "runtime/ckpt/ckpt.h"

/* Limits for reading. A file beyond one of them is refused with both numbers. */
enum {
    TDM_ST_MAX_HEADER = 8 * 1000 * 1000,
    TDM_ST_MAX_TENSORS = 50 * 1000,
    TDM_ST_MAX_NAME = 1024,
    TDM_ST_MAX_RANK = 16,
    TDM_ST_MAX_METADATA = 1024 * 1024,
    TDM_ST_MAX_METADATA_KEYS = 4096,
    TDM_ST_ALIGN = 64, /* in files that tandem writes, the data begins at a multiple of this */
    TDM_ST_DEPTH = 4,
    TDM_ST_PRINTABLE = 96
};

/* An entry of the index of names. It is sorted by hash, because names with a long common prefix are slow to compare. */
typedef struct tdm_tensor_name {
    uint64_t hash;
    const tdm_tensor *tensor;
} tdm_tensor_name;

struct tdm_tensor_file {
    const tdm_host *host;
    tdm_arena arena; /* holds all arrays and texts below */
    const char *path;
    int fd;
    uint64_t bytes, header_bytes; /* of the file; of its JSON with padding. The data begins at 8 + header_bytes */
    int count;
    tdm_tensor *tensor;       /* sorted by offset */
    tdm_tensor_name *by_name; /* sorted by hash, then name */
    int metadata_count;
    const char *(*metadata)[2]; /* key, value; sorted by key */
};

/* Reads and checks the header of an open file. Fills in tensor, by_name and metadata. */
tdm_status tdm__tensor_header_read(tdm_tensor_file *file);
/* Sorts by_name; TDM_E_CHECKPOINT if two names are equal. */
tdm_status tdm__tensor_file_index(tdm_tensor_file *file);
/* Removes every leading "module." from the names (files saved from torch's DataParallel or DistributedDataParallel
 * wrapper). *stripped is the number of names that had it. */
tdm_status tdm__tensor_file_strip(tdm_tensor_file *file, int *stripped);
/* Reads `count` bytes of a tensor, beginning at its byte `from`. */
tdm_status tdm__tensor_file_read_part(const tdm_tensor_file *file, const tdm_tensor *tensor, uint64_t from,
                                      size_t count, void *to);

/* The hash of the whole file. *bad is the first tensor, in order of offset, with a number that is infinite or NaN, and
 * *at the index of that number; *bad is NULL if there is none. */
tdm_status tdm__tensor_file_hash(const tdm_tensor_file *file, tdm_hash128 *out, const tdm_tensor **bad, uint64_t *at);
/* Fails with TDM_E_CHECKPOINT and a message about such a tensor. */
tdm_status tdm__tensor_not_finite(const tdm_tensor_file *file, const tdm_tensor *tensor, uint64_t at);

/* Bits of an element of the type with this name in the file; 0: unknown. *dtype is TDM_ST_*. */
int tdm__dtype_bits(const char *name, int *dtype);
const char *tdm__dtype_name(int dtype);           /* "F32"; NULL for TDM_ST_OTHER */
tdm_float_form tdm__dtype_form(const char *name); /* TDM_NOT_FLOAT for F8 and smaller, which are not checked */
/* "F32 [64, 3, 3, 3]" */
void tdm__tensor_describe(const tdm_tensor *tensor, tdm_text *out);
/* A name for messages and tables: printable, and shortened with "..." if too long. */
const char *tdm__printable(char out[TDM_ST_PRINTABLE], const char *name);

tdm_status tdm__tensor_file_write_with(const tdm_host *host, const tdm_file_ops *ops, const tdm_folder *folder,
                                       const char *name, const tdm_tensor *tensors, int count,
                                       const char *const *metadata, tdm_hash128 *hashes, tdm_hash128 *file_hash,
                                       uint64_t *file_bytes);

#endif
