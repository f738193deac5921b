/* The loops of every reduction. The order of operations is part of the result: every element is reduced as the
 * canonical tree (base/tree.h). So the bits do not depend on how the elements are cut into segments, chunks or blocks.
 *
 * The tree is walked once for each block: up to four sources take one pass, and what further ones add to stays in the
 * cache. */
#include "runtime/comm/reduce.h"

#include <string.h>

#include "runtime/base/bf16.h"
#include "runtime/base/f16.h"
#include "runtime/base/tree.h"

/* If either side is NaN the result is NaN, so that a minimum over ranks does not hide a NaN. */
#define SUM(a, b) ((a) + (b))
#define PRODUCT(a, b) ((a) * (b))
#define MIN_FLOAT(a, b) ((((b) < (a)) | ((b) != (b))) ? (b) : (a))
#define MAX_FLOAT(a, b) ((((b) > (a)) | ((b) != (b))) ? (b) : (a))
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((b) > (a) ? (b) : (a))
#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
#define XOR(a, b) ((a) ^ (b))
#define SAME(x) (x)

/* What a pass over sources 0, 1, ... does, from their element `first` on. */
typedef enum pass {
    ONE,       /* to = a */
    TWO,       /* to = a op b */
    FOUR,      /* to = (a op b) op (c op d) */
    ONTO_ONE,  /* to = to op a */
    ONTO_FOUR, /* to = to op ((a op b) op (c op d)) */
} pass;

/* `partial` is the type of the result, `through` the one that is computed in: unsigned for sums and products of
 * integers, so that overflow wraps. */
#define REDUCTION(name, type, partial, through, load, op)                                                     \
    static void name(pass which, void *restrict to_, const void *const *source, size_t first, size_t count) { \
        const type *a = (const type *)source[0] + first, *b, *c, *d;                                          \
        partial *restrict to = to_;                                                                           \
        if (which == ONE) {                                                                                   \
            for (size_t i = 0; i < count; i++) to[i] = (partial)load(a[i]);                                   \
            return;                                                                                           \
        }                                                                                                     \
        if (which == ONTO_ONE) {                                                                              \
            for (size_t i = 0; i < count; i++) {                                                              \
                const through x = (through)to[i], y = (through)load(a[i]);                                    \
                to[i] = (partial)op(x, y);                                                                    \
            }                                                                                                 \
            return;                                                                                           \
        }                                                                                                     \
        b = (const type *)source[1] + first;                                                                  \
        if (which == TWO) {                                                                                   \
            for (size_t i = 0; i < count; i++) {                                                              \
                const through x = (through)load(a[i]), y = (through)load(b[i]);                               \
                to[i] = (partial)op(x, y);                                                                    \
            }                                                                                                 \
            return;                                                                                           \
        }                                                                                                     \
        c = (const type *)source[2] + first, d = (const type *)source[3] + first;                             \
        if (which == FOUR) {                                                                                  \
            for (size_t i = 0; i < count; i++) {                                                              \
                const through x = (through)load(a[i]), y = (through)load(b[i]), left = (through)op(x, y);     \
                const through z = (through)load(c[i]), w = (through)load(d[i]), right = (through)op(z, w);    \
                to[i] = (partial)op(left, right);                                                             \
            }                                                                                                 \
            return;                                                                                           \
        }                                                                                                     \
        for (size_t i = 0; i < count; i++) {                                                                  \
            const through x = (through)load(a[i]), y = (through)load(b[i]), left = (through)op(x, y);         \
            const through z = (through)load(c[i]), w = (through)load(d[i]), right = (through)op(z, w);        \
            const through before = (through)to[i], all = (through)op(left, right);                            \
            to[i] = (partial)op(before, all);                                                                 \
        }                                                                                                     \
    }
#define PLAIN(name, type, through, op) REDUCTION(name, type, type, through, SAME, op)
#define NARROW(name, widen, op) REDUCTION(name, uint16_t, float, float, widen, op)

PLAIN(sum_f32, float, float, SUM)
PLAIN(product_f32, float, float, PRODUCT)
PLAIN(min_f32, float, float, MIN_FLOAT)
PLAIN(max_f32, float, float, MAX_FLOAT)
PLAIN(sum_f64, double, double, SUM)
PLAIN(product_f64, double, double, PRODUCT)
PLAIN(min_f64, double, double, MIN_FLOAT)
PLAIN(max_f64, double, double, MAX_FLOAT)
PLAIN(sum_i32, int32_t, uint32_t, SUM)
PLAIN(product_i32, int32_t, uint32_t, PRODUCT)
PLAIN(min_i32, int32_t, int32_t, MIN)
PLAIN(max_i32, int32_t, int32_t, MAX)
PLAIN(sum_i64, int64_t, uint64_t, SUM)
PLAIN(product_i64, int64_t, uint64_t, PRODUCT)
PLAIN(min_i64, int64_t, int64_t, MIN)
PLAIN(max_i64, int64_t, int64_t, MAX)
PLAIN(sum_u8, uint8_t, uint32_t, SUM)
PLAIN(product_u8, uint8_t, uint32_t, PRODUCT)
PLAIN(min_u8, uint8_t, uint8_t, MIN)
PLAIN(max_u8, uint8_t, uint8_t, MAX)

