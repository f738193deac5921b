/* See tcp_store.h.
 *
 * A request is a byte that names it, and its arguments: a number is eight bytes in the machine's order, a text its
 * length as a number, then its bytes. There are two dialects. Since PyTorch 2.2 a connection begins with a magic
 * number, and the names of requests are one higher. Nothing says which dialect a store speaks, so both are tried. */
#include "runtime/comm/meeting/tcp_store.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"

/* As PyTorch 2.1 and older name them. */
typedef enum request { SET = 0, GET = 2, CHECK = 4, WAIT = 5, COUNT_KEYS = 6 } request;

/* TRY_MS: how long one attempt waits for an answer; PAUSE_MS: between attempts. Both double up to their MOST_MS. */
enum { TRY_MS = 1000, TRY_MOST_MS = 16000, PAUSE_MS = 50, PAUSE_MOST_MS = 1000, LOOK_MS = 1000 };
enum { WHERE_TEXT = TDM_HOST_TEXT + 16, WHY_TEXT = 160, MESSAGE_BYTES = 64 + TDM_STORE_KEY_MAX };
/* QUESTIONS: see `greet`. KEYS_MOST: no store has more keys; text, taken for a number, is more. */
enum { QUESTIONS = 4, MAGIC = 0x3C85F7CE };
static const int64_t KEYS_MOST = INT64_C(1) << 32;

struct tdm_tcp_store {
    const tdm_host *host;
    int fd;                 /* -1 after a failure */
    bool is_validated;      /* the dialect since 2.2 */
    char where[WHERE_TEXT]; /* for messages */
};

/* ---- messages to the store ---- */

typedef struct message {
    unsigned char bytes[MESSAGE_BYTES];
    size_t count;
} message;

static void put(message *m, const void *data, size_t bytes) {
    memcpy(m->bytes + m->count, data, bytes);
    m->count += bytes;
}

static void put_number(message *m, uint64_t number) {
    put(m, &number, sizeof(number));
}

static void put_request(message *m, const tdm_tcp_store *store, request name) {
    const unsigned char byte = (unsigned char)(name + (store->is_validated ? 1 : 0));
    put(m, &byte, sizeof(byte));
}

/* PyTorch's client puts a "/" before each key. */
static void put_key(message *m, const char *key) {
    const size_t bytes = strlen(key);
    put_number(m, bytes + 1);
    put(m, "/", 1);
    put(m, key, bytes);
}

/* A request with one key. CHECK and WAIT take several, and want to know how many. */
static message ask(const tdm_tcp_store *store, request name, const char *key) {
    message m = {.count = 0};
    put_request(&m, store, name);
    if (name == CHECK || name == WAIT) put_number(&m, 1);
    put_key(&m, key);
    return m;
}

/* ---- opening ---- */

static void hang_up(tdm_tcp_store *store) {
    if (store->fd >= 0) close(store->fd);
    store->fd = -1;
}

/* Asks in one dialect for the number of keys. Without an answer the store is hung up on, and `why` says what happened.
 *
 * The first bytes must not harm a store of the other dialect. To one of 2.1 or older the first byte is SET, and the
 * eight bytes behind it are the length of a key. It would wait for a short key, and let nobody else in meanwhile. So
 * the question is repeated, which makes that length more than any memory holds: the store drops the connection at once. */
static tdm_status greet(tdm_tcp_store *store, int64_t deadline_ns, char why[WHY_TEXT]) {
    const uint32_t magic = MAGIC;
    message m = {.count = 0};
    if (store->is_validated) {
        put(&m, "", 1);
        put(&m, &magic, sizeof(magic));
    }
    for (int i = 0; i < QUESTIONS; i++) put_request(&m, store, COUNT_KEYS);
    bool is_there = tdm__socket_write(store->fd, m.bytes, m.count, deadline_ns);
    for (int i = 0; i < QUESTIONS && is_there; i++) {
        int64_t keys = 0;
        is_there = tdm__socket_read(store->fd, &keys, sizeof(keys), deadline_ns);
        if (is_there && (keys < 0 || keys > KEYS_MOST))
            TDM_FAIL(TDM_E_COMM,
                     "at %s there is no store of PyTorch: what listens there answers something else; MASTER_ADDR and "
                     "MASTER_PORT must say where torchrun's agent listens",
                     store->where);
    }
    if (is_there) return TDM_OK;
    snprintf(why, WHY_TEXT, "%s",
             tdm__now_ns() < deadline_ns ? "what listens there closes the connection without an answer"
                                         : "what listens there does not answer");
    hang_up(store);
    return TDM_OK;
}

