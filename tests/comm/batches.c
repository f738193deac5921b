/* See batches.h. */
#include "tests/comm/batches.h"

#include <stdlib.h>

#include "runtime/base/bf16.h"
#include "runtime/base/tree.h"
#include "tests/comm/values.h"

enum { SPANS = 6, MANY = 200, BYTES = 2 * 1024 * 1024 };

/* ---- coalesced calls: as the calls one by one ---- */

/* Spans one behind another from `base` on, with gaps: of each, `parts` times so many elements. Returns the bytes. */
static size_t lay_out(tdm_span *span, unsigned char *base, const size_t *sizes, int spans, size_t parts,
                      tdm_dtype dtype) {
    const size_t width = tdm_dtype_bytes(dtype);
    size_t bytes = 0;
    for (int i = 0; i < spans; bytes += (span[i++].count + 3) * width)
        span[i] = (tdm_span){base + bytes, parts * sizes[i], dtype};
    memset(base, 0xA5, bytes);
    return bytes;
}

static void fill_spans(const tdm_span *span, int spans, int rank) {
    for (int i = 0; i < spans; i++)
        for (size_t k = 0; k < span[i].count; k++)
            put(span[i].data, k, span[i].dtype, input(rank + i, k, TDM_REDUCE_SUM) / 7);
}

/* `small` has room for a part of each span, `large` and `other` for all parts. */
static void gather_once(rank_context *c, unsigned char *small, unsigned char *large, unsigned char *other,
                        const size_t *sizes, int spans, tdm_dtype dtype) {
    tdm_span in[MANY], out[MANY], alone[MANY];
    (void)lay_out(in, small, sizes, spans, 1, dtype);
    fill_spans(in, spans, c->rank);
    const size_t bytes = lay_out(out, large, sizes, spans, (size_t)c->world, dtype);
    (void)lay_out(alone, other, sizes, spans, (size_t)c->world, dtype);
    CHECK_OK(tdm_comm_all_gather_coalesced(c->comm, in, out, (size_t)spans));
    for (int i = 0; i < spans; i++) CHECK_OK(tdm_comm_all_gather(c->comm, in[i], alone[i]));
    CHECK_INT(memcmp(large, other, bytes), 0);
}

static void scatter_once(rank_context *c, unsigned char *small, unsigned char *large, unsigned char *other,
                         const size_t *sizes, int spans, tdm_dtype dtype) {
    tdm_span in[MANY], out[MANY], alone[MANY];
    (void)lay_out(in, large, sizes, spans, (size_t)c->world, dtype);
    fill_spans(in, spans, c->rank);
    const size_t bytes = lay_out(out, small, sizes, spans, 1, dtype);
    (void)lay_out(alone, other, sizes, spans, 1, dtype);
    CHECK_OK(tdm_comm_reduce_scatter_coalesced(c->comm, in, out, (size_t)spans, TDM_REDUCE_SUM));
    for (int i = 0; i < spans; i++) CHECK_OK(tdm_comm_reduce_scatter(c->comm, in[i], alone[i], TDM_REDUCE_SUM));
    CHECK_INT(memcmp(small, other, bytes), 0);
}

/* Where each rank's part is in its own place already. */
static void within_once(rank_context *c, unsigned char *base, unsigned char *other, const size_t *sizes,
                        tdm_dtype dtype) {
    tdm_span all[SPANS], own[SPANS], alone[SPANS];
    const size_t bytes = lay_out(all, base, sizes, SPANS, (size_t)c->world, dtype), width = tdm_dtype_bytes(dtype);
    for (int i = 0; i < SPANS; i++)
        own[i] = (tdm_span){(char *)all[i].data + (size_t)c->rank * sizes[i] * width, sizes[i], dtype};
    fill_spans(all, SPANS, c->rank);
    (void)lay_out(alone, other, sizes, SPANS, (size_t)c->world, dtype);
    memcpy(other, base, bytes);
    CHECK_OK(tdm_comm_reduce_scatter_coalesced(c->comm, all, own, SPANS, TDM_REDUCE_SUM));
    CHECK_OK(tdm_comm_all_gather_coalesced(c->comm, own, all, SPANS));
    for (int i = 0; i < SPANS; i++) CHECK_OK(tdm_comm_all_reduce(c->comm, alone[i], TDM_REDUCE_SUM));
    CHECK_INT(memcmp(base, other, bytes), 0);
}

