/* Sets up the thread that calls oneDNN, and restores it.
 *
 * The functions of the OpenMP runtime, which oneDNN may bring with it, are weak references. So the module can be
 * compiled without OpenMP, by any compiler, and never loads a second runtime beside oneDNN's. */
#include "runtime/backends/dnnl/kit/dnnl.h"

extern int omp_get_max_threads(void) __attribute__((weak));
extern void omp_set_num_threads(int threads) __attribute__((weak));

/* Holds back all signals except those that report a fault of the running code, which cannot wait. */
static void hold_signals(sigset_t *before) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&held, faults[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

tdm_dnnl_caller tdm__dnnl_enter(void) {
    tdm_dnnl_caller caller = {.threads = 1};
    hold_signals(&caller.signals);
    if (omp_get_max_threads == NULL || omp_set_num_threads == NULL) return caller;
    caller.threads = omp_get_max_threads();
    if (caller.threads != 1) omp_set_num_threads(1);
    return caller;
}

void tdm__dnnl_leave(const tdm_dnnl_caller *caller) {
    if (omp_get_max_threads != NULL && omp_set_num_threads != NULL && omp_get_max_threads() != caller->threads)
        omp_set_num_threads(caller->threads);
    pthread_sigmask(SIG_SETMASK, &caller->signals, NULL);
}