/* Both dialects once. store->fd < 0 afterwards: no store has answered, and `why` says what happened. */
static tdm_status try_open(tdm_tcp_store *store, const tdm_endpoint *at, int64_t ms, int64_t deadline_ns,
                           char why[WHY_TEXT]) {
    for (int dialect = 1; dialect >= 0; dialect--) {
        const int64_t until = tdm__sooner_ns(deadline_ns, ms), left = (until - tdm__now_ns()) / 1000000;
        TDM_TRY(tdm__socket_connect(&store->fd, at, left > 0 ? left : 0, why, WHY_TEXT));
        if (store->fd < 0) return TDM_OK;
        store->is_validated = dialect == 1;
        TDM_TRY(greet(store, until, why));
        if (store->fd >= 0) return TDM_OK;
    }
    return TDM_OK;
}

static void pause_until(int64_t deadline_ns) {
    const int64_t ns = deadline_ns - tdm__now_ns();
    const struct timespec time = tdm__timespec(ns);
    if (ns > 0) (void)nanosleep(&time, NULL);
}

/* Closed connections and silence are tried again, too: a proxy in front of an agent that has not started does that. */
static tdm_status open_store(tdm_tcp_store *store, const tdm_endpoint *at, int64_t deadline_ns) {
    char why[WHY_TEXT] = "", latest[WHY_TEXT] = "";
    int seconds;
    tdm_reminder reminder = tdm__reminder_start();
    for (int64_t ms = TRY_MS, pause = PAUSE_MS;;) {
        TDM_TRY(try_open(store, at, ms, deadline_ns, latest));
        if (store->fd >= 0) return TDM_OK;
        /* An attempt that the deadline has cut short says less than the one before. */
        const bool is_over = tdm__now_ns() >= deadline_ns;
        if (!is_over || why[0] == '\0') memcpy(why, latest, sizeof(why));
        if (is_over) break;
        if (tdm__reminder_is_due(&reminder, tdm__now_ns(), &seconds))
            TDM_WARN(store->host, "comm",
                     "PyTorch's store at %s has not answered for %d s: %s; is torchrun's agent there?", store->where,
                     seconds, why);
        pause_until(tdm__sooner_ns(deadline_ns, pause));
        pause = pause * 2 < PAUSE_MOST_MS ? pause * 2 : PAUSE_MOST_MS;
        ms = ms * 2 < TRY_MOST_MS ? ms * 2 : TRY_MOST_MS;
    }
    TDM_FAIL(
        TDM_E_COMM,
        "PyTorch's store at %s: %s (tried for %.1f s); is torchrun's agent there? MASTER_ADDR and MASTER_PORT must "
        "say where it listens",
        store->where, why, tdm__ms_since(reminder.start_ns) / 1000);
}

tdm_status tdm__tcp_store_open(tdm_tcp_store **out, const tdm_endpoint *at, const tdm_host *host, int64_t deadline_ns) {
    tdm_tcp_store *store;
    *out = NULL;
    TDM_TRY(tdm__new(host, &store, 1, sizeof(*store), "PyTorch's store"));
    store->host = host;
    store->fd = -1;
    tdm__endpoint_print(store->where, sizeof(store->where), at);
    TDM_TRY_ELSE(open_store(store, at, deadline_ns), tdm__tcp_store_close(store));
    *out = store;
    return TDM_OK;
}

void tdm__tcp_store_close(tdm_tcp_store *store) {
    if (store == NULL) return;
    hang_up(store);
    tdm__delete(store->host, store);
}

/* ---- requests ---- */

static tdm_status check_call(const tdm_tcp_store *store, const char *key) {
    const size_t bytes = strlen(key);
    if (bytes == 0 || bytes > TDM_STORE_KEY_MAX)
        TDM_FAIL(TDM_E_USAGE, "PyTorch's store at %s: a key has 1 to %d bytes, not %zu", store->where,
                 (int)TDM_STORE_KEY_MAX, bytes);
    if (store->fd < 0)
        TDM_FAIL(TDM_E_COMM, "PyTorch's store at %s: the connection has ended with an earlier failure", store->where);
    return TDM_OK;
}

