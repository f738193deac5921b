/* What a communicator computes. One source for all backends: it is compiled once for each, with BACKEND set to it. */
#include <sched.h>

#include "tests/comm/batches.h"
#include "tests/comm/ranks.h"
#include "tests/comm/values.h"

enum { WORLDS = 8, TIMEOUT_MS = 20000, GUARD = 5, MOST = 200100 };

/* Zero, one, odd, just about what fits an entry and a stage, and several stages. */
static const size_t counts[] = {0, 1, 17, 511, 513, 2049, 70001, 200003};
enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

/* Averages are of floats, bits of integers, and NCCL has none. */
static bool is_reduction(const rank_context *c, tdm_dtype dtype, tdm_reduce_op op) {
    const bool is_integer = dtype == TDM_DTYPE_I32 || dtype == TDM_DTYPE_I64 || dtype == TDM_DTYPE_U8;
    if (op >= TDM_REDUCE_BAND) return is_integer && strcmp(tdm_comm_backend(c->comm), "nccl") != 0;
    return op != TDM_REDUCE_AVG || !is_integer;
}

/* ---- all_reduce ---- */

static void all_reduce_once(rank_context *c, unsigned char *base, size_t count, tdm_dtype dtype, tdm_reduce_op op,
                            size_t shift) {
    size_t width = tdm_dtype_bytes(dtype);
    memset(base, 0xA5, (count + shift + 2 * GUARD) * width);
    unsigned char *data = base + (shift + GUARD) * width;
    for (size_t i = 0; i < count; i++) put(data, i, dtype, input(c->rank, i, op));
    CHECK_OK(tdm_comm_all_reduce(c->comm, (tdm_span){data, count, dtype}, op));
    CHECK_INT(first_wrong(data, count, dtype, c->world, op), count);
    for (size_t i = 0; i < GUARD * width; i++) {
        CHECK(data[count * width + i] == 0xA5);
        CHECK(base[shift * width + i] == 0xA5);
    }
}

static void all_reduce_rank(rank_context *c) {
    void *symmetric;
    unsigned char *heap = buffer((MOST + 64) * 8);
    REQUIRE(heap != NULL);
    REQUIRE_OK(tdm__comm_allocate(c->comm, (MOST + 64) * 8, &symmetric));
    for (int dtype = 0; dtype < TDM_DTYPE_COUNT; dtype++) {
        for (int op = TDM_REDUCE_SUM; op < TDM_REDUCE_OPS; op++) {
            for (int n = 0; n < COUNTS && is_reduction(c, (tdm_dtype)dtype, (tdm_reduce_op)op); n++) {
                if (!is_tried(counts[n], dtype, op)) continue;
                size_t shift = (size_t)(n + op) % 3;
                const bool swaps = (n + op) % 2 == 1;
                all_reduce_once(c, swaps ? symmetric : heap, counts[n], (tdm_dtype)dtype, (tdm_reduce_op)op, shift);
                if (BETWEEN_HOSTS) continue;
                all_reduce_once(c, swaps ? heap : symmetric, counts[n], (tdm_dtype)dtype, (tdm_reduce_op)op, shift);
            }
        }
    }
    /* Some ranks in shared memory, some not; and at another place on each rank. */
    all_reduce_once(c, c->rank % 2 ? symmetric : heap, 70001, TDM_DTYPE_F32, TDM_REDUCE_SUM, 1);
    all_reduce_once(c, symmetric, 70001, TDM_DTYPE_F32, TDM_REDUCE_SUM, (size_t)c->rank);
    free(heap);
}

TEST(all_reduce_is_exact) {
    for (int world = 1; world <= WORLDS; world++) {
        if (world > 4 && (BETWEEN_HOSTS || world < WORLDS)) continue;
        ranks_run(BACKEND, world, TIMEOUT_MS, all_reduce_rank, NULL);
    }
}

