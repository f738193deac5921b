/* What the first pass over a safetensors header remembers of each tensor: a hash of its name and its place. 32 bytes a
 * tensor, and enough to find names that are there twice, overlaps and holes, in time that hostile names cannot stretch.
 */
#ifndef TDM_CKPT_TENSOR_SEEN_H
#define TDM_CKPT_TENSOR_SEEN_H

#include "runtime/ckpt/tensor_file.h"

typedef struct tdm_tensor_place {
    uint64_t name_hash, begin, bytes; /* begin counts from the start of the data */
    uint32_t name_at;                 /* where its name begins in the header, quote included */
} tdm_tensor_place;

typedef struct tdm_tensor_seen {
    const tdm_host *host;
    uint64_t seed;
    tdm_tensor_place *place;
    size_t count;
    uint32_t *slot; /* index + 1 into place; open addressing */
    size_t slot_mask;
    uint64_t last_end;
    bool in_order; /* each tensor begins where the one before it ends */
} tdm_tensor_seen;

tdm_status tdm__tensor_seen_open(tdm_tensor_seen *seen, const tdm_host *host, size_t room);
void tdm__tensor_seen_close(tdm_tensor_seen *seen);

/* Remembers a name; false if it was there before, or cannot be compared because the file cannot be read again. */
bool tdm__tensor_seen_name(tdm_tensor_seen *seen, const tdm_tensor_file *file, const char *name, size_t length,
                           uint32_t name_at);
/* The place of the tensor whose name was added last. */
void tdm__tensor_seen_place(tdm_tensor_seen *seen, uint64_t begin, uint64_t bytes);
/* Do the tensors cover the data from 0 to its end, each byte once? Sorts them by place if need be. */
tdm_status tdm__tensor_seen_covers(tdm_tensor_seen *seen, const tdm_tensor_file *file, uint64_t data_bytes);

#endif
