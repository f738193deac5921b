/* Worker threads: order, failures and who hears of them, deadlines, shutting down. */
#include "runtime/base/system/sync.h"

#include <pthread.h>
#include <signal.h>

#include "runtime/base/status.h"
#include "runtime/base/system/gate.h"
#include "tests/support/tdm_failing_host.h"
#include "tests/support/tdm_test.h"

enum { MANY = 63 }; /* with one that runs, a full queue */

typedef struct notes {
    int count, order[MANY];
} notes;
typedef struct note_job {
    notes *book;
    int number;
} note_job;

static tdm_status write_down(void *argument) {
    note_job *mine = argument;
    mine->book->order[mine->book->count++] = mine->number;
    if (mine->number < 0) TDM_FAIL(TDM_E_NUMERIC, "job %d failed", mine->number);
    return TDM_OK;
}

typedef struct gate_job {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool open;
} gate_job;

static tdm_status pass_gate(void *argument) {
    gate_job *mine = argument;
    pthread_mutex_lock(&mine->mutex);
    while (!mine->open) pthread_cond_wait(&mine->opened, &mine->mutex);
    pthread_mutex_unlock(&mine->mutex);
    return TDM_OK;
}

static void open_gate(gate_job *mine) {
    pthread_mutex_lock(&mine->mutex);
    mine->open = true;
    pthread_cond_signal(&mine->opened);
    pthread_mutex_unlock(&mine->mutex);
}

static tdm_status look_at_signals(void *argument) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    *(bool *)argument = sigismember(&blocked, SIGINT) == 1 && sigismember(&blocked, SIGTERM) == 1;
    return TDM_OK;
}

TEST(in_order) {
    tdm_worker *worker;
    notes book = {0};
    note_job note[MANY];
    REQUIRE_OK(tdm__worker_open(&worker, tdm_host_default(), TDM_THREAD_QUEUE, 0, -1));
    CHECK_OK(tdm__worker_wait(worker));
    for (int round = 0; round < 50; round++) {
        book.count = 0;
        for (int i = 0; i < MANY; i++) {
            note[i] = (note_job){&book, i};
            REQUIRE_OK(tdm__worker_start(worker, write_down, &note[i]));
        }
        REQUIRE_OK(tdm__worker_wait(worker));
        REQUIRE(book.count == MANY);
        for (int i = 0; i < MANY; i++) CHECK_INT(book.order[i], i);
    }
    tdm__worker_close(worker);
    tdm__worker_close(NULL);
}

TEST(failure_travels_and_skips) {
    tdm_worker *worker;
    notes book = {0};
    note_job good = {&book, 1}, bad = {&book, -5}, worse = {&book, -6};
    REQUIRE_OK(tdm__worker_open(&worker, tdm_host_default(), TDM_THREAD_QUEUE, 0, -1));
    CHECK_OK(tdm__worker_start(worker, write_down, &good));
    CHECK_OK(tdm__worker_start(worker, write_down, &bad));
    CHECK_OK(tdm__worker_start(worker, write_down, &good));
    CHECK_OK(tdm__worker_start(worker, write_down, &worse));
    CHECK_STATUS(tdm__worker_wait(worker), TDM_E_NUMERIC);
    CHECK_TEXT(tdm_error_message(), "job -5 failed");
    CHECK_HAS(tdm_error_last()->frame[0].file, "sync_test.c");
    CHECK_INT(book.count, 2);
    CHECK_OK(tdm__worker_wait(worker)); /* told once */
    CHECK_OK(tdm__worker_start(worker, write_down, &good));
    CHECK_OK(tdm__worker_wait(worker));
    CHECK_INT(book.count, 3);
    tdm__worker_close(worker);
}

TEST(full_queue) {
    tdm_worker *worker;
    gate_job gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    notes book = {0};
    note_job good = {&book, 1};
    REQUIRE_OK(tdm__worker_open(&worker, tdm_host_default(), TDM_THREAD_QUEUE, 0, -1));
    CHECK_OK(tdm__worker_start(worker, pass_gate, &gate));
    for (int i = 0; i < MANY; i++) REQUIRE_OK(tdm__worker_start(worker, write_down, &good));
    CHECK_STATUS(tdm__worker_start(worker, write_down, &good), TDM_E_INTERNAL);
    CHECK_HAS(tdm_error_message(), "'tandem-comm'");
    open_gate(&gate);
    CHECK_OK(tdm__worker_wait(worker));
    CHECK_INT(book.count, MANY);
    tdm__worker_close(worker);
}