/* More than a chunk between hosts, and a part of one. */
static void long_rank(rank_context *c) {
    /* only between hosts there are chunks of that size */
    enum { COUNT = 4 * 1024 * 1024 / (BETWEEN_HOSTS ? 1 : TDM_EVERY(4)) + 12345 };
    float *data = buffer(COUNT * sizeof(*data));
    REQUIRE(data != NULL);
    for (size_t i = 0; i < COUNT; i++) data[i] = (float)input(c->rank, i, TDM_REDUCE_SUM);
    CHECK_OK(tdm_comm_all_reduce(c->comm, (tdm_span){data, COUNT, TDM_DTYPE_F32}, TDM_REDUCE_SUM));
    CHECK_INT(first_wrong(data, COUNT, TDM_DTYPE_F32, c->world, TDM_REDUCE_SUM), COUNT);
    free(data);
}

TEST(a_long_all_reduce_is_exact) {
    ranks_run(BACKEND, 2, TIMEOUT_MS, long_rank, NULL);
    ranks_run(BACKEND, 4, TIMEOUT_MS, long_rank, NULL);
}

static void tree_rank(rank_context *c) {
    enum { COUNT = 250000 / TDM_EVERY(4) + 7 };
    void *symmetric;
    float *heap = buffer(COUNT * sizeof(float));
    REQUIRE_OK(tdm__comm_allocate(c->comm, COUNT * sizeof(float), &symmetric));
    for (int where = 0; where < 2; where++) {
        float *data = where == 0 ? heap : symmetric;
        for (size_t count = 33; count <= COUNT; count = count == 33 ? COUNT : COUNT + 1) {
            for (size_t i = 0; i < count; i++) data[i] = rough(c->rank, i);
            CHECK_OK(tdm_comm_all_reduce(c->comm, (tdm_span){data, count, TDM_DTYPE_F32}, TDM_REDUCE_SUM));
            size_t wrong = 0;
            for (size_t i = 0; i < count; i++) {
                float want = tree_sum(0, c->world, i);
                wrong += memcmp(&data[i], &want, sizeof(want)) != 0;
            }
            CHECK_INT(wrong, 0);
        }
    }
    free(heap);
}

TEST(sums_are_the_canonical_tree) {
    for (int world = 2; world <= 9; world++) ranks_run(BACKEND, world, TIMEOUT_MS, narrow_tree_rank, NULL);
    for (int world = 2; world <= 9; world++) ranks_run(BACKEND, world, TIMEOUT_MS, tree_rank, NULL);
}

/* ---- all_reduce_coalesced ---- */

enum { SPANS_MOST = 200 };

/* The spans lie one behind another, with gaps, from `base` on; then the same numbers are reduced span by span in
 * `other`. */
static void coalesced_once(rank_context *c, unsigned char *base, unsigned char *other, const size_t *sizes, int spans,
                           tdm_dtype dtype) {
    const size_t width = tdm_dtype_bytes(dtype);
    size_t bytes = 0, element = 0;
    tdm_span span[SPANS_MOST];
    for (int i = 0; i < spans; bytes += (span[i++].count + 3) * width) {
        span[i] = (tdm_span){base + bytes, sizes[i], dtype};
        memset(base + bytes, 0xA5, (span[i].count + 3) * width);
        for (size_t k = 0; k < sizes[i]; k++) put(span[i].data, k, dtype, (double)rough(c->rank, element++));
    }
    memcpy(other, base, bytes);
    CHECK_OK(tdm_comm_all_reduce_coalesced(c->comm, span, (size_t)spans, TDM_REDUCE_SUM));
    for (int i = 0; i < spans; i++) {
        span[i].data = other + ((unsigned char *)span[i].data - base);
        CHECK_OK(tdm_comm_all_reduce(c->comm, span[i], TDM_REDUCE_SUM));
    }
    CHECK_INT(memcmp(base, other, bytes), 0);
}