PLAIN(band_32, uint32_t, uint32_t, AND)
PLAIN(bor_32, uint32_t, uint32_t, OR)
PLAIN(bxor_32, uint32_t, uint32_t, XOR)
PLAIN(band_64, uint64_t, uint64_t, AND)
PLAIN(bor_64, uint64_t, uint64_t, OR)
PLAIN(bxor_64, uint64_t, uint64_t, XOR)
PLAIN(band_8, uint8_t, uint8_t, AND)
PLAIN(bor_8, uint8_t, uint8_t, OR)
PLAIN(bxor_8, uint8_t, uint8_t, XOR)

NARROW(sum_bf16, tdm__bf16_float, SUM)
NARROW(product_bf16, tdm__bf16_float, PRODUCT)
NARROW(min_bf16, tdm__bf16_float, MIN_FLOAT)
NARROW(max_bf16, tdm__bf16_float, MAX_FLOAT)
NARROW(sum_f16, tdm__f16_float, SUM)
NARROW(product_f16, tdm__f16_float, PRODUCT)
NARROW(min_f16, tdm__f16_float, MIN_FLOAT)
NARROW(max_f16, tdm__f16_float, MAX_FLOAT)

typedef void reduction(pass which, void *restrict to, const void *const *source, size_t first, size_t count);

/* In the order of tdm_reduce_op. An average is a sum until the end. Averages of integers and bits of floats are refused
 * before they come here. */
static reduction *const reductions[TDM_DTYPE_COUNT][TDM_REDUCE_OPS] = {
    [TDM_DTYPE_F32] = {sum_f32, product_f32, min_f32, max_f32, sum_f32},
    [TDM_DTYPE_F64] = {sum_f64, product_f64, min_f64, max_f64, sum_f64},
    [TDM_DTYPE_I32] = {sum_i32, product_i32, min_i32, max_i32, NULL, band_32, bor_32, bxor_32},
    [TDM_DTYPE_I64] = {sum_i64, product_i64, min_i64, max_i64, NULL, band_64, bor_64, bxor_64},
    [TDM_DTYPE_U8] = {sum_u8, product_u8, min_u8, max_u8, NULL, band_8, bor_8, bxor_8},
    [TDM_DTYPE_BF16] = {sum_bf16, product_bf16, min_bf16, max_bf16, sum_bf16},
    [TDM_DTYPE_F16] = {sum_f16, product_f16, min_f16, max_f16, sum_f16},
};

/* ---- a block ---- */

typedef struct typed_reduction {
    tdm_dtype dtype, partial;
    tdm_reduce_op op;
    reduction *of_sources, *of_partials;
    size_t block; /* elements */
} typed_reduction;

static typed_reduction find_reduction(tdm_dtype dtype, tdm_reduce_op op) {
    const tdm_dtype partial = tdm__partial_dtype(dtype);
    return (typed_reduction){dtype,
                             partial,
                             op,
                             reductions[dtype][op],
                             reductions[partial][op],
                             TDM_REDUCE_BLOCK / tdm_dtype_bytes(partial)};
}

/* Elements first to first + count - 1 of T over up to four sources: a block at most. */
static void reduce_few(const typed_reduction *by, void *to, const void *const *source, int sources, size_t first,
                       size_t count) {
    static const pass passes[] = {ONE, TWO, TWO, FOUR};
    by->of_sources(passes[sources - 1], to, source, first, count);
    if (sources == 3) by->of_sources(ONTO_ONE, to, source + 2, first, count);
}

/* Of any number. */
static void reduce_tree(const typed_reduction *by, void *to, const void *const *source, int sources, size_t first,
                        size_t count) {
    if (sources <= 4) {
        reduce_few(by, to, source, sources, first, count);
        return;
    }
    const int left = tdm__tree_left(sources), right = sources - left;
    reduce_tree(by, to, source, left, first, count);
    if (right == 1 || right == 4) {
        by->of_sources(right == 1 ? ONTO_ONE : ONTO_FOUR, to, source + left, first, count);
    } else {
        _Alignas(64) unsigned char room[TDM_REDUCE_BLOCK];
        const void *rest = room;
        reduce_tree(by, room, source + left, right, first, count);
        by->of_partials(ONTO_ONE, to, &rest, 0, count);
    }
}

