/* XXH3 content hashes (xxHash), as numbers and as the hex text of files. */
#ifndef TDM_BASE_HASH_H
#define TDM_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/host.h>

typedef struct tdm_hash128 {
    uint64_t low, high;
} tdm_hash128;

enum { TDM_HASH_TEXT = 33 }; /* 32 hex digits, high word first, and a NUL */

tdm_hash128 tdm__hash(const void *bytes, size_t count);
uint64_t tdm__hash64(const void *bytes, size_t count, uint64_t seed);
void tdm__hash_print(char out[TDM_HASH_TEXT], tdm_hash128 hash);

/* Streaming: open, add any number of times, value, close. */
typedef struct tdm_hasher tdm_hasher;
tdm_status tdm__hash_open(tdm_hasher **out, const tdm_host *host);
void tdm__hash_restart(tdm_hasher *hasher); /* begins a new hash */
void tdm__hash_add(tdm_hasher *hasher, const void *bytes, size_t count);
tdm_hash128 tdm__hash_value(const tdm_hasher *hasher);
void tdm__hash_close(tdm_hasher *hasher);

#endif