static void coalesced_rank(rank_context *c) {
    enum { BYTES = 1024 * 1024 };
    static const size_t few[] = {3, 0, 17, 1}, small[] = {100, 300, 0, 50}, large[] = {0, 513, 70001, 2, 0, 9000};
    size_t many[SPANS_MOST];
    void *symmetric;
    unsigned char *heap = buffer(BYTES), *other = buffer(BYTES);
    REQUIRE_OK(tdm__comm_allocate(c->comm, BYTES, &symmetric));
    for (int i = 0; i < SPANS_MOST; i++) many[i] = (size_t)(i % 7) * 40;
    const tdm_dtype dtypes[] = {TDM_DTYPE_F32, TDM_DTYPE_BF16, TDM_DTYPE_I64};
    for (int n = 0; n < 6; n++) {
        unsigned char *base = n % 2 == 0 ? heap : symmetric;
        coalesced_once(c, base, other, few, 4, dtypes[n / 2]);
        coalesced_once(c, base, other, small, 4, dtypes[n / 2]);
        coalesced_once(c, base, other, large, 6, dtypes[n / 2]);
        if (n < 2) coalesced_once(c, base, other, many, SPANS_MOST, dtypes[n / 2]); /* each span is also a call */
    }
    /* In shared memory on some ranks only. */
    coalesced_once(c, c->rank % 2 ? symmetric : heap, other, large, 6, TDM_DTYPE_F32);
    free(heap);
    free(other);
}

TEST(coalesced_is_one_by_one) {
    ranks_run(BACKEND, 1, TIMEOUT_MS, coalesced_rank, NULL);
    ranks_run(BACKEND, 2, TIMEOUT_MS, coalesced_rank, NULL);
    ranks_run(BACKEND, 4, TIMEOUT_MS, coalesced_rank, NULL);
    for (int world = 1; world <= 4; world++) ranks_run(BACKEND, world, TIMEOUT_MS, coalesced_pairs_rank, NULL);
}

/* ---- rooted collectives ---- */

static void broadcast_and_reduce(rank_context *c, int32_t *data, size_t count, int root) {
    fill(data, c->rank, count);
    CHECK_OK(tdm_comm_broadcast(c->comm, i32(data, count), root));
    CHECK_INT(wrong_marks(data, root, count), 0);
    for (size_t i = 0; i < count; i++) put(data, i, TDM_DTYPE_I32, input(c->rank, i, TDM_REDUCE_SUM));
    CHECK_OK(tdm_comm_reduce(c->comm, i32(data, count), root, TDM_REDUCE_SUM));
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        double want = c->rank == root ? expected(c->world, i, TDM_REDUCE_SUM) : input(c->rank, i, TDM_REDUCE_SUM);
        wrong += (double)data[i] != want;
    }
    CHECK_INT(wrong, 0);
}

static void gather_and_scatter(rank_context *c, int32_t *part, int32_t *all, size_t count, int root) {
    size_t world = (size_t)c->world;
    fill(part, c->rank, count);
    memset(all, 0x5A, world * count * sizeof(*all));
    CHECK_OK(tdm_comm_gather(c->comm, i32(part, count), i32(all, world * count), root));
    for (size_t r = 0; r < world && c->rank == root; r++) CHECK_INT(wrong_marks(all + r * count, (int)r, count), 0);
    if (c->rank != root && count > 0) CHECK_INT(all[0], 0x5A5A5A5A);

    memset(all, 0, world * count * sizeof(*all));
    CHECK_OK(tdm_comm_all_gather(c->comm, i32(part, count), i32(all, world * count)));
    for (size_t r = 0; r < world; r++) CHECK_INT(wrong_marks(all + r * count, (int)r, count), 0);

    memset(all, 0, world * count * sizeof(*all));
    fill(all + (size_t)c->rank * count, c->rank, count);
    CHECK_OK(tdm_comm_all_gather(c->comm, i32(all + (size_t)c->rank * count, count), i32(all, world * count)));
    for (size_t r = 0; r < world; r++) CHECK_INT(wrong_marks(all + r * count, (int)r, count), 0);

    for (size_t r = 0; r < world; r++) fill(all + r * count, c->rank == root ? (int)r + 7 : 99, count);
    CHECK_OK(tdm_comm_scatter(c->comm, i32(all, world * count), i32(part, count), root));
    memset(all, 0xEE, world * count * sizeof(*all)); /* it is the caller's again */
    CHECK_INT(wrong_marks(part, c->rank + 7, count), 0);
}