TEST(close_runs_what_is_queued) {
    tdm_worker *worker;
    notes book = {0};
    note_job note = {&book, 1};
    REQUIRE_OK(tdm__worker_open(&worker, tdm_host_default(), TDM_THREAD_QUEUE, 0, -1));
    for (int i = 0; i < 20; i++) REQUIRE_OK(tdm__worker_start(worker, write_down, &note));
    tdm__worker_close(worker);
    CHECK_INT(book.count, 20);
}

TEST(signals_stay_out) {
    tdm_worker *worker;
    bool blocked = false;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    REQUIRE_OK(tdm__worker_open(&worker, tdm_host_default(), TDM_THREAD_QUEUE, 0, -1));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    CHECK_INT(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
    CHECK_OK(tdm__worker_start(worker, look_at_signals, &blocked));
    CHECK_OK(tdm__worker_wait(worker));
    CHECK(blocked);
    tdm__worker_close(worker);
}

TEST(no_memory) {
    tdm_failing_host failing;
    tdm_worker *worker;
    tdm_failing_host_init(&failing, 1);
    CHECK_STATUS(tdm__worker_open(&worker, &failing.host, TDM_THREAD_QUEUE, 0, -1), TDM_E_MEMORY);
    CHECK(worker == NULL);
}

/* ---- gates ---- */

typedef struct gate_user {
    tdm_gate *gate;
    int seen; /* written before the counter is raised */
    bool whole;
} gate_user;

static tdm_status raise_twice(void *argument) {
    gate_user *user = argument;
    user->seen = 1;
    tdm__gate_raise(user->gate, 1, 1);
    user->whole = tdm__gate_wait(user->gate, 0, 5);
    user->seen = 2;
    tdm__gate_raise(user->gate, 1, 2);
    return TDM_OK;
}

TEST(a_gate_counts) {
    tdm_worker *worker = NULL;
    gate_user user = {.seen = 0};
    CHECK_OK(tdm__gate_open(&user.gate, tdm_host_default(), 2));
    CHECK_OK(tdm__worker_open(&worker, tdm_host_default(), TDM_THREAD_QUEUE, 0, -1));
    for (int round = 0; round < 50; round++) {
        tdm__gate_reset(user.gate);
        CHECK_OK(tdm__worker_start(worker, raise_twice, &user));
        CHECK(tdm__gate_wait(user.gate, 1, 1));
        CHECK_INT(user.seen, 1);
        tdm__gate_raise(user.gate, 0, 7);
        CHECK(tdm__gate_wait(user.gate, 1, 2));
        CHECK_INT(user.seen, 2);
        CHECK(tdm__gate_wait(user.gate, 0, -1)); /* no wait at all */
        CHECK_OK(tdm__worker_wait(worker));
        CHECK(user.whole);
    }
    tdm__worker_close(worker);
    tdm__gate_close(user.gate);
}

TEST(a_broken_gate_lets_everybody_go) {
    tdm_worker *worker = NULL;
    gate_user user = {.whole = true};
    CHECK_OK(tdm__gate_open(&user.gate, tdm_host_default(), 2));
    CHECK_OK(tdm__worker_open(&worker, tdm_host_default(), TDM_THREAD_QUEUE, 0, -1));
    CHECK_OK(tdm__worker_start(worker, raise_twice, &user));
    CHECK(tdm__gate_wait(user.gate, 1, 1));
    tdm__gate_break(user.gate);
    CHECK_OK(tdm__worker_wait(worker));
    CHECK(!user.whole);
    CHECK(!tdm__gate_wait(user.gate, 0, 5));
    tdm__gate_reset(user.gate);
    CHECK(tdm__gate_wait(user.gate, 0, 0));
    tdm__worker_close(worker);
    tdm__gate_close(user.gate);
    tdm__gate_close(NULL);
}

TEST_MAIN(RUN(a_gate_counts); RUN(a_broken_gate_lets_everybody_go); RUN(in_order); RUN(failure_travels_and_skips);
          RUN(full_queue); RUN(close_runs_what_is_queued); RUN(signals_stay_out); RUN(no_memory);)
