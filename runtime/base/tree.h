/* The canonical tree: the order of an operation over ranks, or over replicas.
 *
 *   T(1) = r0, T(n) = T(the first p) op T(the last n - p), where p is the largest power of two below n
 *
 * Of five ranks: ((r0 + r1) + (r2 + r3)) + r4. Two things follow. An aligned block of a power of two of ranks is a
 * subtree, so hosts can form partial sums. And ranks at the end whose values change nothing may as well be left out. */
#ifndef TDM_BASE_TREE_H
#define TDM_BASE_TREE_H

#include "runtime/base/host_device.h"

/* The p of T(count), for a count of at least 2. */
static inline int tdm__tree_left(int count) {
    int left = 1;
    while (2 * left < count) left *= 2;
    return left;
}

/* The end of the largest subtree of T(count) that begins with rank `first` and ends at `end` at the latest. A subtree
 * is an aligned block of a power of two of ranks, of which the last one may have fewer. */
static inline int tdm__tree_block_end(int first, int end, int count) {
    int size = 1;
    while (size < count && first % (2 * size) == 0 && (first + 2 * size < count ? first + 2 * size : count) <= end)
        size *= 2;
    return first + size < count ? first + size : count;
}

/* T over `count` numbers, which are overwritten; 0 if there are none. */
static inline double tdm__tree_sum(double *x, int count) {
    for (int apart = 1; apart < count; apart *= 2)
        for (int i = 0; i + apart < count; i += 2 * apart) x[i] += x[i + apart];
    return count > 0 ? x[0] : 0;
}

/* ---- rank after rank ----
 *
 * The value of each rank joins subtrees that have been kept, on the right side of the one that was kept last. The sum
 * is kept as a new subtree; the last sum is T(count). */

/* How many subtrees the value of `rank` joins. */
TDM_HOST_DEVICE static inline int tdm__tree_joins(int rank, int count) {
    int joins = 0;
    for (int bits = rank; bits > 0 && (rank == count - 1 || bits % 2 == 1); bits /= 2) joins += bits % 2;
    return joins;
}

enum { TDM_TREE_ROOM = 8 }; /* of 256 ranks */

/* How many subtrees are kept at once, at most, before the last rank. */
static inline int tdm__tree_room(int count) {
    int room = 0;
    for (; count > 1; count /= 2) room++;
    return room;
}

#endif