static void rooted_rank(rank_context *c) {
    enum { COUNT = 150001 };
    size_t world = (size_t)c->world;
    void *symmetric;
    int32_t *heap = buffer((world + 1) * COUNT * sizeof(*heap));
    REQUIRE_OK(tdm__comm_allocate(c->comm, (world + 1) * COUNT * sizeof(*heap), &symmetric));
    static const size_t sizes[] = {0, 1, 63, 129, 513, COUNT};
    for (int root = 0; root < c->world; root++) {
        for (int n = 0; n < 6; n++) {
            if (sizes[n] > 1000 && root > 0 && root < c->world - 1) continue;
            for (int where = 0; where < 2; where++) {
                int32_t *base = where == 0 ? heap : symmetric;
                broadcast_and_reduce(c, base, sizes[n], root);
                gather_and_scatter(c, base, base + sizes[n], sizes[n], root);
            }
        }
    }
    free(heap);
}

TEST(rooted_collectives) {
    for (int world = 1; world <= 8; world = world < 3 ? world + 1 : world + 5)
        ranks_run(BACKEND, world, TIMEOUT_MS, rooted_rank, NULL);
}

/* ---- reduce_scatter and all_to_all ---- */

static void reduce_scatter_once(rank_context *c, unsigned char *in, unsigned char *out, size_t count, tdm_dtype dtype,
                                tdm_reduce_op op) {
    const size_t width = tdm_dtype_bytes(dtype), world = (size_t)c->world, own = (size_t)c->rank * count;
    memset(out, 0xA5, (count + GUARD) * width);
    for (size_t i = 0; i < world * count; i++) put(in, i, dtype, input(c->rank, i, op));
    CHECK_OK(tdm_comm_reduce_scatter(c->comm, (tdm_span){in, world * count, dtype}, (tdm_span){out, count, dtype}, op));
    CHECK_INT(first_wrong_from(out, own, count, dtype, c->world, op), count);
    for (size_t i = 0; i < GUARD * width; i++) CHECK(out[count * width + i] == 0xA5);
    for (size_t i = 0; i < world * count; i++) put(in, i, dtype, input(c->rank, i, op));
    tdm_span part = {in + own * width, count, dtype};
    CHECK_OK(tdm_comm_reduce_scatter(c->comm, (tdm_span){in, world * count, dtype}, part, op));
    CHECK_INT(first_wrong_from(part.data, own, count, dtype, c->world, op), count);
}

static void all_to_all_once(rank_context *c, int32_t *in, int32_t *out, size_t count) {
    const size_t world = (size_t)c->world;
    for (size_t r = 0; r < world; r++) fill(in + r * count, c->rank * 16 + (int)r, count);
    memset(out, 0x5A, world * count * sizeof(*out));
    CHECK_OK(tdm_comm_all_to_all(c->comm, i32(in, world * count), i32(out, world * count)));
    for (size_t r = 0; r < world; r++) {
        CHECK_INT(wrong_marks(out + r * count, (int)r * 16 + c->rank, count), 0);
        CHECK_INT(wrong_marks(in + r * count, c->rank * 16 + (int)r, count), 0);
    }
}

static void exchanges_rank(rank_context *c) {
    enum { COUNT = 90001 };
    static const size_t sizes[] = {0, 1, 61, 65, 513, COUNT};
    const size_t bytes = ((size_t)c->world * COUNT + GUARD) * sizeof(int32_t);
    void *symmetric;
    unsigned char *heap = buffer(bytes), *out = buffer(bytes);
    REQUIRE_OK(tdm__comm_allocate(c->comm, bytes, &symmetric));
    for (int n = 0; n < 6; n++) {
        for (int where = 0; where < 2; where++) {
            unsigned char *in = where == 0 ? heap : symmetric;
            reduce_scatter_once(c, in, out, sizes[n], TDM_DTYPE_F32, TDM_REDUCE_SUM);
            reduce_scatter_once(c, in, out, sizes[n], TDM_DTYPE_BF16, TDM_REDUCE_AVG);
            reduce_scatter_once(c, in, out, sizes[n], TDM_DTYPE_U8, TDM_REDUCE_MAX);
            all_to_all_once(c, (int32_t *)in, (int32_t *)out, sizes[n]);
        }
    }
    /* In shared memory on some ranks only. */
    reduce_scatter_once(c, c->rank % 2 ? symmetric : heap, out, COUNT, TDM_DTYPE_F32, TDM_REDUCE_SUM);
    all_to_all_once(c, c->rank % 2 ? symmetric : (int32_t *)heap, (int32_t *)out, COUNT);
    free(heap);
    free(out);
}

