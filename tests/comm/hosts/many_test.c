/* Calls among more ranks than talk to each other directly (TDM_HOSTS_FEW). Ranks are threads here, and their transport
 * a list of messages in memory: what is tested is who sends what to whom. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/comm/hosts/hosts.h"
#include "runtime/comm/hosts/hosts_open.h"
#include "tests/comm/values.h"
#include "tests/support/tdm_test.h"

enum { RANKS_MOST = 33, TIMEOUT_MS = 60000, COUNT = 3000, STACK = 512 * 1024 };

/* ---- a transport in memory ---- */

typedef struct letter {
    struct letter *next;
    int from, to;
    uint32_t tag;
    size_t bytes;
    unsigned char data[];
} letter;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t change;
    letter *first;
    int letters; /* all that were ever sent */
    bool is_aborted;
} post = {.mutex = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static void send_letter(int from, const tdm_message *m) {
    letter *l = malloc(sizeof(*l) + m->bytes), **end = &post.first;
    if (l == NULL) abort();
    *l = (letter){.from = from, .to = m->peer, .tag = m->tag, .bytes = m->bytes};
    memcpy(l->data, m->data, m->bytes);
    while (*end != NULL) end = &(*end)->next;
    *end = l;
    post.letters++;
    pthread_cond_broadcast(&post.change);
}

typedef struct begun {
    struct begun *next;
    int from;
    tdm_message message;
} begun;
static begun *all_begun; /* sends that no `exchange` has named yet; guarded by post.mutex */

static void begin_post(tdm_transport *t, const tdm_message *message, int count) {
    pthread_mutex_lock(&post.mutex);
    for (int i = 0; i < count; i++) {
        if (!message[i].sends) continue;
        begun *b = malloc(sizeof(*b));
        if (b == NULL) abort();
        *b = (begun){all_begun, t->rank, message[i]};
        all_begun = b;
        send_letter(t->rank, &message[i]);
    }
    pthread_mutex_unlock(&post.mutex);
}

static bool take_begun(int from, const tdm_message *m) {
    for (begun **at = &all_begun; *at != NULL; at = &(*at)->next) {
        begun *b = *at;
        if (b->from != from || b->message.peer != m->peer || b->message.tag != m->tag || b->message.data != m->data)
            continue;
        *at = b->next;
        free(b);
        return true;
    }
    return false;
}

static void forget_post(tdm_transport *t, uint32_t tag) {
    (void)t, (void)tag;
}

static bool receive_letter(int to, const tdm_message *m) {
    letter **at = &post.first;
    while (*at != NULL && ((*at)->to != to || (*at)->from != m->peer || (*at)->tag != m->tag)) at = &(*at)->next;
    letter *l = *at;
    if (l == NULL) return false;
    CHECK_INT(l->bytes, m->bytes);
    memcpy(m->data, l->data, m->bytes);
    *at = l->next;
    free(l);
    return true;
}

static tdm_status exchange(tdm_transport *t, const tdm_message *message, int count, int *lost) {
    *lost = -1;
    pthread_mutex_lock(&post.mutex);
    for (int i = 0; i < count; i++)
        if (message[i].sends && !take_begun(t->rank, &message[i])) send_letter(t->rank, &message[i]);
    for (int i = 0; i < count; i++)
        while (!message[i].sends && !post.is_aborted && !receive_letter(t->rank, &message[i]))
            pthread_cond_wait(&post.change, &post.mutex);
    const bool is_aborted = post.is_aborted;
    pthread_mutex_unlock(&post.mutex);
    if (is_aborted) TDM_FAIL(TDM_E_COMM, "the job has ended");
    return TDM_OK;
}

static tdm_status open_post(tdm_transport **out, const tdm_host *host, int rank, int world, const char *interface,
                            int64_t timeout_ms, int64_t silence_ms, void *addresses);

static tdm_status connect_post(tdm_transport *transport, const void *addresses) {
    (void)transport, (void)addresses;
    return TDM_OK;
}

static void abort_post(tdm_transport *transport) {
    (void)transport;
    pthread_mutex_lock(&post.mutex);
    post.is_aborted = true;
    pthread_cond_broadcast(&post.change);
    pthread_mutex_unlock(&post.mutex);
}

static void close_post(tdm_transport *transport) {
    free(transport);
}

static const tdm_transport_ops post_ops = {"post",     1,           open_post,  connect_post, exchange,
                                           begin_post, forget_post, abort_post, close_post};

static tdm_status open_post(tdm_transport **out, const tdm_host *host, int rank, int world, const char *interface,
                            int64_t timeout_ms, int64_t silence_ms, void *addresses) {
    (void)interface, (void)timeout_ms, (void)silence_ms;
    memset(addresses, 0, (size_t)world);
    *out = malloc(sizeof(**out));
    if (*out == NULL) abort();
    **out = (tdm_transport){&post_ops, host, rank, world};
    return TDM_OK;
}

/* ---- ranks ---- */

typedef struct many {
    pthread_t thread;
    int rank, world;
    const char *folder;
    void (*work)(tdm_comm *comm);
} many;

static void *run_rank(void *argument) {
    const many *m = argument;
    char place[128];
    tdm_comm *comm;
    tdm_hosts_options options = TDM_HOSTS_OPTIONS_INIT;
    const tdm_launch_facts facts = {.size = sizeof(facts),
                                    .source = TDM_LAUNCH_TORCHRUN,
                                    .rank = m->rank,
                                    .world = m->world,
                                    .local_world = 1,
                                    .job = "many",
                                    .fd = -1};
    snprintf(place, sizeof(place), "file://%s/place", m->folder);
    options.init_method = place;
    options.interface = "lo";
    options.timeout_ms = TIMEOUT_MS;
    options.host = tdm_host_default();
    CHECK_OK(tdm__hosts_open(&comm, &post_ops, &facts, &options));
    if (comm != NULL) m->work(comm);
    tdm_comm_close(comm);
    return NULL;
}

static void run(int world, void (*work)(tdm_comm *comm)) {
    many all[RANKS_MOST];
    char folder[] = "/tmp/tandem-test-XXXXXX";
    pthread_attr_t attributes;
    REQUIRE(mkdtemp(folder) != NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    post.is_aborted = false;
    for (int r = 0; r < world; r++) {
        all[r] = (many){.rank = r, .world = world, .folder = folder, .work = work};
        REQUIRE(pthread_create(&all[r].thread, &attributes, run_rank, &all[r]) == 0);
    }
    for (int r = 0; r < world; r++) pthread_join(all[r].thread, NULL);
    pthread_attr_destroy(&attributes);
    while (post.first != NULL) { /* those of a job that has failed */
        letter *next = post.first->next;
        free(post.first);
        post.first = next;
    }
    CHECK(rmdir(folder) == 0);
}

/* ---- sums and broadcasts ---- */

static void put_rough(float *data, int rank) {
    for (size_t i = 0; i < COUNT; i++) data[i] = rough(rank, i);
}

static size_t wrong_sums(const float *data, size_t count, int world) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const float want = tree_sum(0, world, i);
        wrong += memcmp(&data[i], &want, sizeof(want)) != 0;
    }
    return wrong;
}

