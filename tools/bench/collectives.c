/* collectives.c - see collectives.h. The root is rank 0. */
#include "tools/bench/collectives.h"

#include <string.h>

/* ---- calls ---- */

static tdm_span whole(float *array, const comm_arrays *a) {
    return (tdm_span){array, a->count, TDM_DTYPE_F32};
}

static tdm_span part(float *array, const comm_arrays *a) {
    return (tdm_span){array, a->part, TDM_DTYPE_F32};
}

static tdm_status all_reduce(const comm_arrays *a) {
    return tdm_comm_all_reduce(a->comm, whole(a->first, a), TDM_REDUCE_SUM);
}

static tdm_status reduce(const comm_arrays *a) {
    return tdm_comm_reduce(a->comm, whole(a->first, a), 0, TDM_REDUCE_SUM);
}

static tdm_status broadcast(const comm_arrays *a) {
    return tdm_comm_broadcast(a->comm, whole(a->first, a), 0);
}

static tdm_status all_gather(const comm_arrays *a) {
    return tdm_comm_all_gather(a->comm, part(a->second, a), whole(a->first, a));
}

static tdm_status gather(const comm_arrays *a) {
    return tdm_comm_gather(a->comm, part(a->second, a), whole(a->first, a), 0);
}

static tdm_status scatter(const comm_arrays *a) {
    return tdm_comm_scatter(a->comm, whole(a->first, a), part(a->second, a), 0);
}

static tdm_status reduce_scatter(const comm_arrays *a) {
    return tdm_comm_reduce_scatter(a->comm, whole(a->first, a), part(a->second, a), TDM_REDUCE_SUM);
}

static tdm_status all_to_all(const comm_arrays *a) {
    return tdm_comm_all_to_all(a->comm, whole(a->first, a), whole(a->second, a));
}

/* ---- what goes in, what comes out ---- */

static float input(size_t i, size_t rank) {
    return (float)(i % 13 + rank);
}

static float own(const comm_arrays *a, size_t i) {
    return input(i, (size_t)tdm_comm_rank(a->comm));
}

static float of_root(const comm_arrays *a, size_t i) {
    (void)a;
    return input(i, 0);
}

static float sum(const comm_arrays *a, size_t i) {
    const size_t world = (size_t)tdm_comm_world(a->comm);
    return (float)(i % 13 * world + world * (world - 1) / 2);
}

static float sum_at_root(const comm_arrays *a, size_t i) {
    return tdm_comm_rank(a->comm) == 0 ? sum(a, i) : own(a, i);
}

/* The first part of each rank, in rank order. */
static float gathered(const comm_arrays *a, size_t i) {
    return input(i % a->part, i / a->part);
}

static float gathered_at_root(const comm_arrays *a, size_t i) {
    return tdm_comm_rank(a->comm) == 0 ? gathered(a, i) : own(a, i);
}

/* Element i of this rank's part. */
static size_t in_part(const comm_arrays *a, size_t i) {
    return (size_t)tdm_comm_rank(a->comm) * a->part + i;
}

static float part_of_root(const comm_arrays *a, size_t i) {
    return input(in_part(a, i), 0);
}

static float part_of_sum(const comm_arrays *a, size_t i) {
    return sum(a, in_part(a, i));
}

/* This rank's part of each rank, in rank order. */
static float exchanged(const comm_arrays *a, size_t i) {
    return input(in_part(a, i % a->part), i / a->part);
}

static const collective collectives[] = {
    {"all_reduce", "sum", false, 2, all_reduce, false, false, sum},
    {"reduce", "sum", false, 0, reduce, false, false, sum_at_root},
    {"broadcast", "none", false, 0, broadcast, false, false, of_root},
    {"all_gather", "none", true, 1, all_gather, false, false, gathered},
    {"gather", "none", true, 1, gather, false, false, gathered_at_root},
    {"scatter", "none", true, 1, scatter, true, true, part_of_root},
    {"reduce_scatter", "sum", true, 1, reduce_scatter, true, true, part_of_sum},
    {"all_to_all", "none", true, 1, all_to_all, true, false, exchanged},
};

const collective *collective_named(const char *name) {
    for (size_t i = 0; i < sizeof collectives / sizeof collectives[0]; i++) {
        if (strcmp(collectives[i].name, name) == 0) return &collectives[i];
    }
    return NULL;
}

void collective_fill(const comm_arrays *a) {
    for (size_t i = 0; i < a->count; i++) a->first[i] = a->second[i] = own(a, i);
}

int64_t collective_wrong(const collective *c, const comm_arrays *a) {
    const float *result = c->is_second ? a->second : a->first;
    const size_t count = c->is_part ? a->part : a->count;
    int64_t wrong = 0;
    for (size_t i = 0; i < count; i++) wrong += result[i] != c->expected(a, i);
    return wrong;
}
