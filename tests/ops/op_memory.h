/* Memory of one run of a kernel: guard bytes around every block, NaN in it at first, and where the run is on a device a
 * twin of each block there, guards and all, that is sent before a pass and fetched after it. */
#ifndef TDM_TESTS_OP_MEMORY_H
#define TDM_TESTS_OP_MEMORY_H

#include <tandem/sys/device.h>

#include "tests/support/tdm_test.h"

enum { OP_GUARD = 64, OP_GUARD_BYTE = 0xA5, OP_DIRT = 0xFF, OP_MAX_BLOCKS = 64 }; /* floats of OP_DIRT are NaN */

typedef struct op_block {
    unsigned char *base, *twin;
    void *twin_memory;
    void *data;
    size_t bytes, whole;
    const char *what;
} op_block;

typedef struct op_memory {
    tdm_device *device; /* NULL: the host's memory is used itself */
    bool odd;           /* twins of arrays are no better aligned than their numbers have to be */
    op_block item[OP_MAX_BLOCKS];
    int count;
} op_memory;

static inline void *op_memory_new(op_memory *all, size_t bytes, const char *what) {
    size_t whole = (OP_GUARD + bytes + OP_GUARD + 63) / 64 * 64;
    op_block *b = &all->item[all->count++];
    *b = (op_block){.base = aligned_alloc(64, whole), .bytes = bytes, .whole = whole, .what = what};
    if (all->count == OP_MAX_BLOCKS || b->base == NULL) abort();
    memset(b->base, OP_GUARD_BYTE, whole);
    b->data = b->base + OP_GUARD;
    memset(b->data, OP_DIRT, bytes);
    if (all->device == NULL) return b->data;
    if (all->device->ops->allocate(all->device, &b->twin_memory, whole + OP_GUARD, what) != TDM_OK) abort();
    b->twin = b->twin_memory;
    return b->data;
}

/* `count` numbers of `size` bytes. */
static inline void *op_memory_numbers(op_memory *all, int64_t count, size_t size, const char *what) {
    void *numbers = op_memory_new(all, (size_t)count * size, what);
    op_block *b = &all->item[all->count - 1];
    if (all->odd && b->twin != NULL) b->twin += size;
    return numbers;
}

static inline float *op_memory_floats(op_memory *all, int64_t count, const char *what) {
    return op_memory_numbers(all, count, sizeof(float), what);
}

static inline void op_memory_check(const op_memory *all, const char *when) {
    for (int i = 0; i < all->count; i++) {
        const op_block *b = &all->item[i];
        for (size_t k = 0; k < OP_GUARD; k++) {
            if (b->base[k] == OP_GUARD_BYTE && b->base[OP_GUARD + b->bytes + k] == OP_GUARD_BYTE) continue;
            fprintf(stderr, "%s: wrote outside of %s\n", when, b->what);
            tdm_test_failures++;
            break;
        }
    }
}

static inline void op_memory_free(op_memory *all) {
    for (int i = 0; i < all->count; i++) {
        free(all->item[i].base);
        if (all->device != NULL) all->device->ops->release(all->device, all->item[i].twin_memory);
    }
    all->count = 0;
}

/* Where a kernel on the device finds what is `here`, the beginning of a block. */
static inline void *op_memory_there(const op_memory *all, const void *here) {
    if (here == NULL || all->device == NULL) return (void *)(uintptr_t)here;
    for (int i = 0; i < all->count; i++)
        if (all->item[i].data == here) return all->item[i].twin + OP_GUARD;
    abort();
}

static inline void op_memory_send(const op_memory *all) {
    for (int i = 0; i < all->count && all->device != NULL; i++)
        CHECK_OK(all->device->ops->queues->copy(all->device, NULL, all->item[i].twin, all->item[i].base,
                                                all->item[i].whole));
}

static inline void op_memory_fetch(const op_memory *all) {
    if (all->device == NULL) return;
    for (int i = 0; i < all->count; i++)
        CHECK_OK(all->device->ops->queues->copy(all->device, NULL, all->item[i].base, all->item[i].twin,
                                                all->item[i].whole));
    CHECK_OK(all->device->ops->queues->finish(all->device, NULL));
}

#endif
