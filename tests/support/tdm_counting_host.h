/* A host that lends all it can, and writes down what is asked of it: threads with their roles, memory, clocks.
 *
 *   tdm_counting_host host;
 *   tdm_counting_host_init(&host);
 *   ... &host.host ...
 *   CHECK_INT(host.started, 2);
 *   CHECK_INT(host.joined, host.started);
 */
#ifndef TDM_COUNTING_HOST_H
#define TDM_COUNTING_HOST_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <tandem/host.h>

enum { TDM_COUNTED_THREADS = 256, TDM_COUNTED_STACK = 256 * 1024 };

typedef struct tdm_counting_host {
    tdm_host host;
    int most;                                    /* more threads than this at once are refused, with EAGAIN */
    tdm_thread_info thread[TDM_COUNTED_THREADS]; /* those that were started, in their order; names are not kept */
    int started, joined, refused;                /* under the lock */
    int of_role[TDM_THREAD_BURNIN + 1];          /* started */
    atomic_long calls, live;                     /* of memory: allocations, blocks */
    atomic_long bytes, peak;                     /* in these blocks: now, and at most */
    atomic_llong steady_ns, utc_ns;              /* what the clocks say; each reading of the first adds 1 us */
    atomic_long readings;
    pthread_mutex_t lock;
} tdm_counting_host;

/* In front of each block. */
typedef struct tdm_counted_block {
    void *start;
    long bytes;
    char pad[64 - sizeof(void *) - sizeof(long)]; /* keeps the alignment of cache lines */
} tdm_counted_block;

typedef struct tdm_counted_thread {
    pthread_t thread;
    void (*run)(void *argument);
    void *argument;
} tdm_counted_thread;

static inline void *tdm_counted_run(void *of) {
    const tdm_counted_thread *t = of;
    t->run(t->argument);
    return NULL;
}

/* On the smallest stack that tandem/host.h promises to be enough; sanitizers need more. */
static inline int tdm_counted_create(tdm_counted_thread *t) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    pthread_attr_setstacksize(&attributes, TDM_COUNTED_STACK);
#endif
    const int error = pthread_create(&t->thread, &attributes, tdm_counted_run, t);
    pthread_attr_destroy(&attributes);
    return error;
}

static inline int tdm_counting_start(void *user, const tdm_thread_info *info, void (*run)(void *argument),
                                     void *argument, void **handle) {
    tdm_counting_host *host = user;
    tdm_counted_thread *t = malloc(sizeof(*t));
    int error = EAGAIN;
    *t = (tdm_counted_thread){.run = run, .argument = argument};
    pthread_mutex_lock(&host->lock);
    if (host->started - host->joined < host->most) error = tdm_counted_create(t);
    if (error == 0) {
        if (host->started < TDM_COUNTED_THREADS) {
            host->thread[host->started] = *info;
            host->thread[host->started].name = NULL;
        }
        host->started++;
        host->of_role[info->role]++;
        *handle = t;
    } else {
        host->refused++;
        free(t);
    }
    pthread_mutex_unlock(&host->lock);
    return error;
}

static inline void tdm_counting_join(void *user, void *handle) {
    tdm_counting_host *host = user;
    tdm_counted_thread *t = handle;
    pthread_join(t->thread, NULL);
    free(t);
    pthread_mutex_lock(&host->lock);
    host->joined++;
    pthread_mutex_unlock(&host->lock);
}

static inline void *tdm_counting_allocate(void *user, size_t bytes, size_t align) {
    tdm_counting_host *host = user;
    const size_t front = align > sizeof(tdm_counted_block) ? align : sizeof(tdm_counted_block);
    char *start = aligned_alloc(front, (bytes + 2 * front - 1) / front * front);
    atomic_fetch_add(&host->calls, 1);
    if (start == NULL) return NULL;
    ((tdm_counted_block *)(void *)(start + front))[-1] = (tdm_counted_block){.start = start, .bytes = (long)bytes};
    const long now = atomic_fetch_add(&host->bytes, (long)bytes) + (long)bytes;
    for (long peak = host->peak; now > peak && !atomic_compare_exchange_weak(&host->peak, &peak, now);) continue;
    atomic_fetch_add(&host->live, 1);
    return start + front;
}

static inline void tdm_counting_release(void *user, void *pointer) {
    tdm_counting_host *host = user;
    if (pointer == NULL) return;
    const tdm_counted_block block = ((tdm_counted_block *)pointer)[-1];
    atomic_fetch_sub(&host->live, 1);
    atomic_fetch_sub(&host->bytes, block.bytes);
    free(block.start);
}

static inline int64_t tdm_counting_now(void *user, tdm_clock clock) {
    tdm_counting_host *host = user;
    atomic_fetch_add(&host->readings, 1);
    return clock == TDM_CLOCK_STEADY ? atomic_fetch_add(&host->steady_ns, 1000) : atomic_load(&host->utc_ns);
}

static inline void tdm_counting_host_init(tdm_counting_host *host) {
    memset(host, 0, sizeof(*host));
    host->host = (tdm_host)TDM_HOST_INIT;
    host->host.allocate = tdm_counting_allocate;
    host->host.release = tdm_counting_release;
    host->host.thread_start = tdm_counting_start;
    host->host.thread_join = tdm_counting_join;
    host->host.now_ns = tdm_counting_now;
    host->host.user = host;
    host->most = TDM_COUNTED_THREADS;
    host->utc_ns = INT64_C(1700000000) * 1000000000; /* 14 November 2023, 22:13:20 */
    pthread_mutex_init(&host->lock, NULL);
}

#endif
