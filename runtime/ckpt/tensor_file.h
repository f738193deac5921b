/* Tensor files (safetensors), for the files of this folder. ckpt.h is the interface for other folders. */
#ifndef TDM_CKPT_TENSOR_FILE_H
#define TDM_CKPT_TENSOR_FILE_H

#include <tandem/sys/optim.h>

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

/* How the tensors of a file of another kind are read (torch/torch_file.h, onnx_file.c). */
typedef struct tdm_tensor_source {
    tdm_status (*read)(const tdm_tensor_file *file, const tdm_tensor *tensor, void *to);
    void (*close)(tdm_tensor_file *file);
} tdm_tensor_source;

struct tdm_tensor_file {
    const tdm_host *host;
    tdm_zone zone; /* holds all arrays and texts below */
    const char *path;
    int fd;
    const char *memory;           /* the whole file, borrowed, instead of fd; NULL: it is read from fd */
    uint64_t bytes, header_bytes; /* of the file; of its JSON with padding. The data begins at 8 + header_bytes */
    int count;
    tdm_tensor *tensor;              /* sorted by offset */
    tdm_tensor_name *by_name;        /* sorted by hash, then name */
    bool is_tandems;                 /* its metadata has the key tandem.format */
    const tdm_tensor_source *source; /* NULL: safetensors */
    void *source_state;
    char *note[TDM_NOTES]; /* NULL: there is none */
    tdm_property *property;
    int property_count;
};

/* Makes one in which nothing is open. */
tdm_status tdm__tensor_file_new(tdm_tensor_file **out, const tdm_host *host, const char *path);
/* Opens a file, of which nothing has been read. */
tdm_status tdm__tensor_file_begin(tdm_tensor_file **out, const tdm_host *host, const tdm_folder *folder,
                                  const char *name);
/* Reads `count` bytes of the file. */
tdm_status tdm__tensor_file_take(const tdm_tensor_file *file, void *to, size_t count, uint64_t offset);
/* Reads and checks the header of an open file. Fills in tensor, by_name and is_tandems. */
tdm_status tdm__tensor_header_read(tdm_tensor_file *file);
/* Sorts by_name; TDM_E_CHECKPOINT if two names are equal. */
tdm_status tdm__tensor_file_index(tdm_tensor_file *file);
/* Opens an ONNX file (runtime/onnx/import.h); `memory`: it is there, and stays there until the close. */
tdm_status tdm__onnx_tensors_open(tdm_tensor_file **out, const tdm_host *host, const char *path, const void *memory,
                                  size_t count);
/* Writes the tensors into a new file of safetensors; the report says how many. */
tdm_status tdm__tensor_file_copy(const tdm_tensor_file *file, const char *to, tdm_text *report);
/* Removes every leading "module." from the names (files saved from torch's DataParallel or DistributedDataParallel
 * wrapper). *stripped is the number of names that had it. */
tdm_status tdm__tensor_file_strip(tdm_tensor_file *file, int *stripped);

/* A number from which no run can go on: infinite, NaN, or negative where it cannot be. */
typedef struct tdm_bad_number {
    const tdm_tensor *tensor; /* NULL: there is none */
    uint64_t at;              /* its index in the tensor */
    bool is_negative;
} tdm_bad_number;
/* The hash of the whole file. *bad is the first bad number of the first tensor, in order of offset, that has one.
 * `optim` (may be NULL) is the optimizer whose state the file is: it says which tensors are never negative. */
tdm_status tdm__tensor_file_hash(const tdm_tensor_file *file, const tdm_optim_def *optim, tdm_hash128 *out,
                                 tdm_bad_number *bad);
/* TDM_E_CHECKPOINT, with a message about the number, if there is one. */
tdm_status tdm__bad_number_fail(const tdm_tensor_file *file, const tdm_bad_number *bad);

/* An element type, by its name in a file. */
typedef struct tdm_dtype_row {
    char name[12];
    int dtype, bits;     /* TDM_ST_*; of an element, 0: unknown */
    tdm_float_form form; /* TDM_NOT_FLOAT for F8 and smaller, too: they are not checked */
} tdm_dtype_row;
const tdm_dtype_row *tdm__dtype_find(const char *name); /* never NULL */
const tdm_dtype_row *tdm__dtype_of(const tdm_tensor *tensor);
/* "F32 [64, 3, 3, 3]" */
void tdm__tensor_describe(const tdm_tensor *tensor, tdm_text *out);
/* A name for messages and tables: printable, and shortened with "..." if too long. */
const char *tdm__printable(char out[TDM_ST_PRINTABLE], const char *name);

#endif
