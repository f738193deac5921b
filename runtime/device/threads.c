/* A free thread, the caller included, takes the next part. A thread that wakes up late, because other processes use the
 * cores, finds no part left, and nobody waits for it.
 *
 * A waiting thread spins for a moment, which is cheaper than sleeping if the next piece comes at once, and then sleeps.
 * The moment adapts: it grows if waits are short, and shrinks to nothing if they are long, since spinning would take
 * time from the threads it waits for. */
#include "runtime/device/threads.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/system/thread.h"

enum { MOST_SPIN_NS = 200 * 1000, LEAST_SPIN_NS = 1000, LOOKS_PER_CLOCK = 16, LINE = 64 };
#define CLOSING UINT32_MAX

struct tdm_threads {
    const tdm_host *host;
    void (*begin)(void);
    int device, members; /* members: beside the calling thread */
    int started;
    pid_t owner;     /* a child of fork() has none of the members */
    int64_t spin_ns; /* how long the caller spins */
    _Atomic bool busy;
    /* The work in progress. A thread reads it after it has taken a part, because the work cannot end before that part
     * is done. */
    int64_t length, parts;
    void (*work)(void *data, int64_t begin, int64_t end);
    void *data;
    _Alignas(LINE) _Atomic uint32_t left;   /* parts not taken yet; CLOSING: the members end */
    _Alignas(LINE) _Atomic uint32_t undone; /* parts not done yet */
    tdm_thread member[];
};

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
static void do_parts(tdm_threads *t) {
    uint32_t left = atomic_load(&t->left);
    while (left != 0 && left != CLOSING) {
        if (!atomic_compare_exchange_weak(&t->left, &left, left - 1)) continue;
        const int64_t part = t->parts - left;
        t->work(t->data, t->length * part / t->parts, t->length * (part + 1) / t->parts);
        if (atomic_fetch_sub(&t->undone, 1) == 1) wake(&t->undone, 1);
        left = atomic_load(&t->left);
    }
}

static void run_member(void *argument) {
    tdm_threads *t = argument;
    int64_t spin_ns = MOST_SPIN_NS;
    t->begin();
    while (atomic_load(&t->left) != CLOSING) {
        do_parts(t);
        wait_while(&t->left, 0, &spin_ns);
    }
}

static void stop_members(tdm_threads *t) {
    if (t->started == 0 || t->owner != getpid()) return;
    atomic_store(&t->left, CLOSING);
    wake(&t->left, INT_MAX);
    for (int i = 0; i < t->started; i++) tdm__thread_join(&t->member[i]);
    t->started = 0;
    atomic_store(&t->left, 0);
}

static tdm_status start_members(tdm_threads *t) {
    char why[160];
    int error = 0;
    for (; t->started < t->members; t->started++) {
        error =
            tdm__thread_start(&t->member[t->started], t->host, TDM_THREAD_PART, t->started, t->device, run_member, t);
        if (error != 0) break;
    }
    if (error == 0) return TDM_OK;
    (void)tdm__thread_why(&t->member[t->started], error, why);
    stop_members(t);
    TDM_FAIL(TDM_E_MEMORY,
             "parallel.threads_per_device (of a model: tdm_model_options.threads): %d threads for one device cannot be "
             "started: %s; set it lower",
             t->members + 1, why);
}

/* What a fork has copied may be in the middle of something. */
static void begin_anew(tdm_threads *t) {
    t->owner = getpid();
    t->started = 0;
    atomic_store(&t->left, 0);
    atomic_store(&t->busy, false);
}

tdm_status tdm__threads_open(tdm_threads **out, const tdm_host *host, int count, int device, void (*begin)(void)) {
    tdm_threads *t;
    *out = NULL;
    if (count < 2 || begin == NULL) return TDM_OK;
    TDM_TRY(tdm__new(host, &t, 1, sizeof(*t) + (size_t)(count - 1) * sizeof(t->member[0]), "threads"));
    t->host = host;
    t->begin = begin;
    t->device = device;
    t->members = count - 1;
    t->spin_ns = MOST_SPIN_NS;
    t->owner = getpid();
    *out = t;
    return TDM_OK;
}

void tdm__threads_close(tdm_threads *t) {
    if (t == NULL) return;
    stop_members(t);
    tdm__delete(t->host, t);
}

/* ---- sharing ---- */

static void share(tdm_threads *t, int64_t count, void (*work)(void *data, int64_t begin, int64_t end), void *data) {
    t->length = count;
    t->parts = count <= t->members ? count : t->members + 1;
    t->work = work;
    t->data = data;
    atomic_store(&t->undone, (uint32_t)t->parts);
    atomic_store(&t->left, (uint32_t)t->parts);
    wake(&t->left, (int)t->parts - 1);
    do_parts(t);
    for (uint32_t undone; (undone = atomic_load(&t->undone)) != 0;) wait_while(&t->undone, undone, &t->spin_ns);
}

tdm_status tdm__threads_share(tdm_threads *t, int64_t count, void (*work)(void *data, int64_t begin, int64_t end),
                              void *data) {
    tdm_status status = TDM_OK;
    if (t != NULL && t->owner != getpid()) begin_anew(t);
    if (t == NULL || count <= 1 || atomic_exchange(&t->busy, true)) {
        work(data, 0, count);
        return TDM_OK;
    }
    if (t->started == 0) status = start_members(t);
    if (status == TDM_OK) share(t, count, work, data);
    atomic_store(&t->busy, false);
    return status;
}

/* ---- loops over arrays ---- */

/* Floats. LEAST_SHARED: with fewer, one thread is faster. Two threads must not write to one cache line. */
enum { LINE_FLOATS = 16, LEAST_SHARED = 64 * 1024 };

typedef struct loop {
    size_t count;
    void (*work)(void *user, size_t begin, size_t end);
    void *user;
} loop;

/* Lines [begin, end). */
static void do_lines(void *data, int64_t begin, int64_t end) {
    const loop *l = data;
    const size_t last = (size_t)end * LINE_FLOATS;
    l->work(l->user, (size_t)begin * LINE_FLOATS, last < l->count ? last : l->count);
}

tdm_status tdm__threads_loop(tdm_threads *threads, size_t count, void (*work)(void *user, size_t begin, size_t end),
                             void *user) {
    loop all = {.count = count, .work = work, .user = user};
    if (threads != NULL && count >= LEAST_SHARED)
        return tdm__threads_share(threads, (int64_t)((count + LINE_FLOATS - 1) / LINE_FLOATS), do_lines, &all);
    work(user, 0, count);
    return TDM_OK;
}