TEST(reduce_scatter_and_all_to_all) {
    for (int world = 1; world <= 7; world = world < 3 ? world + 1 : world + 4)
        ranks_run(BACKEND, world, TIMEOUT_MS, exchanges_rank, NULL);
}

/* ---- all_to_all_v ---- */

/* What rank `from` sends to rank `to`: nothing to some. */
static size_t part_count(int from, int to, size_t scale) {
    return (size_t)((from * 3 + to * 5 + 2) % 4) * scale;
}

/* Byte i of that part. */
static unsigned char part_byte(int from, int to, size_t i) {
    return (unsigned char)(from * 31 + to * 17 + (int)(i % 251));
}

/* `rank` and `world` are those in `comm`. `in` and `out` have room for all parts and a guard. */
static void all_to_all_v_once(tdm_comm *comm, unsigned char *in, unsigned char *out, size_t scale, tdm_dtype dtype) {
    const int world = comm->world, rank = comm->rank;
    size_t to[WORLDS], from[WORLDS], width = tdm_dtype_bytes(dtype), sent = 0, received = 0, wrong = 0, at = 0;
    for (int r = 0; r < world; r++) {
        to[r] = part_count(rank, r, scale);
        from[r] = part_count(r, rank, scale);
        for (size_t i = 0; i < to[r] * width; i++) in[sent * width + i] = part_byte(rank, r, i);
        sent += to[r];
        received += from[r];
    }
    memset(out, 0x5A, received * width + GUARD);
    const tdm_span all = {in, sent, dtype}, got = {out, received, dtype};
    CHECK_OK(tdm_comm_all_to_all_v(comm, all, to, got, from));
    for (int r = 0; r < world; r++)
        for (size_t i = 0; i < from[r] * width; i++) wrong += out[at++] != part_byte(r, rank, i);
    for (size_t i = 0; i < GUARD; i++) wrong += out[at++] != 0x5A;
    CHECK_INT(wrong, 0);
}

static void all_to_all_v_rank(rank_context *c) {
    enum { SCALE = 50001 }; /* several chunks of a stage */
    static const size_t scales[] = {0, 1, 61};
    const size_t bytes = (size_t)c->world * 3 * SCALE * sizeof(int32_t) + GUARD;
    void *symmetric;
    unsigned char *heap = buffer(bytes), *out = buffer(bytes);
    REQUIRE_OK(tdm__comm_allocate(c->comm, bytes, &symmetric));
    for (int where = 0; where < 2; where++) {
        unsigned char *in = where == 0 ? heap : symmetric;
        for (int n = 0; n < 3 * TDM_DTYPE_COUNT; n++)
            all_to_all_v_once(c->comm, in, out, scales[n % 3], (tdm_dtype)(n / 3));
        all_to_all_v_once(c->comm, in, out, SCALE, TDM_DTYPE_I32);
    }
    /* In shared memory on some ranks only. */
    all_to_all_v_once(c->comm, c->rank % 2 ? symmetric : heap, out, 9001, TDM_DTYPE_F32);
    /* Only rank 0 sends, and it to the last rank only: a message to one rank. */
    size_t to[WORLDS] = {0}, from[WORLDS] = {0}, last = (size_t)c->world - 1;
    int32_t *data = (int32_t *)heap;
    fill(data, 0, 700);
    to[last] = c->rank == 0 ? 700 : 0;
    from[0] = c->rank == (int)last ? 700 : 0;
    CHECK_OK(tdm_comm_all_to_all_v(c->comm, i32(data, to[last]), to, i32(out, from[0]), from));
    CHECK_INT(wrong_marks((int32_t *)out, 0, from[0]), 0);
    free(heap);
    free(out);
}

