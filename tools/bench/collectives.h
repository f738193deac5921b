/* collectives.h - the collectives that `tandem bench` measures: what they are called with, and what must come out. */
#ifndef COLLECTIVES_H
#define COLLECTIVES_H

#include <tandem/comm.h>

#include "tools/bench/bench.h"

/* Two arrays on each rank, of a part for each rank where the collective divides them. */
typedef struct comm_arrays {
    tdm_comm *comm;
    float *first, *second;
    size_t count, part; /* elements: of an array, of one rank's part */
} comm_arrays;

typedef struct collective {
    const char *name, *op; /* op: "sum", "none" */
    bool divides;          /* an array has a part for each rank */
    int crossings;         /* busbw is algbw * crossings * (n-1)/n; 0: algbw itself. As in nccl-tests. */
    tdm_status (*call)(const comm_arrays *a);
    bool is_second, is_part; /* where the result is: in the second array; only one part of it */
    float (*expected)(const comm_arrays *a, size_t i);
} collective;

/* NULL: there is none of this name. */
const collective *collective_named(const char *name);

/* The arrays before a call: small whole numbers, so that every sum is exact. */
void collective_fill(const comm_arrays *a);
/* Elements of the result, after one call behind collective_fill, that are not as expected. */
int64_t collective_wrong(const collective *c, const comm_arrays *a);

#endif