static void sums_rank(tdm_comm *comm) {
    float data[COUNT], own[COUNT];
    const int world = tdm_comm_world(comm), rank = tdm_comm_rank(comm);
    put_rough(own, rank);
    for (size_t count = 5; count <= COUNT; count += COUNT - 5) { /* in the entries, and beside them */
        memcpy(data, own, sizeof(data));
        CHECK_OK(tdm_comm_all_reduce(comm, (tdm_span){data, count, TDM_DTYPE_F32}, TDM_REDUCE_SUM));
        CHECK_INT(wrong_sums(data, count, world), 0);
    }
    for (int root = 0; root < world; root += 7) {
        memcpy(data, own, sizeof(data));
        CHECK_OK(tdm_comm_reduce(comm, (tdm_span){data, COUNT, TDM_DTYPE_F32}, root, TDM_REDUCE_SUM));
        CHECK(rank == root ? wrong_sums(data, COUNT, world) == 0 : memcmp(data, own, sizeof(data)) == 0);
        if (rank != root) memset(data, 0, sizeof(data));
        CHECK_OK(tdm_comm_broadcast(comm, (tdm_span){data, COUNT, TDM_DTYPE_F32}, root));
        CHECK_INT(wrong_sums(data, COUNT, world), 0);
    }
}

/* Those whose partial sums are not whole numbers of their type go the other way. */
static void others_rank(tdm_comm *comm) {
    double data[COUNT];
    const int world = tdm_comm_world(comm), rank = tdm_comm_rank(comm);
    const struct {
        tdm_dtype dtype;
        tdm_reduce_op op;
    } each[] = {{TDM_DTYPE_BF16, TDM_REDUCE_MAX}, {TDM_DTYPE_F64, TDM_REDUCE_AVG}, {TDM_DTYPE_I32, TDM_REDUCE_BOR}};
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < COUNT; i++) put(data, i, each[k].dtype, input(rank, i, each[k].op));
        CHECK_OK(tdm_comm_all_reduce(comm, (tdm_span){data, COUNT, each[k].dtype}, each[k].op));
        CHECK_INT(first_wrong(data, COUNT, each[k].dtype, world, each[k].op), COUNT);
    }
}

TEST(sums_and_broadcasts_of_many_ranks) {
    run(TDM_HOSTS_FEW + 1, sums_rank);
    run(32, sums_rank);
    run(RANKS_MOST, sums_rank);
    run(20, others_rank);
}

/* ---- entries ---- */

static void barrier_rank(tdm_comm *comm) {
    for (int i = 0; i < 4; i++) CHECK_OK(tdm_comm_barrier(comm));
}

static int letters_of(int world, void (*work)(tdm_comm *comm)) {
    const int before = post.letters;
    run(world, work);
    return post.letters - before;
}

TEST(entries_go_in_rounds) {
    CHECK_INT(letters_of(TDM_HOSTS_FEW, barrier_rank), 4 * TDM_HOSTS_FEW * (TDM_HOSTS_FEW - 1));
    /* Five rounds; in each but the first some members' blocks go round the end, in two messages. */
    CHECK_INT(letters_of(32, barrier_rank), 4 * (32 * 5 + 1 + 3 + 7 + 15));
}

static void other_call_rank(tdm_comm *comm) {
    int32_t one = 1;
    const tdm_status status =
        tdm_comm_rank(comm) == 11 ? tdm_comm_all_reduce(comm, i32(&one, 1), TDM_REDUCE_SUM) : tdm_comm_barrier(comm);
    CHECK_INT(status, TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "rank 11");
    CHECK_HAS(tdm_error_message(), "all_reduce");
}

TEST(another_call_of_one_of_many_is_told_to_all) {
    run(20, other_call_rank);
}

TEST_MAIN({
    RUN(sums_and_broadcasts_of_many_ranks);
    RUN(entries_go_in_rounds);
    RUN(another_call_of_one_of_many_is_told_to_all);
})
