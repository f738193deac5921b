/* XXH3 from libxxhash. */
#define XXH_STATIC_LINKING_ONLY /* the layout of XXH3_state_t, so that it can live in the host's memory */
#include "runtime/base/hash.h"

#include <stdio.h>
#include <xxhash.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"

struct tdm_hasher {
    XXH3_state_t state; /* must be aligned to 64 bytes; tdm__new aligns to TDM_ALIGN */
    const tdm_host *host;
};

static tdm_hash128 from_xxh(XXH128_hash_t hash) {
    return (tdm_hash128){hash.low64, hash.high64};
}

tdm_hash128 tdm__hash(const void *bytes, size_t count) {
    return from_xxh(XXH3_128bits(count == 0 ? "" : bytes, count));
}

uint64_t tdm__hash64(const void *bytes, size_t count, uint64_t seed) {
    return XXH3_64bits_withSeed(count == 0 ? "" : bytes, count, seed);
}

void tdm__hash_print(char out[TDM_HASH_TEXT], tdm_hash128 hash) {
    snprintf(out, TDM_HASH_TEXT, "%016llx%016llx", (unsigned long long)hash.high, (unsigned long long)hash.low);
}

tdm_status tdm__hash_open(tdm_hasher **out, const tdm_host *host) {
    tdm_hasher *hasher;
    *out = NULL;
    TDM_TRY(tdm__new(host, &hasher, 1, sizeof(*hasher), "hash state"));
    hasher->host = host;
    tdm__hash_restart(hasher);
    *out = hasher;
    return TDM_OK;
}

void tdm__hash_restart(tdm_hasher *hasher) {
    XXH3_128bits_reset(&hasher->state);
}

void tdm__hash_add(tdm_hasher *hasher, const void *bytes, size_t count) {
    if (count > 0) XXH3_128bits_update(&hasher->state, bytes, count);
}

tdm_hash128 tdm__hash_value(const tdm_hasher *hasher) {
    return from_xxh(XXH3_128bits_digest(&hasher->state));
}

void tdm__hash_close(tdm_hasher *hasher) {
    if (hasher != NULL) tdm__delete(hasher->host, hasher);
}
