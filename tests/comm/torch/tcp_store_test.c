/* The client of PyTorch's TCPStore, against a small store in both of its dialects, and against what is no store. */
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "runtime/comm/meeting/tcp_store.h"
#include "tests/comm/torch/fake_store.h"
#include "tests/support/tdm_failing_host.h"
#include "tests/support/tdm_test.h"

/* LONG_MS: a limit that no test reaches. SHORT_MS: one that a test waits for. ONCE_MS: the same, with time for an
 * answer on a busy machine. */
enum { LONG_MS = 60000, SHORT_MS = 300, ONCE_MS = 1500 };

static int64_t in_ms(int64_t ms) {
    return tdm__deadline_ns(tdm__now_ns(), ms);
}

static tdm_endpoint endpoint_of(const fake_store *fake) {
    tdm_endpoint at = {.port = fake->port};
    snprintf(at.host, sizeof(at.host), "%s", fake->is_v6 ? "::1" : "127.0.0.1");
    return at;
}

static tdm_status open_to(tdm_tcp_store **store, const fake_store *fake, int64_t ms) {
    const tdm_endpoint at = endpoint_of(fake);
    return tdm__tcp_store_open(store, &at, tdm_host_default(), in_ms(ms));
}

static tdm_status set_text(tdm_tcp_store *store, const char *key, const char *value) {
    return tdm__tcp_store_set(store, key, value, strlen(value), in_ms(LONG_MS));
}

/* "127.0.0.1:port", which messages must have. */
static void check_where(const fake_store *fake) {
    char where[64];
    const tdm_endpoint at = endpoint_of(fake);
    tdm__endpoint_print(where, sizeof(where), &at);
    CHECK_HAS(tdm_error_message(), where);
}

/* ---- a store that works ---- */

/* Sets, gets, replaces; an empty value; one that just fits. */
static void use(const fake_store *fake) {
    tdm_tcp_store *a, *b;
    char value[8] = "";
    size_t bytes = sizeof(value);
    REQUIRE_OK(open_to(&a, fake, LONG_MS));
    REQUIRE_OK(open_to(&b, fake, LONG_MS));
    CHECK_OK(set_text(a, "job/address", "one"));
    CHECK_OK(tdm__tcp_store_get(b, "job/address", value, &bytes, in_ms(LONG_MS)));
    CHECK_INT(bytes, 3);
    CHECK(memcmp(value, "one", 3) == 0);
    CHECK_OK(set_text(b, "job/address", "12345678"));
    CHECK_OK(set_text(b, "empty", ""));
    bytes = sizeof(value);
    CHECK_OK(tdm__tcp_store_get(a, "job/address", value, &bytes, in_ms(LONG_MS)));
    CHECK_INT(bytes, 8);
    CHECK(memcmp(value, "12345678", 8) == 0);
    CHECK_OK(tdm__tcp_store_get(a, "empty", value, &bytes, in_ms(LONG_MS)));
    CHECK_INT(bytes, 0);
    tdm__tcp_store_close(a);
    tdm__tcp_store_close(b);
}

static void check_kind(fake_kind kind) {
    fake_store fake = {.kind = kind};
    REQUIRE(fake_store_bind(&fake));
    fake_store_listen(&fake);
    use(&fake);
    fake_store_close(&fake);
    CHECK_INT(fake.stalls, 0);
    const fake_entry *entry = fake_store_find(&fake, "/job/address"); /* as Python's client would have set it */
    REQUIRE(entry != NULL);
    CHECK_INT(entry->bytes, 8);
}

TEST(validated) {
    check_kind(FAKE_VALIDATED);
}

/* An old store is asked in the newer dialect first. It must drop that visitor, and not wait for more bytes of it. */
TEST(plain) {
    check_kind(FAKE_PLAIN);
}

/* Silence about the newer dialect is no reason to give up, either. */
TEST(patient) {
    check_kind(FAKE_PATIENT);
}

TEST(ipv6) {
    fake_store fake = {.kind = FAKE_VALIDATED, .is_v6 = true};
    if (!fake_store_bind(&fake)) SKIP_TEST("this machine has no IPv6");
    fake_store_listen(&fake);
    use(&fake);
    fake_store_close(&fake);
}

/* ---- waiting ---- */

typedef struct reader {
    const fake_store *fake;
    tdm_status status;
    char value[8];
    size_t bytes;
} reader;