TEST(uneven_all_to_all) {
    ranks_run(BACKEND, 1, TIMEOUT_MS, all_to_all_v_rank, NULL);
    ranks_run(BACKEND, 2, TIMEOUT_MS, all_to_all_v_rank, NULL);
    ranks_run(BACKEND, 4, TIMEOUT_MS, all_to_all_v_rank, NULL);
}

/* ---- send and receive ---- */

static void receive_any_rank(rank_context *c) {
    enum { COUNT = 30001, MESSAGES = 4 };
    static const size_t sizes[MESSAGES] = {1, COUNT, 0, 700};
    int32_t *data = buffer(COUNT * sizeof(*data));
    if (strcmp(tdm_comm_backend(c->comm), "nccl") == 0) {
        CHECK_STATUS(tdm_comm_receive_any(c->comm, i32(data, 1), NULL), TDM_E_UNSUPPORTED);
        CHECK_STATUS(tdm_comm_all_reduce(c->comm, i32(data, 1), TDM_REDUCE_BOR), TDM_E_UNSUPPORTED);
        free(data);
        return;
    }
    for (int n = 0; n < MESSAGES; n++) {
        int seen = 0, from;
        for (int r = 1; c->rank == 0 && r < c->world; r++) {
            CHECK_OK(tdm_comm_receive_any(c->comm, i32(data, sizes[n]), &from));
            CHECK_INT(wrong_marks(data, from + n, sizes[n]), 0);
            CHECK(from > 0 && (seen & 1 << from) == 0);
            seen |= 1 << from;
        }
        fill(data, c->rank + n, sizes[n]);
        if (c->rank != 0) CHECK_OK(tdm_comm_send(c->comm, i32(data, sizes[n]), 0));
        CHECK_OK(tdm_comm_barrier(c->comm));
    }
    /* A rank that has left sends no more; another one still does. */
    if (c->rank == c->world - 1) CHECK_OK(tdm_comm_send(c->comm, i32(data, 1), 0));
    if (c->rank == 0) CHECK_OK(tdm_comm_receive_any(c->comm, i32(data, 1), NULL));
    free(data);
}

TEST(messages_from_any_rank) {
    ranks_run(BACKEND, 2, TIMEOUT_MS, receive_any_rank, NULL);
    ranks_run(BACKEND, 5, TIMEOUT_MS, receive_any_rank, NULL);
}

TEST(messages_around_a_ring) {
    ranks_run(BACKEND, 2, TIMEOUT_MS, ring_rank, NULL);
    ranks_run(BACKEND, 3, TIMEOUT_MS, ring_rank, NULL);
    ranks_run(BACKEND, 6, TIMEOUT_MS, ring_rank, NULL);
}

TEST(messages_of_a_batch_go_at_once) {
    ranks_run(BACKEND, 2, TIMEOUT_MS, batch_rank, NULL);
    ranks_run(BACKEND, 3, TIMEOUT_MS, batch_rank, NULL);
    ranks_run(BACKEND, 4, TIMEOUT_MS, batch_rank, NULL);
    ranks_run(BACKEND, 3, TIMEOUT_MS, batch_in_a_circle_rank, NULL);
}

/* ---- any sequence of calls ---- */

typedef struct mix {
    rank_context *c;
    int32_t *heap, *shared, *out;
    uint64_t seed; /* equal on all ranks */
} mix;

static uint32_t draw(mix *m, uint32_t below) {
    m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(m->seed >> 33) % below;
}

