/* Names of a file, found again without comparing each with all: thousands of them cost what they should. */
#ifndef TDM_BASE_NAMES_H
#define TDM_BASE_NAMES_H

#include <stdint.h>

#include "runtime/base/memory.h"

typedef struct tdm_name {
    const char *text; /* borrowed; NULL: a free slot */
    uint32_t hash;
    int number;
} tdm_name;

/* Empty when zeroed. All additions take the same arena. */
typedef struct tdm_names {
    tdm_name *slot; /* open addressing */
    size_t slots, count;
    uint64_t seed;
} tdm_names;

/* The number that was added with this name, 0 or more; -1 if there is none. */
int tdm__names_find(const tdm_names *names, const char *text);
/* A name that is not in it yet. */
tdm_status tdm__names_add(tdm_names *names, tdm_arena *arena, const char *text, int number);

#endif
