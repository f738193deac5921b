/* Threads, spinning, and initialising condition variables. In a header, because modules do not link tandem. */
#ifndef TDM_BASE_THREAD_H
#define TDM_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/base/call/host.h"

/* Blocks all signals of the calling thread, which belong to the embedding program, but those that report a fault of the
 * running code: they cannot wait, and a handler of the program's runs where the fault is. Returns 0 or an error number.
 */
static inline int tdm__signals_hold(sigset_t *before) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) sigdelset(&held, faults[i]);
    return pthread_sigmask(SIG_BLOCK, &held, before);
}

/* A thread that runs one function. It lies where its owner does, and may not move until it is joined. */
typedef struct tdm_thread {
    const tdm_host *host;
    void (*run)(void *argument);
    void *argument;
    pthread_t own; /* tandem's */
    void *handle;  /* or the host's */
    char name[16];
} tdm_thread;

static inline const char *tdm__thread_name(tdm_thread_role role) {
    static const char *const names[] = {
        [TDM_THREAD_REPLICA] = "dp",         [TDM_THREAD_STAGE] = "stage",     [TDM_THREAD_PART] = "tandem-part",
        [TDM_THREAD_DATA] = "tandem-data",   [TDM_THREAD_REDUCE] = "ddp comm", [TDM_THREAD_QUEUE] = "tandem-comm",
        [TDM_THREAD_WATCH] = "tandem-watch", [TDM_THREAD_HUB] = "tandem-hub",  [TDM_THREAD_NCCL] = "tandem-nccl",
        [TDM_THREAD_SAMPLES] = "samples",    [TDM_THREAD_PREPARE] = "prepare", [TDM_THREAD_BURNIN] = "burn-in",
    };
    return names[role];
}

static inline bool tdm__thread_is_numbered(tdm_thread_role role) {
    return role == TDM_THREAD_REPLICA || role == TDM_THREAD_STAGE;
}

/* The name of one thread, as a host is told it: "dp 1", "prepare". */
static inline void tdm__thread_print(char out[16], tdm_thread_role role, int index) {
    if (tdm__thread_is_numbered(role))
        snprintf(out, 16, "%s %d", tdm__thread_name(role), index);
    else
        snprintf(out, 16, "%s", tdm__thread_name(role));
}

static inline void *tdm__thread_run_own(void *argument) {
    const tdm_thread *thread = argument;
    pthread_setname_np(pthread_self(), thread->name);
    thread->run(thread->argument);
    return NULL;
}

static inline void tdm__thread_run_hosted(void *argument) {
    const tdm_thread *thread = argument;
    sigset_t before;
    (void)tdm__signals_hold(&before);
    thread->run(thread->argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Starts a thread that calls run(argument): the host's if it starts threads, else tandem's own. All signals but those
 * of faults are blocked in it. device -1: it works for none. Returns 0 or an error number. Ends with tdm__thread_join. */
static inline int tdm__thread_start(tdm_thread *thread, const tdm_host *host, tdm_thread_role role, int index,
                                    int device, void (*run)(void *argument), void *argument) {
    *thread = (tdm_thread){.host = host, .run = run, .argument = argument};
    tdm__thread_print(thread->name, role, index);
    const tdm_thread_info info = {sizeof(info), role, index, device, thread->name};
    sigset_t before;
    int error = tdm__signals_hold(&before); /* a new thread has the mask of the one that makes it */
    if (error != 0) return error;
    if (tdm__host_starts_threads(host))
        error = host->thread_start(host->user, &info, tdm__thread_run_hosted, thread, &thread->handle);
    else
        error = pthread_create(&thread->own, NULL, tdm__thread_run_own, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Why a thread was not started, as a sentence for messages; `out` takes it. */
static inline const char *tdm__thread_why(const tdm_thread *thread, int error, char out[160]) {
    const char *text = strerrordesc_np(error);
    char number[32];
    snprintf(number, sizeof(number), "error %d", error);
    if (text == NULL) text = number;
    if (tdm__host_starts_threads(thread->host))
        snprintf(out, 160, "the program's host refuses it: %s", text);
    else
        snprintf(out, 160, "%s; look at the limits on processes and memory", text);
    return out;
}

static inline void tdm__thread_join(tdm_thread *thread) {
    if (tdm__host_starts_threads(thread->host))
        thread->host->thread_join(thread->host->user, thread->handle);
    else
        pthread_join(thread->own, NULL);
}

/* Tells the core that the thread spins: it may give time to the core's other thread. */
static inline void tdm__pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Deadlines of this condition variable are on the monotonic clock, so that setting the wall clock does not move them.
 * Returns 0 or an error number. */
static inline int tdm__condition_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (error != 0) return error;
    error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (error == 0) error = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return error;
}

#endif