void coalesced_pairs_rank(rank_context *c) {
    static const size_t few[SPANS] = {3, 0, 17, 1, 0, 2}, small[SPANS] = {100, 300, 0, 50, 1, 0};
    static const size_t large[SPANS] = {0, 513, 40001, 2, 0, 9000};
    static const tdm_dtype dtypes[] = {TDM_DTYPE_F32, TDM_DTYPE_BF16, TDM_DTYPE_I64};
    size_t many[MANY];
    void *symmetric;
    unsigned char *heap = buffer(BYTES), *other = buffer(BYTES), *part = buffer(BYTES);
    REQUIRE_OK(tdm__comm_allocate(c->comm, BYTES, &symmetric));
    for (int i = 0; i < MANY; i++) many[i] = (size_t)(i % 7) * 20;
    for (int n = 0; n < 6; n++) {
        unsigned char *base = n % 2 == 0 ? heap : symmetric;
        for (int k = 0; k < 3; k++) {
            const size_t *sizes = k == 0 ? few : k == 1 ? small : large;
            gather_once(c, part, base, other, sizes, SPANS, dtypes[n / 2]);
            gather_once(c, base, part, other, sizes, SPANS, dtypes[n / 2]);
            scatter_once(c, part, base, other, sizes, SPANS, dtypes[n / 2]);
            within_once(c, base, other, sizes, dtypes[n / 2]);
        }
        if (n != 0) continue; /* each span is also a call */
        gather_once(c, part, base, other, many, MANY, TDM_DTYPE_F32);
        scatter_once(c, part, base, other, many, MANY, TDM_DTYPE_F32);
    }
    /* In shared memory on some ranks only. */
    gather_once(c, c->rank % 2 ? symmetric : heap, part, other, large, SPANS, TDM_DTYPE_F32);
    scatter_once(c, part, c->rank % 2 ? symmetric : heap, other, large, SPANS, TDM_DTYPE_F32);
    free(heap);
    free(other);
    free(part);
}

/* ---- sums of 16 bits ---- */

static float narrow_tree_sum(int first, int ranks, size_t i) {
    if (ranks == 1) return tdm__bf16_float(tdm__bf16_of(rough(first, i)));
    const int left = tdm__tree_left(ranks);
    return narrow_tree_sum(first, left, i) + narrow_tree_sum(first + left, ranks - left, i);
}

/* As floats, and rounded once. */
void narrow_tree_rank(rank_context *c) {
    enum { COUNT = 30000 + 7 };
    uint16_t *data = buffer(COUNT * sizeof(*data));
    size_t wrong = 0;
    const bool rounds_once = strcmp(tdm_comm_backend(c->comm), "nccl") != 0;
    for (size_t i = 0; i < COUNT; i++) data[i] = tdm__bf16_of(rough(c->rank, i));
    CHECK_OK(tdm_comm_all_reduce(c->comm, (tdm_span){data, COUNT, TDM_DTYPE_BF16}, TDM_REDUCE_SUM));
    for (size_t i = 0; i < COUNT && rounds_once; i++) wrong += data[i] != tdm__bf16_of(narrow_tree_sum(0, c->world, i));
    CHECK_INT(wrong, 0);
    free(data);
}

/* ---- messages, and batches of them ---- */

void ring_rank(rank_context *c) {
    enum { COUNT = 100003 };
    void *symmetric;
    int32_t *heap = buffer(COUNT * sizeof(*heap)), *got = buffer(COUNT * sizeof(*got));
    REQUIRE_OK(tdm__comm_allocate(c->comm, COUNT * sizeof(int32_t), &symmetric));
    int next = (c->rank + 1) % c->world, before = (c->rank + c->world - 1) % c->world;
    static const size_t sizes[] = {0, 1, 8191, 8193, COUNT, 5};
    for (int n = 0; n < 12; n++) {
        size_t count = sizes[n / 2];
        int32_t *data = n % 2 == 0 ? heap : symmetric;
        fill(data, c->rank + n, count);
        /* An odd ring has two neighbours of the same kind: rank 0 then receives first. */
        bool first = c->rank % 2 == 0 && !(c->world % 2 == 1 && c->rank == 0);
        if (first) CHECK_OK(tdm_comm_send(c->comm, i32(data, count), next));
        CHECK_OK(tdm_comm_receive(c->comm, i32(got, count), before));
        if (!first) CHECK_OK(tdm_comm_send(c->comm, i32(data, count), next));
        CHECK_INT(wrong_marks(got, before + n, count), 0);
        if (n % 3 == 0) CHECK_OK(tdm_comm_barrier(c->comm));
    }
    free(heap);
    free(got);
}

/* Message `n` between two ranks: none has the size of another one. */
static size_t size_of(int from, int to, int n, size_t scale) {
    return n == 1 ? 0 : ((size_t)from * 5 + (size_t)to * 3 + (size_t)n + 1) * scale;
}