static void one_of_any(mix *m, int step) {
    static const size_t sizes[] = {0, 1, 3, 60, 512, 513, 1000, 9000, 131072, 140000};
    rank_context *c = m->c;
    size_t count = sizes[draw(m, 10)], world = (size_t)c->world;
    int root = (int)draw(m, (uint32_t)world), kind = (int)draw(m, 6), to = (int)draw(m, (uint32_t)world);
    uint32_t where = draw(m, 3);
    /* In shared memory on all ranks, on none, on some. */
    int32_t *data = where == 0 || (where == 1 && c->rank % 2 == 0) ? m->heap : m->shared;
    if ((step * 7 + c->rank * 3) % 5 == 0) sched_yield();
    fill(data, c->rank + step, count);
    switch (kind) {
    case 0:
        for (size_t i = 0; i < count; i++) put(data, i, TDM_DTYPE_I32, input(c->rank, i, TDM_REDUCE_SUM));
        CHECK_OK(tdm_comm_all_reduce(c->comm, i32(data, count), TDM_REDUCE_SUM));
        CHECK_INT(first_wrong(data, count, TDM_DTYPE_I32, c->world, TDM_REDUCE_SUM), count);
        break;
    case 1:
        CHECK_OK(tdm_comm_broadcast(c->comm, i32(data, count), root));
        CHECK_INT(wrong_marks(data, root + step, count), 0);
        break;
    case 2:
        CHECK_OK(tdm_comm_all_gather(c->comm, i32(data, count), i32(m->out, world * count)));
        for (size_t r = 0; r < world; r++) CHECK_INT(wrong_marks(m->out + r * count, (int)r + step, count), 0);
        break;
    case 3:
        for (size_t r = 0; r < world; r++) fill(m->out + r * count, (int)r + root, count);
        CHECK_OK(tdm_comm_scatter(c->comm, i32(m->out, world * count), i32(data, count), root));
        CHECK_INT(wrong_marks(data, c->rank + root, count), 0);
        break;
    case 4:
        if (root == to) break;
        if (c->rank == root) CHECK_OK(tdm_comm_send(c->comm, i32(data, count), to));
        if (c->rank == to) {
            CHECK_OK(tdm_comm_receive(c->comm, i32(m->out, count), root));
            CHECK_INT(wrong_marks(m->out, root + step, count), 0);
        }
        break;
    default:
        CHECK_OK(tdm_comm_barrier(c->comm));
    }
}

static void any_sequence_rank(rank_context *c) {
    enum { COUNT = 140000, STEPS = 120 };
    void *shared;
    mix m = {.c = c, .seed = (uint64_t)c->world};
    m.heap = buffer(COUNT * sizeof(int32_t));
    m.out = buffer((size_t)c->world * COUNT * sizeof(int32_t));
    REQUIRE_OK(tdm__comm_allocate(c->comm, COUNT * sizeof(int32_t), &shared));
    m.shared = shared;
    for (int step = 0; step < STEPS; step++) one_of_any(&m, step);
    free(m.heap);
    free(m.out);
}

TEST(any_sequence_of_calls) {
    ranks_run(BACKEND, 2, TIMEOUT_MS, any_sequence_rank, NULL);
    ranks_run(BACKEND, 3, TIMEOUT_MS, any_sequence_rank, NULL);
    ranks_run(BACKEND, 5, TIMEOUT_MS, any_sequence_rank, NULL);
}

/* ---- barrier, memory, groups ---- */

static void barrier_rank(rank_context *c) {
    void *memory;
    REQUIRE_OK(tdm__comm_allocate(c->comm, 4096, &memory));
    CHECK((uintptr_t)memory % 64 == 0);
    for (int i = 0; i < 4096; i++) CHECK(((unsigned char *)memory)[i] == 0);
    int64_t *own = memory, least;
    for (int64_t step = 1; step <= 500; step++) {
        *own = step;
        CHECK_OK(tdm_comm_barrier(c->comm));
        least = *own;
        CHECK_OK(tdm_comm_all_reduce(c->comm, (tdm_span){&least, 1, TDM_DTYPE_I64}, TDM_REDUCE_MIN));
        CHECK_INT(least, step);
    }
    CHECK_INT(c->comm->sequence, 1 + 500 * 2);
}

TEST(barriers_and_small_calls) {
    ranks_run(BACKEND, 1, TIMEOUT_MS, barrier_rank, NULL);
    ranks_run(BACKEND, 2, TIMEOUT_MS, barrier_rank, NULL);
    ranks_run(BACKEND, 5, TIMEOUT_MS, barrier_rank, NULL);
}