static void *read_later(void *user) {
    reader *r = user;
    tdm_tcp_store *store;
    r->status = open_to(&store, r->fake, LONG_MS);
    if (r->status != TDM_OK) return NULL;
    r->bytes = sizeof(r->value);
    r->status = tdm__tcp_store_get(store, "late", r->value, &r->bytes, in_ms(LONG_MS));
    tdm__tcp_store_close(store);
    return NULL;
}

static void wait_for_key(fake_kind kind) {
    pthread_t thread;
    tdm_tcp_store *store;
    fake_store fake = {.kind = kind};
    reader r = {.fake = &fake};
    REQUIRE(fake_store_bind(&fake));
    fake_store_listen(&fake);
    REQUIRE_OK(open_to(&store, &fake, LONG_MS));
    pthread_create(&thread, NULL, read_later, &r);
    while (fake.waiting == 0) usleep(1000);
    CHECK_OK(set_text(store, "late", "here"));
    pthread_join(thread, NULL);
    CHECK_INT(r.status, TDM_OK);
    CHECK_INT(r.bytes, 4);
    CHECK(memcmp(r.value, "here", 4) == 0);
    tdm__tcp_store_close(store);
    fake_store_close(&fake);
}

TEST(key_that_comes_later) {
    wait_for_key(FAKE_VALIDATED);
    wait_for_key(FAKE_PLAIN);
}

/* The agent may start after the rank. */
TEST(store_that_comes_later) {
    pthread_t thread;
    tdm_tcp_store *store;
    fake_store fake = {.kind = FAKE_VALIDATED};
    reader r = {.fake = &fake};
    REQUIRE(fake_store_bind(&fake));
    pthread_create(&thread, NULL, read_later, &r);
    usleep(200000); /* for a few refused attempts */
    fake_store_listen(&fake);
    REQUIRE_OK(open_to(&store, &fake, LONG_MS));
    CHECK_OK(set_text(store, "late", "here"));
    pthread_join(thread, NULL);
    CHECK_INT(r.status, TDM_OK);
    tdm__tcp_store_close(store);
    fake_store_close(&fake);
}

TEST(key_that_never_comes) {
    tdm_tcp_store *store;
    char value[8];
    size_t bytes = sizeof(value);
    fake_store fake = {.kind = FAKE_VALIDATED};
    REQUIRE(fake_store_bind(&fake));
    fake_store_listen(&fake);
    REQUIRE_OK(open_to(&store, &fake, LONG_MS));
    CHECK_STATUS(tdm__tcp_store_get(store, "never", value, &bytes, in_ms(SHORT_MS)), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "nobody has set 'never' in ");
    check_where(&fake);
    /* What the store still owes for the first call must not answer the second. */
    CHECK_STATUS(set_text(store, "other", "x"), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "has ended with an earlier failure");
    tdm__tcp_store_close(store);
    fake_store_close(&fake);
}

/* ---- long waits ---- */

/* PATIENCE_MS: a wait warns after five seconds. */
enum { PATIENCE_MS = 6000 };

typedef struct listener {
    tdm_host host;
    tdm_endpoint at;
    bool gets; /* waits for a key, else for the store */
    int lines;
    char line[300];
} listener;

static void keep_line(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    listener *l = user;
    CHECK_INT(level, TDM_LOG_WARNING);
    CHECK_TEXT(subsystem, "comm");
    l->lines++;
    snprintf(l->line, sizeof(l->line), "%s", line);
}

static void *wait_long(void *user) {
    listener *l = user;
    tdm_tcp_store *store;
    char value[8];
    size_t bytes = sizeof(value);
    l->host = *tdm_host_default();
    l->host.log = keep_line;
    l->host.log_level = TDM_LOG_WARNING;
    l->host.user = l;
    const tdm_status status = tdm__tcp_store_open(&store, &l->at, &l->host, in_ms(l->gets ? LONG_MS : PATIENCE_MS));
    CHECK_INT(status, l->gets ? TDM_OK : TDM_E_COMM);
    if (status == TDM_OK) CHECK_STATUS(tdm__tcp_store_get(store, "k", value, &bytes, in_ms(PATIENCE_MS)), TDM_E_COMM);
    tdm__tcp_store_close(store);
    return NULL;
}

