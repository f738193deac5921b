/* What the tests of checkpoints share: a small training state, files made by hand, and a host that remembers log lines
 * and counts memory. */
#ifndef TDM_CKPT_SUPPORT_H
#define TDM_CKPT_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/ckpt/folder.h"
#include "runtime/ckpt/tensor_file.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

int support_entries(const char *folder, const char *prefix); /* how many names start so */
bool support_exists(const char *folder, const char *name);

void support_write(const char *path, const void *bytes, size_t count);
/* malloc'ed, with a NUL behind; NULL if it cannot be read. */
char *support_read(const char *path, size_t *count);

/* A safetensors file: the length, `header`, `data_bytes` zero bytes. */
void support_tensor_file(const char *path, const char *header, size_t data_bytes);

/* Overwrites the first bytes of a tensor in its file. */
void support_patch(const char *path, const char *tensor, const void *bytes, size_t count);
/* A new MANIFEST.json with the hashes of what a step directory holds now: well-hashed, whatever it is. */
void support_reseal(const char *folder);

/* Six tensors and a state, all values made from `step`. */
typedef struct support_parts {
    float weight[6], bias[2], moment[6], moment_sq[6], scalar;
    int64_t batches;
    tdm_tensor model[4], optimizer[2];
    tdm_ckpt_parts parts;
} support_parts;
void support_parts_init(support_parts *p, int64_t step);
/* Does the checkpoint hold exactly the values of its step? */
bool support_holds(tdm_ckpt *ckpt, int64_t step);

/* The default host's memory, counted; log lines kept. */
typedef struct support_host {
    tdm_host host;
    size_t live, peak; /* bytes */
    char log[8192];
} support_host;
void support_host_init(support_host *host);

#endif
