/* A hash table from the names in a file to numbers, so that thousands of names stay cheap to look up. */
#ifndef TDM_BASE_NAMES_H
#define TDM_BASE_NAMES_H

#include <stdint.h>

#include "runtime/base/memory.h"

typedef struct tdm_name {
    const char *text; /* borrowed; NULL: the entry is free */
    uint32_t hash;
    int number;
} tdm_name;

/* Empty when zeroed. All additions must use the same zone. */
typedef struct tdm_names {
    tdm_name *entry; /* open addressing */
    size_t entries, count;
    uint64_t seed;
} tdm_names;

/* The number that was added with this name; -1 if the name is not in the table. */
int tdm__names_find(const tdm_names *names, const char *text);
/* Adds a name that is not in the table yet, with a number of 0 or more. */
tdm_status tdm__names_add(tdm_names *names, tdm_zone *zone, const char *text, int number);

#endif