TEST(warnings) {
    pthread_t thread;
    fake_store fake = {.kind = FAKE_VALIDATED}, none = fake;
    REQUIRE(fake_store_bind(&fake) && fake_store_bind(&none));
    fake_store_listen(&fake);
    listener key = {.at = endpoint_of(&fake), .gets = true}, agent = {.at = endpoint_of(&none)};
    pthread_create(&thread, NULL, wait_long, &agent);
    wait_long(&key);
    pthread_join(thread, NULL);
    CHECK_INT(key.lines, 1);
    CHECK_HAS(key.line, "nobody has set 'k' for ");
    CHECK_INT(agent.lines, 1);
    CHECK_HAS(agent.line, " s: Connection refused; is torchrun's agent there?");
    fake_store_listen(&none);
    fake_store_close(&none);
    fake_store_close(&fake);
}

/* ---- no store ---- */

static void open_fails(fake_store *fake, int64_t ms, const char *says) {
    tdm_tcp_store *store;
    REQUIRE(fake_store_bind(fake));
    fake_store_listen(fake);
    CHECK_STATUS(open_to(&store, fake, ms), TDM_E_COMM);
    CHECK(store == NULL);
    CHECK_HAS(tdm_error_message(), says);
    CHECK_HAS(tdm_error_message(), "torchrun's agent");
    check_where(fake);
    fake_store_close(fake);
}

TEST(nobody_listens) {
    tdm_tcp_store *store;
    fake_store fake = {.kind = FAKE_PLAIN};
    REQUIRE(fake_store_bind(&fake));
    CHECK_STATUS(open_to(&store, &fake, SHORT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "Connection refused (tried for ");
    check_where(&fake);
    fake_store_listen(&fake);
    fake_store_close(&fake);
}

TEST(unknown_host) {
    tdm_tcp_store *store;
    const tdm_endpoint at = {.host = "no such host", .port = 1};
    CHECK_STATUS(tdm__tcp_store_open(&store, &at, tdm_host_default(), in_ms(0)), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "PyTorch's store at no such host:1: the host's name cannot be looked up");
}

TEST(closing) {
    open_fails(&(fake_store){.kind = FAKE_SCRIPT, .script = "", .closes = true}, ONCE_MS,
               "what listens there closes the connection without an answer");
    open_fails(&(fake_store){.kind = FAKE_SCRIPT, .script = "short", .script_bytes = 5, .closes = true}, ONCE_MS,
               "what listens there closes the connection without an answer");
}

TEST(silent) {
    open_fails(&(fake_store){.kind = FAKE_SCRIPT, .script = ""}, SHORT_MS, "what listens there does not answer");
}

/* What is certainly no store is refused at once, whatever time is left. */
TEST(garbage) {
    static const struct {
        const char *bytes;
        size_t count;
    } answers[] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", 28},
        {"SSH-2.0-OpenSSH_9.2p1\r\n", 23},
        {"\xff\xff\xff\xff\xff\xff\xff\xff", 8},              /* -1 */
        {"\x00\x00\x00\x00\x00\x00\x00\x80", 8},              /* the least */
        {"\x01\x00\x00\x00\x01\x00\x00\x00", 8},              /* 2^32 + 1 */
        {"\x00\xce\xf7\x85\x3c\x07\x07\x07\x07", 9},          /* an echo */
        {"\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0garbage!", 24}, /* two good answers, then another */
    };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        fake_store fake = {.kind = FAKE_SCRIPT, .script = answers[i].bytes, .script_bytes = answers[i].count};
        open_fails(&fake, LONG_MS, "there is no store of PyTorch");
    }
}

/* ---- a store that fails later ---- */

static void fails(fake_fault fault, bool at_set, const char *says) {
    tdm_tcp_store *store;
    char value[8] = "untouch";
    size_t bytes = sizeof(value);
    fake_store fake = {.kind = FAKE_VALIDATED, .fault = fault};
    REQUIRE(fake_store_bind(&fake));
    fake_store_listen(&fake);
    REQUIRE_OK(open_to(&store, &fake, LONG_MS));
    tdm_status status = set_text(store, "k", "value");
    if (!at_set) {
        CHECK_OK(status);
        status =
            tdm__tcp_store_get(store, "k", value, &bytes, in_ms(fault == FAULT_SILENT_AT_GET ? SHORT_MS : LONG_MS));
    }
    CHECK_INT(status, TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), says);
    CHECK_HAS(tdm_error_message(), "'k'");
    check_where(&fake);
    CHECK_STATUS(tdm__tcp_store_get(store, "k", value, &bytes, in_ms(LONG_MS)), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "has ended with an earlier failure");
    CHECK_INT(bytes, sizeof(value));
    tdm__tcp_store_close(store);
    fake_store_close(&fake);
}