/* Three messages from every rank to every other one. Even ranks name the receives first, odd ones from the last on. */
static void all_at_once(rank_context *c, int32_t *in, int32_t *out, size_t scale) {
    enum { EACH = 3 };
    tdm_transfer transfers[2 * EACH * 16];
    size_t count = 0, sent = 0, received = 0;
    for (int direction = 0; direction < 2; direction++) {
        const bool sends = (direction == 0) == (c->rank % 2 == 1);
        for (int i = 1; i < c->world; i++) {
            const int peer = (c->rank + (c->rank % 2 == 1 ? i : c->world - i)) % c->world;
            for (int n = 0; n < EACH; n++) {
                const int from = sends ? c->rank : peer, to = sends ? peer : c->rank;
                const size_t size = size_of(from, to, n, scale);
                int32_t *at = sends ? in + sent : out + received;
                transfers[count++] = (tdm_transfer){sends, peer, i32(at, size)};
                if (sends) fill(at, c->rank * 64 + peer * 4 + n, size);
                if (sends)
                    sent += size;
                else
                    received += size;
            }
        }
    }
    memset(out, 0x5A, (received + 1) * sizeof(*out));
    CHECK_OK(tdm_comm_batch_send_receive(c->comm, transfers, count));
    for (size_t i = 0, n = 0; i < count; i++, n = (n + 1) % EACH) {
        const int peer = transfers[i].peer;
        if (transfers[i].sends) continue;
        CHECK_INT(wrong_marks(transfers[i].span.data, peer * 64 + c->rank * 4 + (int)n, transfers[i].span.count), 0);
    }
    CHECK_INT(out[received], 0x5A5A5A5A);
}

/* A ring in which nobody begins; and one end of a message is a plain call. */
static void ring_once(rank_context *c, int32_t *in, int32_t *out, size_t count) {
    const int next = (c->rank + 1) % c->world, before = (c->rank + c->world - 1) % c->world;
    const tdm_transfer both[] = {{1, next, i32(in, count)}, {0, before, i32(out, count)}};
    fill(in, c->rank, count);
    CHECK_OK(tdm_comm_batch_send_receive(c->comm, both, 2));
    CHECK_INT(wrong_marks(out, before, count), 0);
    if (c->rank == 0) {
        CHECK_OK(tdm_comm_send(c->comm, i32(in, count), 1));
        CHECK_OK(tdm_comm_receive(c->comm, i32(out, count), 1));
        CHECK_INT(wrong_marks(out, 1, count), 0);
    } else if (c->rank == 1) {
        const tdm_transfer answer[] = {{1, 0, i32(in, count)}, {0, 0, i32(out, count)}};
        CHECK_OK(tdm_comm_batch_send_receive(c->comm, &answer[1], 1));
        CHECK_OK(tdm_comm_batch_send_receive(c->comm, &answer[0], 1));
        CHECK_INT(wrong_marks(out, 0, count), 0);
    }
}

void batch_rank(rank_context *c) {
    static const size_t scales[] = {1, 40, 700}; /* several halves of a mailbox */
    void *symmetric;
    int32_t *heap = buffer(BYTES), *out = buffer(BYTES);
    REQUIRE_OK(tdm__comm_allocate(c->comm, BYTES, &symmetric));
    for (int n = 0; n < 3; n++) {
        for (int where = 0; where < 3; where++) {
            const bool shared = where == 1 || (where == 2 && c->rank % 2 == 1);
            all_at_once(c, shared ? symmetric : heap, out, scales[n]);
            ring_once(c, shared ? symmetric : heap, out, scales[n] * 20);
        }
    }
    CHECK_OK(tdm_comm_barrier(c->comm));
    free(heap);
    free(out);
}

/* Rank 0 sends to 1 and 2; rank 1 first wants what rank 2 sends only when it has rank 0's. */
void batch_in_a_circle_rank(rank_context *c) {
    enum { COUNT = 30000 };
    int32_t *own = buffer(COUNT * sizeof(*own)), *got = buffer(COUNT * sizeof(*got));
    fill(own, c->rank, COUNT);
    if (c->rank == 0) {
        const tdm_transfer two[] = {{1, 1, i32(own, COUNT)}, {1, 2, i32(own, COUNT)}, {0, 1, i32(got, COUNT)}};
        CHECK_OK(tdm_comm_batch_send_receive(c->comm, two, 3));
        CHECK_INT(wrong_marks(got, 1, COUNT), 0);
    } else if (c->rank == 1) {
        CHECK_OK(tdm_comm_receive(c->comm, i32(got, COUNT), 2));
        CHECK_INT(wrong_marks(got, 2, COUNT), 0);
        CHECK_OK(tdm_comm_receive(c->comm, i32(got, COUNT), 0));
        CHECK_INT(wrong_marks(got, 0, COUNT), 0);
        CHECK_OK(tdm_comm_send(c->comm, i32(own, COUNT), 0));
    } else if (c->rank == 2) {
        CHECK_OK(tdm_comm_receive(c->comm, i32(got, COUNT), 0));
        CHECK_INT(wrong_marks(got, 0, COUNT), 0);
        CHECK_OK(tdm_comm_send(c->comm, i32(own, COUNT), 1));
    }
    CHECK_OK(tdm_comm_barrier(c->comm));
    free(own);
    free(got);
}
