/* Threads that share one piece of work with the calling thread. Each calling thread has a team, made when it is first
 * needed and ended with the thread.
 *
 * A free thread, the caller included, takes the next part. A thread that wakes up late, because other processes use the
 * cores, finds no part left, and nobody waits for it.
 *
 * A waiting thread spins for a moment, which is cheaper than sleeping if the next piece comes at once, and then sleeps.
 * The moment adapts: it grows if waits are short, and shrinks to nothing if they are long, since spinning would take
 * time from the threads it waits for. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/backends/dnnl/kit/dnnl.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/system/thread.h"

enum { MOST_SPIN_NS = 50 * 1000, LEAST_SPIN_NS = 1000, LOOKS_PER_CLOCK = 16, LINE = 64 };
#define CLOSING UINT32_MAX

typedef struct {
    pid_t owner;     /* a child of fork() has no threads of the team */
    int count;       /* members */
    int64_t spin_ns; /* how long the caller spins */
    /* The work in progress. A thread reads it after it has taken a part, because the work cannot end before that part
     * is done. */
    int64_t length, parts;
    tdm_dnnl_work_fn work;
    void *data;
    _Alignas(LINE) _Atomic uint32_t left;   /* parts not taken yet; CLOSING: the members end */
    _Alignas(LINE) _Atomic uint32_t undone; /* parts not done yet */
    pthread_t member[];
} team;

static pthread_key_t key; /* the calling thread's team */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int key_error;

/* ---- waiting ---- */

static void wait_while(_Atomic uint32_t *word, uint32_t value, int64_t *spin_ns) {
    if (atomic_load(word) != value) return;
    const int64_t start = tdm__now_ns();
    int64_t now = start;
    while (now - start < *spin_ns) {
        for (int i = 0; i < LOOKS_PER_CLOCK; i++) {
            if (atomic_load(word) != value) return;
            tdm__pause();
        }
        now = tdm__now_ns();
    }
    while (atomic_load(word) == value) syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    const bool was_short = tdm__now_ns() - start < MOST_SPIN_NS;
    const int64_t spin = was_short ? *spin_ns * 2 + LEAST_SPIN_NS : *spin_ns / 2;
    *spin_ns = spin > MOST_SPIN_NS ? MOST_SPIN_NS : spin < LEAST_SPIN_NS ? 0 : spin;
}

static void wake(_Atomic uint32_t *word, int most) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

/* ---- members ---- */

/* Takes and computes parts until none is left. */
static void do_parts(team *t) {
    uint32_t left = atomic_load(&t->left);
    while (left != 0 && left != CLOSING) {
        if (!atomic_compare_exchange_weak(&t->left, &left, left - 1)) continue;
        const int64_t part = t->parts - left;
        t->work(t->data, t->length * part / t->parts, t->length * (part + 1) / t->parts);
        if (atomic_fetch_sub(&t->undone, 1) == 1) wake(&t->undone, 1);
        left = atomic_load(&t->left);
    }
}

static void *run_member(void *argument) {
    team *t = argument;
    int64_t spin_ns = MOST_SPIN_NS;
    pthread_setname_np(pthread_self(), "dnnl part");
    (void)tdm__dnnl_enter(); /* never restored: the thread only does this work */
    while (atomic_load(&t->left) != CLOSING) {
        do_parts(t);
        wait_while(&t->left, 0, &spin_ns);
    }
    return NULL;
}

static void close_team(void *argument) {
    team *t = argument;
    if (t->owner == getpid()) {
        atomic_store(&t->left, CLOSING);
        wake(&t->left, INT_MAX);
        for (int i = 0; i < t->count; i++) pthread_join(t->member[i], NULL);
    }
    free(t);
}

static void make_key(void) {
    key_error = pthread_key_create(&key, close_team);
}

/* Not tdm__thread_start: its threads block even the signals of faults, so a handler of the program would not run. */
static int start_members(team *t, int count) {
    const tdm_dnnl_caller caller = tdm__dnnl_enter(); /* new threads inherit the mask, so their signals are held back */
    int error = 0;
    while (error == 0 && t->count < count) {
        error = pthread_create(&t->member[t->count], NULL, run_member, t);
        if (error == 0) t->count++;
    }
    tdm__dnnl_leave(&caller);
    return error;
}

/* Starts all members; returns 0 or an error number. */
static int open_team(team **out, int count) {
    team *t = aligned_alloc(LINE, tdm__dnnl_round(sizeof *t + (size_t)count * sizeof t->member[0]));
    if (t == NULL) return ENOMEM;
    *t = (team){.owner = getpid(), .spin_ns = MOST_SPIN_NS};
    int error = start_members(t, count);
    if (error == 0) error = pthread_setspecific(key, t);
    if (error == 0)
        *out = t;
    else
        close_team(t);
    return error;
}

/* Finds or makes the calling thread's team with `count` members; returns 0 or an error number. */
static int find_team(team **out, int count) {
    pthread_once(&once, make_key);
    if (key_error != 0) return key_error;
    *out = pthread_getspecific(key);
    if (*out != NULL && (*out)->owner == getpid() && (*out)->count == count) return 0;
    if (*out != NULL) {
        pthread_setspecific(key, NULL);
        close_team(*out);
    }
    return open_team(out, count);
}

tdm_status tdm__dnnl_share(int threads, int64_t count, tdm_dnnl_work_fn work, void *data) {
    if (threads <= 1 || count <= 1) {
        work(data, 0, count);
        return TDM_OK;
    }
    team *t;
    errno = find_team(&t, threads - 1);
    if (errno != 0)
        TDM_MODULE_FAIL(TDM_E_MEMORY,
                        "parallel.threads_per_device: %d threads for one device cannot be started: %m; set it lower",
                        threads);
    t->length = count;
    t->parts = count < threads ? count : threads;
    t->work = work;
    t->data = data;
    atomic_store(&t->undone, (uint32_t)t->parts);
    atomic_store(&t->left, (uint32_t)t->parts);
    wake(&t->left, (int)t->parts - 1);
    do_parts(t);
    for (uint32_t undone; (undone = atomic_load(&t->undone)) != 0;) wait_while(&t->undone, undone, &t->spin_ns);
    return TDM_OK;
}