/* What is still under way would be taken for the answer to the next request, so the connection ends, too. */
static tdm_status lose(tdm_tcp_store *store, const char *key, int64_t deadline_ns) {
    const bool is_late = tdm__now_ns() >= deadline_ns;
    hang_up(store);
    if (is_late)
        TDM_FAIL(TDM_E_COMM, "PyTorch's store at %s does not answer about '%s'; is torchrun's agent stopped or frozen?",
                 store->where, key);
    TDM_FAIL(TDM_E_COMM, "PyTorch's store at %s has closed the connection at '%s'; has torchrun's agent ended?",
             store->where, key);
}

static tdm_status send_to(tdm_tcp_store *store, const message *m, const char *key, int64_t deadline_ns) {
    return tdm__socket_write(store->fd, m->bytes, m->count, deadline_ns) ? TDM_OK : lose(store, key, deadline_ns);
}

static tdm_status receive(tdm_tcp_store *store, void *data, size_t bytes, const char *key, int64_t deadline_ns) {
    return tdm__socket_read(store->fd, data, bytes, deadline_ns) ? TDM_OK : lose(store, key, deadline_ns);
}

/* The answer to CHECK and WAIT is a byte: 0 says that the key is there. */
static tdm_status expect_key(tdm_tcp_store *store, const char *key, int64_t deadline_ns) {
    unsigned char answer = 0;
    TDM_TRY(receive(store, &answer, sizeof(answer), key, deadline_ns));
    if (answer == 0) return TDM_OK;
    hang_up(store);
    TDM_FAIL(TDM_E_COMM, "PyTorch's store at %s does not have '%s', which was set (it answers %d)", store->where, key,
             answer);
}

tdm_status tdm__tcp_store_set(tdm_tcp_store *store, const char *key, const void *value, size_t bytes,
                              int64_t deadline_ns) {
    TDM_TRY(check_call(store, key));
    if (bytes > TDM_STORE_VALUE_MAX)
        TDM_FAIL(TDM_E_USAGE, "PyTorch's store at %s: a value has at most %d bytes, not %zu", store->where,
                 (int)TDM_STORE_VALUE_MAX, bytes);
    message set = ask(store, SET, key);
    put_number(&set, bytes);
    TDM_TRY(send_to(store, &set, key, deadline_ns));
    if (!tdm__socket_write(store->fd, value, bytes, deadline_ns)) return lose(store, key, deadline_ns);
    /* SET has no answer. CHECK comes after it, so its answer says that the value has arrived. */
    const message check = ask(store, CHECK, key);
    TDM_TRY(send_to(store, &check, key, deadline_ns));
    return expect_key(store, key, deadline_ns);
}

/* The store answers when the key is there, and not before. */
static tdm_status await_key(tdm_tcp_store *store, const char *key, int64_t deadline_ns) {
    int seconds;
    tdm_reminder reminder = tdm__reminder_start();
    const message wait = ask(store, WAIT, key);
    TDM_TRY(send_to(store, &wait, key, deadline_ns));
    while (!tdm__socket_readable(store->fd, tdm__sooner_ns(deadline_ns, LOOK_MS))) {
        const int64_t now = tdm__now_ns();
        if (now >= deadline_ns) {
            hang_up(store);
            TDM_FAIL(TDM_E_COMM,
                     "PyTorch's store at %s: nobody has set '%s' in %.1f s; the rank that sets it has not come so far, "
                     "or is of another job",
                     store->where, key, tdm__ms_since(reminder.start_ns) / 1000);
        }
        if (tdm__reminder_is_due(&reminder, now, &seconds))
            TDM_WARN(store->host, "comm", "PyTorch's store at %s: nobody has set '%s' for %d s", store->where, key,
                     seconds);
    }
    return expect_key(store, key, deadline_ns);
}

tdm_status tdm__tcp_store_get(tdm_tcp_store *store, const char *key, void *value, size_t *bytes, int64_t deadline_ns) {
    uint64_t length = 0;
    TDM_TRY(check_call(store, key));
    TDM_TRY(await_key(store, key, deadline_ns));
    const message get = ask(store, GET, key);
    TDM_TRY(send_to(store, &get, key, deadline_ns));
    TDM_TRY(receive(store, &length, sizeof(length), key, deadline_ns));
    if (length > *bytes) {
        hang_up(store);
        TDM_FAIL(
            TDM_E_COMM,
            "PyTorch's store at %s: the value of '%s' has %llu bytes, where at most %zu were expected; has another "
            "program set it?",
            store->where, key, (unsigned long long)length, *bytes);
    }
    TDM_TRY(receive(store, value, (size_t)length, key, deadline_ns));
    *bytes = (size_t)length;
    return TDM_OK;
}
