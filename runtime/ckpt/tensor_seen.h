/* What the first pass over a safetensors header keeps of each tensor: a hash of its name, and its extent. That takes 32
 * bytes per tensor and is enough to find duplicate names, overlaps and holes. Hostile names cannot make it slow. */
#ifndef TDM_CKPT_TENSOR_SEEN_H
#define TDM_CKPT_TENSOR_SEEN_H

#include "runtime/ckpt/tensor_file.h"

typedef struct tdm_tensor_extent {
    uint64_t name_hash, begin, bytes; /* begin counts from the start of the data */
    uint32_t name_at;                 /* offset of the name's opening quote in the header */
} tdm_tensor_extent;

typedef struct tdm_tensor_seen {
    const tdm_host *host;
    uint64_t seed;
    tdm_tensor_extent *extent;
    size_t count;
    uint32_t *entry; /* index + 1 into extent; open addressing */
    size_t entry_mask;
    uint64_t last_end;
    bool in_order; /* each tensor begins where the one before it ends */
} tdm_tensor_seen;

tdm_status tdm__tensor_seen_open(tdm_tensor_seen *seen, const tdm_host *host, size_t room);
void tdm__tensor_seen_close(tdm_tensor_seen *seen);

/* Adds a name. False if it was added before, or if it cannot be compared because the file cannot be read again. */
bool tdm__tensor_seen_name(tdm_tensor_seen *seen, const tdm_tensor_file *file, const char *name, size_t length,
                           uint32_t name_at);
/* Sets the extent of the tensor whose name was added last. */
void tdm__tensor_seen_extent(tdm_tensor_seen *seen, uint64_t begin, uint64_t bytes);
/* Checks that the tensors cover the data from 0 to its end, each byte once. Sorts them by offset if necessary. */
tdm_status tdm__tensor_seen_covers(tdm_tensor_seen *seen, const tdm_tensor_file *file, uint64_t data_bytes);

#endif