static void group_work(tdm_comm *group, const int *members, int count, int rank) {
    enum { COUNT = 40000 };
    CHECK_INT(group->world, count);
    CHECK_INT(members[group->rank], rank);
    int32_t *data = buffer(COUNT * sizeof(*data));
    for (int step = 0; step < 10; step++) {
        size_t n = step % 2 == 0 ? 3 : COUNT;
        for (size_t i = 0; i < n; i++) data[i] = rank + step;
        CHECK_OK(tdm_comm_all_reduce(group, i32(data, n), TDM_REDUCE_SUM));
        int want = step * count;
        for (int i = 0; i < count; i++) want += members[i];
        CHECK(data[0] == want && data[n - 1] == want);
        fill(data, rank, n);
        CHECK_OK(tdm_comm_broadcast(group, i32(data, n), count - 1));
        CHECK_INT(wrong_marks(data, members[count - 1], n), 0);
        all_to_all_v_once(group, (unsigned char *)data, (unsigned char *)(data + COUNT / 2), n / 40, TDM_DTYPE_I64);
    }
    free(data);
}

static void split_rank(rank_context *c) {
    const int even[] = {4, 2, 0}, odd[] = {1, 3};
    tdm_comm *group[2], *pair = NULL;
    REQUIRE_OK(tdm__comm_split(c->comm, even, 3, &group[0]));
    REQUIRE_OK(tdm__comm_split(c->comm, odd, 2, &group[1]));
    CHECK((group[0] != NULL) == (c->rank % 2 == 0));
    CHECK((group[1] != NULL) == (c->rank % 2 == 1));
    if (c->rank % 2 == 0)
        group_work(group[0], even, 3, c->rank);
    else
        group_work(group[1], odd, 2, c->rank);
    /* A group of a group outlives both. */
    const int first_two[] = {0, 1}, pair_ranks[] = {4, 2};
    if (c->rank % 2 == 0) REQUIRE_OK(tdm__comm_split(group[0], first_two, 2, &pair));
    CHECK_OK(tdm_comm_barrier(c->comm));
    tdm_comm_close(group[0]);
    tdm_comm_close(c->comm);
    c->comm = NULL;
    tdm_comm_close(group[1]);
    CHECK((pair != NULL) == (c->rank == 2 || c->rank == 4));
    if (pair != NULL) group_work(pair, pair_ranks, 2, c->rank);
    tdm_comm_close(pair);
}

TEST(groups_of_ranks) {
    ranks_run(BACKEND, 5, TIMEOUT_MS, split_rank, NULL);
}

/* ---- agreement ---- */

static void agree_rank(rank_context *c) {
    CHECK_OK(tdm__comm_agree(c->comm, "the plan", 0x1234, 0x5678));
    CHECK_STATUS(tdm__comm_agree(c->comm, "the parameters", 0xAB, c->rank == 2 ? 0xCD : 0xEF), TDM_E_COMM);
    CHECK_TEXT(tdm_error_message(), "ranks differ in the parameters: rank 2 has 00000000000000ab00000000000000cd, rank "
                                    "0 has 00000000000000ab00000000000000ef");
    CHECK_OK(tdm_comm_barrier(c->comm));
}

TEST(a_verdict_for_all) {
    ranks_run(BACKEND, 4, TIMEOUT_MS, agree_rank, NULL);
}

TEST_MAIN({
    RUN(all_reduce_is_exact);
    RUN(a_long_all_reduce_is_exact);
    RUN(sums_are_the_canonical_tree);
    RUN(coalesced_is_one_by_one);
    RUN(rooted_collectives);
    RUN(reduce_scatter_and_all_to_all);
    RUN(uneven_all_to_all);
    RUN(messages_from_any_rank);
    RUN(messages_around_a_ring);
    RUN(messages_of_a_batch_go_at_once);
    RUN(any_sequence_of_calls);
    RUN(barriers_and_small_calls);
    RUN(groups_of_ranks);
    RUN(a_verdict_for_all);
})
