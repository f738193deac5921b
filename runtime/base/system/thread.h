/* Starting threads, spinning, and initialising condition variables. In a header, because modules do not link tandem. */
#ifndef TDM_BASE_THREAD_H
#define TDM_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <time.h>

/* Starts a thread with all signals blocked: signals belong to the embedding program. Returns 0 or an error number. */
static inline int tdm__thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    int error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error != 0) return error;
    error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
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