TEST(faults) {
    fails(FAULT_CLOSE_AT_SET, true, "has closed the connection");
    fails(FAULT_IGNORE_SET, true, "which was set (it answers 1)");
    fails(FAULT_CLOSE_AT_WAIT, false, "has closed the connection");
    fails(FAULT_WAIT_CANCELLED, false, "(it answers 1)");
    fails(FAULT_CLOSE_AT_GET, false, "has closed the connection");
    fails(FAULT_SILENT_AT_GET, false, "does not answer about");
    fails(FAULT_SHORT_VALUE, false, "has closed the connection");
    fails(FAULT_HUGE_VALUE, false, "has 9223372036854775809 bytes, where at most 8 were expected");
}

TEST(value_longer_than_its_room) {
    tdm_tcp_store *store;
    char value[8] = "abcdefg";
    size_t bytes = 4;
    fake_store fake = {.kind = FAKE_PLAIN};
    REQUIRE(fake_store_bind(&fake));
    fake_store_listen(&fake);
    REQUIRE_OK(open_to(&store, &fake, LONG_MS));
    CHECK_OK(set_text(store, "k", "12345"));
    CHECK_STATUS(tdm__tcp_store_get(store, "k", value, &bytes, in_ms(LONG_MS)), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "the value of 'k' has 5 bytes, where at most 4 were expected");
    CHECK_TEXT(value, "abcdefg");
    tdm__tcp_store_close(store);
    fake_store_close(&fake);
}

/* ---- the caller ---- */

TEST(misuse) {
    tdm_tcp_store *store;
    char key[TDM_STORE_KEY_MAX + 2] = "";
    fake_store fake = {.kind = FAKE_VALIDATED};
    REQUIRE(fake_store_bind(&fake));
    fake_store_listen(&fake);
    REQUIRE_OK(open_to(&store, &fake, LONG_MS));
    CHECK_STATUS(set_text(store, "", "x"), TDM_E_USAGE);
    memset(key, 'k', sizeof(key) - 1);
    CHECK_STATUS(set_text(store, key, "x"), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "a key has 1 to 256 bytes, not 257");
    CHECK_STATUS(tdm__tcp_store_set(store, "k", key, TDM_STORE_VALUE_MAX + 1, in_ms(LONG_MS)), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "a value has at most 8388608 bytes, not 8388609");
    key[TDM_STORE_KEY_MAX] = '\0';
    CHECK_OK(set_text(store, key, "x")); /* refused calls have left the connection as it was */
    tdm__tcp_store_close(store);
    tdm__tcp_store_close(NULL);
    fake_store_close(&fake);
}

TEST(memory) {
    tdm_tcp_store *store;
    tdm_failing_host failing;
    fake_store fake = {.kind = FAKE_VALIDATED};
    REQUIRE(fake_store_bind(&fake));
    const tdm_endpoint at = endpoint_of(&fake);
    tdm_failing_host_init(&failing, 1);
    CHECK_STATUS(tdm__tcp_store_open(&store, &at, &failing.host, in_ms(LONG_MS)), TDM_E_MEMORY);
    CHECK(store == NULL);
    tdm_failing_host_init(&failing, 0);
    CHECK_STATUS(tdm__tcp_store_open(&store, &at, &failing.host, in_ms(0)), TDM_E_COMM);
    CHECK_INT(failing.live, 0);
    fake_store_listen(&fake);
    fake_store_close(&fake);
}

TEST_MAIN(RUN(validated); RUN(plain); RUN(patient); RUN(ipv6); RUN(key_that_comes_later); RUN(store_that_comes_later);
          RUN(key_that_never_comes); RUN(warnings); RUN(nobody_listens); RUN(unknown_host); RUN(closing); RUN(silent);
          RUN(garbage); RUN(faults); RUN(value_longer_than_its_room); RUN(misuse); RUN(memory);)
