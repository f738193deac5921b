/* One text for all backends: what ranks are told when something is wrong. BACKEND says over which one. */
#include <string.h>
#include <time.h>

#include "tests/comm/ranks.h"

/* Long: a test that ends by it would not end in time. LIMIT_MS is for tests that end by it: a machine may stand still
 * for seconds. */
enum { TIMEOUT_MS = 50000, LIMIT_MS = 4000 };

static tdm_span f32(float *data, size_t count) {
    return (tdm_span){data, count, TDM_DTYPE_F32};
}

#ifdef HOSTS_BACKEND
enum { IS_BETWEEN_HOSTS = true };
#else
enum { IS_BETWEEN_HOSTS = false };
#endif

/* Each job takes a start of mpirun: fewer of those that differ only in numbers, or that end by the deadline. */
#ifdef MPIRUN_WORDS
enum { JOBS_ARE_DEAR = true };
#else
enum { JOBS_ARE_DEAR = false };
#endif

static void nap(int ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

static void await_end(rank_context *c, char *why, size_t bytes) {
    while (!tdm__comm_ended(c->comm, why, bytes)) nap(1);
}

/* ---- a rank that does not come ---- */

static void late_rank(rank_context *c) {
    char why[200];
    float x[4] = {0};
    bool late = c->rank == 1 || c->rank == 3;
    CHECK_OK(tdm_comm_barrier(c->comm));
    CHECK_OK(tdm_comm_broadcast(c->comm, f32(x, 4), 1));
    if (late) await_end(c, why, sizeof(why));
    CHECK_STATUS(tdm_comm_all_reduce(c->comm, f32(x, 4), TDM_REDUCE_MAX), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "all_reduce (call 3, 4 f32, max): rank ");
    CHECK_HAS(tdm_error_message(), " waited 4000 ms for rank 1");
    CHECK_HAS(tdm_error_message(), ", rank 3");
    CHECK_HAS(tdm_error_message(), "whose last call was broadcast 2");
    /* And it stays ended. */
    CHECK_STATUS(tdm_comm_barrier(c->comm), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "barrier (call 4): rank ");
    CHECK_HAS(tdm_error_message(), "waited 4000 ms for rank 1");
}

TEST(the_missing_are_listed) {
    if (JOBS_ARE_DEAR) SKIP_TEST("it ends by the deadline");
    ranks_run(BACKEND, 4, LIMIT_MS, late_rank, NULL);
}

/* ---- a rank that stops at (rank, sequence) ---- */

typedef struct stop {
    int rank;
    uint64_t sequence;
    bool aborts;
} stop;

enum { STOP_COUNT = 60000 };

static void stopping_rank(rank_context *c) {
    const stop *when = c->user;
    float *data = calloc(STOP_COUNT, sizeof(*data));
    tdm_status status = TDM_OK;
    for (uint64_t call = 1; status == TDM_OK && call <= 12; call++) {
        if (c->rank == when->rank && call == when->sequence) {
            if (when->aborts) tdm_comm_abort(c->comm, "row 7 of the data is damaged");
            tdm_comm_close(c->comm);
            c->comm = NULL;
            free(data);
            return;
        }
        size_t count = call % 3 == 0 ? 1 : STOP_COUNT;
        if (call % 4 == 0)
            status = tdm_comm_broadcast(c->comm, f32(data, count), (int)call % c->world);
        else
            status = tdm_comm_all_reduce(c->comm, f32(data, count), TDM_REDUCE_SUM);
    }
    char wanted[64];
    CHECK_INT(status, TDM_E_COMM);
    CHECK(c->comm->sequence <= when->sequence);
    /* Between hosts the end may arrive before the data of the call before. */
    if (!IS_BETWEEN_HOSTS) CHECK_INT(c->comm->sequence, when->sequence);
    snprintf(wanted, sizeof(wanted), "rank %d", when->rank);
    CHECK_HAS(tdm_error_message(), wanted);
    CHECK_HAS(tdm_error_message(),
              when->aborts ? ": row 7 of the data is damaged" : " has left: it closed its communicator");
    free(data);
}

TEST(a_rank_that_stops_is_named) {
    for (int world = JOBS_ARE_DEAR ? 4 : 2; world <= 4; world += 2) {
        for (uint64_t sequence = 1; sequence <= 5; sequence += JOBS_ARE_DEAR ? 3 : 1) {
            stop when = {.rank = (int)sequence % world, .sequence = sequence, .aborts = sequence % 2 == 0};
            ranks_run(BACKEND, world, TIMEOUT_MS, stopping_rank, &when);
        }
    }
}

/* Whoever has done its part may go; the others still get their result. */
static void leaving_rank(rank_context *c) {
    float x[3] = {1, 2, 3};
    for (int i = 0; i < 50; i++) CHECK_OK(tdm_comm_all_reduce(c->comm, f32(x, 3), TDM_REDUCE_MAX));
    CHECK(x[0] == 1 && x[1] == 2 && x[2] == 3);
}

TEST(leaving_in_the_end_is_no_failure) {
    for (int i = 0; i < (JOBS_ARE_DEAR ? 1 : 20); i++) ranks_run(BACKEND, 3, TIMEOUT_MS, leaving_rank, NULL);
}

/* ---- calls that do not match ---- */

static void mixed_rank(rank_context *c) {
    float x[64] = {0};
    CHECK_OK(tdm_comm_barrier(c->comm));
    tdm_status status = c->rank == 2 ? tdm_comm_broadcast(c->comm, f32(x, 10), 1)
                                     : tdm_comm_all_reduce(c->comm, f32(x, 64), TDM_REDUCE_SUM);
    CHECK_INT(status, TDM_E_USAGE);
    CHECK_TEXT(tdm_error_message(), "ranks make different calls: rank 0 all_reduce (call 2, 64 f32, sum), rank 2 "
                                    "broadcast (call 2, 10 f32, root 1)");
}

static void mixed_count_rank(rank_context *c) {
    float *own = calloc(50000, sizeof(*own));
    CHECK_STATUS(tdm_comm_all_reduce(c->comm, f32(own, c->rank == 1 ? 49999 : 50000), TDM_REDUCE_SUM), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "rank 0 all_reduce (call 1, 50000 f32, sum), rank 1 all_reduce (call 1, 49999 f32");
    free(own);
}

static void mixed_split_rank(rank_context *c) {
    const int a[] = {0, 1}, b[] = {1, 0};
    tdm_comm *group;
    CHECK_STATUS(tdm__comm_split(c->comm, c->rank == 1 ? b : a, 2, &group), TDM_E_USAGE);
    CHECK(group == NULL);
    CHECK_HAS(tdm_error_message(), "with another list of ranks");
}

/* What rank 1 sends to rank 2 is not what rank 2 expects; all other parts match. */
static void mixed_parts_rank(rank_context *c) {
    float in[9] = {0}, out[9];
    size_t to[3] = {3, 3, 3}, from[3] = {3, 3, 3};
    if (c->rank == 2) from[1] = 2;
    CHECK_STATUS(tdm_comm_all_to_all_v(c->comm, f32(in, 9), to, f32(out, c->rank == 2 ? 8 : 9), from), TDM_E_USAGE);
    CHECK_TEXT(tdm_error_message(),
               "parts of all_to_all_v (call 1) differ: rank 1 sends 3 f32 to rank 2, which expects 2");
}

/* As many elements, cut in another way. */
static void mixed_spans_rank(rank_context *c) {
    float x[9] = {0};
    const size_t first = c->rank == 1 ? 4 : 5;
    const tdm_span spans[] = {f32(x, first), f32(x + first, 9 - first)};
    CHECK_STATUS(tdm_comm_all_reduce_coalesced(c->comm, spans, 2, TDM_REDUCE_SUM), TDM_E_USAGE);
    CHECK_TEXT(tdm_error_message(),
               "ranks make different calls: rank 0 all_reduce_coalesced (call 1, 9 f32, sum), rank 1 "
               "all_reduce_coalesced (call 1, 9 f32, sum) with spans of other sizes");
}

/* The ins of an all_gather, and the outs of a reduce_scatter. */
static void mixed_pairs_rank(rank_context *c) {
    float x[9] = {0}, y[27];
    const size_t first = c->rank == 1 ? 4 : 5;
    const tdm_span parts[] = {f32(x, first), f32(x + first, 9 - first)};
    const tdm_span wholes[] = {f32(y, 3 * first), f32(y + 3 * first, 3 * (9 - first))};
    const bool gathers = *(bool *)c->user;
    CHECK_STATUS(gathers ? tdm_comm_all_gather_coalesced(c->comm, parts, wholes, 2)
                         : tdm_comm_reduce_scatter_coalesced(c->comm, wholes, parts, 2, TDM_REDUCE_SUM),
                 TDM_E_USAGE);
    CHECK_TEXT(tdm_error_message(),
               gathers ? "ranks make different calls: rank 0 all_gather_coalesced (call 1, 9 f32), rank 1 "
                         "all_gather_coalesced (call 1, 9 f32) with spans of other sizes"
                       : "ranks make different calls: rank 0 reduce_scatter_coalesced (call 1, 9 f32, sum), rank 1 "
                         "reduce_scatter_coalesced (call 1, 9 f32, sum) with spans of other sizes");
}

TEST(different_calls_are_told_to_all) {
    ranks_run(BACKEND, 3, TIMEOUT_MS, mixed_pairs_rank, &(bool){true});
    ranks_run(BACKEND, 3, TIMEOUT_MS, mixed_pairs_rank, &(bool){false});
    ranks_run(BACKEND, 3, TIMEOUT_MS, mixed_spans_rank, NULL);
    ranks_run(BACKEND, 3, TIMEOUT_MS, mixed_parts_rank, NULL);
    ranks_run(BACKEND, 3, TIMEOUT_MS, mixed_rank, NULL);
    ranks_run(BACKEND, 2, TIMEOUT_MS, mixed_count_rank, NULL);
    ranks_run(BACKEND, 2, TIMEOUT_MS, mixed_split_rank, NULL);
}

/* ---- calls that are refused on one rank ---- */

/* Of several spans or messages. */
static tdm_status wrong_list(tdm_comm *comm, int which) {
    float x[8] = {0};
    double y[4] = {0};
    const tdm_span mixed[] = {f32(x, 8), {y, 4, TDM_DTYPE_F64}}, part = f32(x, 3);
    const tdm_transfer to_self = {1, comm->rank, f32(x, 8)}, to_nobody = {1, 2, f32(x, 8)};
    const tdm_transfer from_nowhere = {0, 1 - comm->rank, f32(NULL, 8)};
    switch (which) {
    case 25:
        return tdm_comm_all_reduce_coalesced(comm, &mixed[1], 0, TDM_REDUCE_SUM);
    case 26:
        return tdm_comm_all_reduce_coalesced(comm, mixed, 2, TDM_REDUCE_SUM);
    case 27:
        return tdm_comm_all_reduce_coalesced(comm, mixed, 1, TDM_REDUCE_BOR);
    case 28:
        return tdm_comm_all_gather_coalesced(comm, mixed, NULL, 1);
    case 29:
        return tdm_comm_all_gather_coalesced(comm, &part, &mixed[0], 1);
    case 30:
        return tdm_comm_reduce_scatter_coalesced(comm, &mixed[0], &part, 1, TDM_REDUCE_SUM);
    case 31:
        return tdm_comm_batch_send_receive(comm, &to_self, 0);
    case 32:
        return tdm_comm_batch_send_receive(comm, &to_self, 1);
    case 33:
        return tdm_comm_batch_send_receive(comm, &to_nobody, 1);
    default:
        return tdm_comm_batch_send_receive(comm, &from_nowhere, 1);
    }
}

static tdm_status wrong_call(tdm_comm *comm, int which) {
    float x[8] = {0};
    double y[4] = {0};
    const int twice[] = {0, 0};
    const size_t twos[] = {2, 2};
    tdm_comm *group;
    void *memory;
    switch (which) {
    case 0:
        return tdm_comm_broadcast(comm, f32(x, 8), 2);
    case 1:
        return tdm_comm_broadcast(comm, f32(x, 8), -1);
    case 2:
        return tdm_comm_all_reduce(comm, f32(NULL, 8), TDM_REDUCE_SUM);
    case 3:
        return tdm_comm_all_reduce(comm, (tdm_span){x, 8, (tdm_dtype)9}, TDM_REDUCE_SUM);
    case 4:
        return tdm_comm_all_reduce(comm, f32(x, 8), TDM_REDUCE_OPS);
    case 5:
        return tdm_comm_all_reduce(comm, (tdm_span){(char *)x + 2, 4, TDM_DTYPE_F32}, TDM_REDUCE_SUM);
    case 6:
        return tdm_comm_all_gather(comm, f32(x, 3), f32(x, 7));
    case 7:
        return tdm_comm_all_gather(comm, f32(x, 2), (tdm_span){y, 4, TDM_DTYPE_F64});
    case 8:
        return tdm_comm_all_reduce(comm, (tdm_span){x, (size_t)-1 / 2, TDM_DTYPE_F32}, TDM_REDUCE_SUM);
    case 9:
        return tdm_comm_send(comm, f32(x, 8), comm->rank);
    case 10:
        return tdm_comm_receive(comm, f32(x, 8), 5);
    case 11:
        return tdm__comm_split(comm, twice, 2, &group);
    case 12:
        return tdm__comm_split(comm, twice, 0, &group);
    case 13:
        return tdm_comm_scatter(comm, f32(x, 8), f32(x, 3), comm->rank);
    case 14:
        return tdm_comm_all_reduce(comm, f32(x, 8), TDM_REDUCE_BXOR);
    case 15:
        return tdm_comm_all_reduce(comm, (tdm_span){y, 4, TDM_DTYPE_I64}, TDM_REDUCE_AVG);
    case 16:
        return tdm_comm_reduce_scatter(comm, f32(x, 7), f32(x, 4), TDM_REDUCE_SUM);
    case 17:
        return tdm_comm_all_to_all(comm, f32(x, 7), f32(x, 7));
    case 18:
        return tdm_comm_all_to_all(comm, f32(x, 4), f32(x, 6));
    case 19:
        return tdm_comm_receive(comm, f32(x, 8), -2);
    case 20:
        return tdm_comm_all_to_all_v(comm, f32(x, 4), NULL, f32(x + 4, 4), twos);
    case 21:
        return tdm_comm_all_to_all_v(comm, f32(x, 4), twos, f32(x + 4, 3), twos);
    case 22:
        return tdm_comm_all_to_all_v(comm, f32(x, 2), (size_t[]){2, (size_t)-1}, f32(x + 4, 4), twos);
    case 23:
        return tdm_comm_all_to_all_v(comm, f32(x, 4), twos, (tdm_span){y, 4, TDM_DTYPE_F64}, twos);
    case 24:
        return tdm_comm_all_to_all_v(comm, f32(x, 4), twos, f32(x + 4, 4), (size_t[]){3, 1});
    case 35:
        return tdm__comm_allocate(comm, (size_t)-1 / 3, &memory);
    default:
        return wrong_list(comm, which);
    }
}
enum { WRONG_CALLS = 36 };

static void refused_rank(rank_context *c) {
    int which = *(int *)c->user;
    bool all = which == WRONG_CALLS - 1;
    if (c->rank == 1 || all) {
        CHECK_STATUS(wrong_call(c->comm, which), all ? TDM_E_MEMORY : TDM_E_USAGE);
        return;
    }
    CHECK_STATUS(tdm_comm_barrier(c->comm), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "barrier (call 1): rank 1: ");
}

TEST(a_refused_call_is_told_to_the_others) {
    for (int which = WRONG_CALLS - 1; which >= 0; which -= JOBS_ARE_DEAR ? WRONG_CALLS / 2 : 1)
        ranks_run(BACKEND, 2, TIMEOUT_MS, refused_rank, &which);
    CHECK_STATUS(tdm_comm_barrier(NULL), TDM_E_USAGE);
    CHECK_STATUS(tdm_comm_all_reduce(NULL, f32(NULL, 0), TDM_REDUCE_SUM), TDM_E_USAGE);
}

/* They are refused without an end: no peer waits. */
static void host_rank(rank_context *c) {
    char why[200];
    CHECK_STATUS(tdm__comm_join(c->comm), TDM_E_UNSUPPORTED);
    CHECK_HAS(tdm_error_message(), "' is not for a device's memory");
    CHECK_STATUS(tdm__comm_wait(c->comm, NULL), TDM_E_UNSUPPORTED);
    CHECK(!tdm__comm_ended(c->comm, why, sizeof(why)));
    CHECK_OK(tdm_comm_barrier(c->comm));
}

TEST(calls_on_a_device_queue) {
    ranks_run(BACKEND, 2, TIMEOUT_MS, host_rank, NULL);
    CHECK_STATUS(tdm__comm_join(NULL), TDM_E_USAGE);
    CHECK_STATUS(tdm__comm_wait(NULL, NULL), TDM_E_USAGE);
    CHECK(!tdm__comm_ended(NULL, NULL, 0));
}

/* ---- messages ---- */

static void message_rank(rank_context *c) {
    float x[8] = {0};
    if (c->rank == 0) {
        CHECK_STATUS(tdm_comm_send(c->comm, f32(x, 8), 1), TDM_E_COMM);
        CHECK_HAS(tdm_error_message(),
                  "send (to 1, 8 f32): rank 1: receive from rank 0: expected 7 f32, but it sends 8");
    } else {
        CHECK_STATUS(tdm_comm_receive(c->comm, f32(x, 7), 0), TDM_E_USAGE);
    }
}

static void deaf_rank(rank_context *c) {
    char why[200];
    float x[8] = {0};
    if (c->rank == 0) {
        CHECK_STATUS(tdm_comm_send(c->comm, f32(x, 8), 1), TDM_E_COMM);
        CHECK_HAS(tdm_error_message(), "send (to 1, 8 f32): rank 0");
        CHECK_HAS(tdm_error_message(), "waited 4000 ms for rank 1");
    } else {
        await_end(c, why, sizeof(why));
    }
}

static void silent_rank(rank_context *c) {
    char why[200];
    float x[8] = {0};
    if (c->rank == 0) {
        CHECK_STATUS(tdm_comm_receive_any(c->comm, f32(x, 8), NULL), TDM_E_COMM);
        CHECK_HAS(tdm_error_message(), "receive (from any rank, 8 f32): rank 0");
        CHECK_HAS(tdm_error_message(), "waited 4000 ms for rank 1");
        CHECK_HAS(tdm_error_message(), ", rank 2");
    } else {
        await_end(c, why, sizeof(why));
    }
}

/* Whoever waits for any rank fails when the last of them has left. */
static void deserted_rank(rank_context *c) {
    float x[8] = {0};
    if (c->rank != 0) {
        tdm_comm_close(c->comm);
        c->comm = NULL;
        return;
    }
    CHECK_STATUS(tdm_comm_receive_any(c->comm, f32(x, 8), NULL), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "has left: it closed its communicator");
}

TEST(messages_that_do_not_fit) {
    ranks_run(BACKEND, 3, TIMEOUT_MS, deserted_rank, NULL);
    ranks_run(BACKEND, 2, TIMEOUT_MS, message_rank, NULL);
    if (JOBS_ARE_DEAR) return;
    ranks_run(BACKEND, 3, LIMIT_MS, silent_rank, NULL);
    ranks_run(BACKEND, 3, LIMIT_MS, deaf_rank, NULL);
}

/* ---- sub-groups ---- */

static void group_fault_rank(rank_context *c) {
    const int first[] = {0, 1}, second[] = {2, 3};
    tdm_comm *a, *b;
    float x[8] = {0};
    REQUIRE_OK(tdm__comm_split(c->comm, first, 2, &a));
    REQUIRE_OK(tdm__comm_split(c->comm, second, 2, &b));
    ranks_meet(c, 4);
    if (c->rank == 3) {
        tdm_comm_abort(b, "no more");
    } else {
        /* The end of one group is the end of the job. */
        tdm_status status = TDM_OK;
        while (status == TDM_OK) status = tdm_comm_all_reduce(a != NULL ? a : b, f32(x, 8), TDM_REDUCE_SUM);
        CHECK_INT(status, TDM_E_COMM);
        CHECK_HAS(tdm_error_message(), "rank 3: no more");
    }
    tdm_comm_close(a);
    tdm_comm_close(b);
}

TEST(a_group_that_ends_ends_the_job) {
    ranks_run(BACKEND, 4, TIMEOUT_MS, group_fault_rank, NULL);
}

/* Groups of equal number that have made as many calls: two of disjoint groups, which know nothing of one another. */
static void split_twice(rank_context *c, tdm_comm **half, tdm_comm **group) {
    static const int first[] = {0, 1}, second[] = {2, 3};
    tdm_comm *a, *b;
    REQUIRE_OK(tdm__comm_split(c->comm, first, 2, &a));
    REQUIRE_OK(tdm__comm_split(c->comm, second, 2, &b));
    *half = a != NULL ? a : b;
    REQUIRE_OK(tdm__comm_split(*half, first, 2, group));
}

/* Ranks 0 and 1 make different calls in their group; rank 2 waits in its own, or in that of all. */
static void bystander_rank(rank_context *c) {
    const bool waits_in_all = *(bool *)c->user;
    tdm_comm *half = NULL, *group = NULL;
    float x[8] = {0};
    char why[200];
    split_twice(c, &half, &group);
    REQUIRE(group != NULL);
    ranks_meet(c, 4);
    if (c->rank < 2) {
        CHECK_STATUS(tdm_comm_all_reduce(group, f32(x, c->rank == 0 ? 8 : 7), TDM_REDUCE_SUM), TDM_E_USAGE);
    } else if (c->rank == 2) {
        tdm_comm *own = waits_in_all ? c->comm : group;
        CHECK_STATUS(tdm_comm_all_reduce(own, f32(x, 8), TDM_REDUCE_SUM), TDM_E_COMM);
        CHECK_HAS(tdm_error_message(),
                  waits_in_all ? "all_reduce (call 3, 8 f32, sum): " : "all_reduce (call 1, 8 f32, sum): ");
        CHECK_HAS(tdm_error_message(), "ranks make different calls: rank 0 all_reduce (call 1, 8 f32, sum), rank 1 "
                                       "all_reduce (call 1, 7 f32, sum)");
    } else {
        await_end(c, why, sizeof(why));
    }
    if (c->rank < 2) {
        CHECK_STATUS(tdm_comm_barrier(group), TDM_E_COMM);
        CHECK_STATUS(tdm_comm_send(group, f32(x, 8), 1 - c->rank), TDM_E_COMM);
    }
    tdm_comm_close(group);
    tdm_comm_close(half);
}

TEST(a_verdict_is_that_of_its_group_alone) {
    ranks_run(BACKEND, 4, TIMEOUT_MS, bystander_rank, &(bool){true});
    ranks_run(BACKEND, 4, TIMEOUT_MS, bystander_rank, &(bool){false});
}

/* ---- asked from the side ---- */

static void asked_rank(rank_context *c) {
    char why[200] = "nothing";
    CHECK(!c->comm->ops->ended(c->comm, why, sizeof(why)));
    CHECK_TEXT(why, "nothing");
    CHECK_OK(tdm_comm_barrier(c->comm));
    ranks_meet(c, 3); /* between hosts an end may overtake the barrier */
    if (c->rank == 1) tdm_comm_abort(c->comm, "row 7 of the data is damaged");
    await_end(c, why, sizeof(why));
    CHECK_TEXT(why, "rank 1: row 7 of the data is damaged");
    char little[8];
    CHECK(c->comm->ops->ended(c->comm, little, sizeof(little)));
    CHECK_TEXT(little, "rank 1:");
}

/* Whoever closes his end and goes does not end the job. */
static void asked_after_leaving_rank(rank_context *c) {
    char why[200];
    CHECK_OK(tdm_comm_barrier(c->comm));
    if (c->rank == 1) return;
    nap(150); /* in most runs it has gone by then */
    CHECK(!c->comm->ops->ended(c->comm, why, sizeof(why)));
}

TEST(the_end_can_be_asked_for) {
    ranks_run(BACKEND, 3, TIMEOUT_MS, asked_rank, NULL);
    ranks_run(BACKEND, 2, TIMEOUT_MS, asked_after_leaving_rank, NULL);
}

/* Longer than a rank may be gone before whoever waits for it is told. */
static void long_nap(void) {
    for (int i = 0; i < 5; i++) nap(500);
}

/* Rank 1 has what it gets from a batch and leaves; rank 2 takes its message much later. */
static void early_leaver(rank_context *c) {
    float x[4] = {(float)c->rank};
    const tdm_transfer batch[] = {{1, 1, f32(x, 4)}, {1, 2, f32(x, 4)}};
    if (c->rank == 2) long_nap();
    CHECK_OK(c->rank == 0 ? tdm_comm_batch_send_receive(c->comm, batch, 2) : tdm_comm_receive(c->comm, f32(x, 4), 0));
    CHECK(x[0] == 0.0f);
    if (c->rank == 1) {
        tdm_comm_close(c->comm);
        c->comm = NULL;
    }
}

TEST(who_has_its_message_may_leave) {
    ranks_run(BACKEND, 3, TIMEOUT_MS, early_leaver, NULL);
}

TEST(arguments_of_opening) {
    tdm_comm *comm[2];
    CHECK_STATUS(tdm_comm_open_threads(comm, 0, tdm_host_default(), 1000), TDM_E_USAGE);
    CHECK_STATUS(tdm_comm_open_threads(comm, TDM_COMM_WORLD_MAX + 1, tdm_host_default(), 1000), TDM_E_USAGE);
    CHECK_STATUS(tdm_comm_open_threads(comm, 2, tdm_host_default(), 0), TDM_E_USAGE);
    tdm_comm_close(NULL);
    tdm_comm_abort(NULL, "nothing");
}

TEST_MAIN({
    RUN(the_missing_are_listed);
    RUN(a_rank_that_stops_is_named);
    RUN(leaving_in_the_end_is_no_failure);
    RUN(different_calls_are_told_to_all);
    RUN(a_refused_call_is_told_to_the_others);
    RUN(calls_on_a_device_queue);
    RUN(messages_that_do_not_fit);
    RUN(a_group_that_ends_ends_the_job);
    RUN(a_verdict_is_that_of_its_group_alone);
    RUN(the_end_can_be_asked_for);
    RUN(who_has_its_message_may_leave);
    RUN(arguments_of_opening);
})
