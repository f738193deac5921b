/* Typed reductions over the buffers of several ranks, as the canonical tree (base/tree.h).
 *
 * Integers wrap. The minimum and maximum of floats are NaN if any source is. Floats of 16 bits are computed with as
 * floats through the whole tree, and rounded once. An average is the sum divided by the number of ranks, before
 * rounding; only of floats. Bits: only of integers. */
#ifndef TDM_COMM_REDUCE_H
#define TDM_COMM_REDUCE_H

#include <tandem/sys/comm.h>

/* Bytes of a block of a reduction: it stays in the first-level cache together with a few sources. */
enum { TDM_REDUCE_BLOCK = 4096 };

/* to[i] = T over source[0][i], source[1][i], ... `to` is one of the sources, or overlaps none. */
void tdm__reduce_sources(void *to, const void *const *source, int sources, size_t count, tdm_dtype dtype,
                         tdm_reduce_op op);
/* The value of a subtree, for tdm__reduce_subtrees: of 16 bits it is floats, which are not rounded; of an average,
 * which must not come here, a sum. `to` overlaps no source. */
void tdm__reduce_partials(void *to, const void *const *source, int sources, size_t count, tdm_dtype dtype,
                          tdm_reduce_op op);
static inline tdm_dtype tdm__partial_dtype(tdm_dtype dtype) {
    return dtype == TDM_DTYPE_BF16 || dtype == TDM_DTYPE_F16 ? TDM_DTYPE_F32 : dtype;
}
/* As tdm__reduce_sources of `ranks` ranks, of which source i has the value of a subtree: that of the ranks from rank[i]
 * on, to the next one's first (tdm__tree_block_end). `to` may be one of the sources, unless it is of 16 bits. */
void tdm__reduce_subtrees(void *to, const void *const *source, const int *rank, int sources, int ranks, size_t count,
                          tdm_dtype dtype, tdm_reduce_op op);

#endif