/* Of subtrees: source i is that of the ranks from rank[i] on, and all together have `ranks`. */
static void reduce_subtrees(const typed_reduction *by, void *to, const void *const *source, const int *rank,
                            int sources, int ranks, size_t first, size_t count) {
    int left = 0;
    if (sources == 1) {
        by->of_sources(ONE, to, source, first, count);
        return;
    }
    while (left < sources && rank[left] - rank[0] < tdm__tree_left(ranks)) left++;
    reduce_subtrees(by, to, source, rank, left, tdm__tree_left(ranks), first, count);
    if (sources - left == 1) {
        by->of_sources(ONTO_ONE, to, source + left, first, count);
    } else {
        _Alignas(64) unsigned char room[TDM_REDUCE_BLOCK];
        const void *rest = room;
        reduce_subtrees(by, room, source + left, rank + left, sources - left, ranks - tdm__tree_left(ranks), first,
                        count);
        by->of_partials(ONTO_ONE, to, &rest, 0, count);
    }
}

static void divide(void *x, size_t count, tdm_dtype dtype, int divisor) {
    if (dtype == TDM_DTYPE_F64)
        for (size_t i = 0; i < count; i++) ((double *)x)[i] /= (double)divisor;
    else
        for (size_t i = 0; i < count; i++) ((float *)x)[i] /= (float)divisor;
}

/* Elements `first` on of the result, from a block of partial values, which is overwritten. */
static void put_result(const typed_reduction *by, void *to, void *block, int world, size_t first, size_t count) {
    const size_t width = tdm_dtype_bytes(by->dtype);
    if (by->op == TDM_REDUCE_AVG) divide(block, count, by->partial, world);
    if (by->dtype == TDM_DTYPE_BF16)
        for (size_t i = 0; i < count; i++) ((uint16_t *)to)[first + i] = tdm__bf16_of(((const float *)block)[i]);
    else if (by->dtype == TDM_DTYPE_F16)
        for (size_t i = 0; i < count; i++) ((uint16_t *)to)[first + i] = tdm__f16_of(((const float *)block)[i]);
    else
        memcpy((unsigned char *)to + first * width, block, count * width);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Partial values, which of most types and operators are results. */
static void reduce_partial(const typed_reduction *by, unsigned char *to, const void *const *source, int sources,
                           size_t count) {
    for (size_t first = 0; first < count; first += by->block, to += TDM_REDUCE_BLOCK)
        reduce_tree(by, to, source, sources, first, least(count - first, by->block));
}

static bool is_source(const void *to, const void *const *source, int sources) {
    int r = 0;
    while (r < sources && source[r] != to) r++;
    return r < sources;
}

/* Where the result replaces a source, a block of it is made elsewhere: the tree may write before it reads that source. */
void tdm__reduce_sources(void *to, const void *const *source, int sources, size_t count, tdm_dtype dtype,
                         tdm_reduce_op op) {
    if (count == 0) return;
    if (sources == 1) {
        memmove(to, source[0], count * tdm_dtype_bytes(dtype));
        return;
    }
    const typed_reduction by = find_reduction(dtype, op);
    if (by.partial == dtype && op != TDM_REDUCE_AVG && !is_source(to, source, sources)) {
        reduce_partial(&by, to, source, sources, count);
        return;
    }
    _Alignas(64) unsigned char room[TDM_REDUCE_BLOCK];
    for (size_t first = 0; first < count; first += by.block) {
        const size_t n = least(count - first, by.block);
        reduce_tree(&by, room, source, sources, first, n);
        put_result(&by, to, room, sources, first, n);
    }
}

void tdm__reduce_partials(void *to, const void *const *source, int sources, size_t count, tdm_dtype dtype,
                          tdm_reduce_op op) {
    const typed_reduction by = find_reduction(dtype, op);
    reduce_partial(&by, to, source, sources, count);
}

void tdm__reduce_subtrees(void *to, const void *const *source, const int *rank, int sources, int ranks, size_t count,
                          tdm_dtype dtype, tdm_reduce_op op) {
    typed_reduction by = find_reduction(dtype, op);
    _Alignas(64) unsigned char room[TDM_REDUCE_BLOCK];
    by.of_sources = by.of_partials;
    for (size_t first = 0; first < count; first += by.block) {
        const size_t n = least(count - first, by.block);
        reduce_subtrees(&by, room, source, rank, sources, ranks, first, n);
        put_result(&by, to, room, ranks, first, n);
    }
}
