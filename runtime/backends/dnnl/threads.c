/* Sets up the thread that calls oneDNN, and restores it; and hands out work to threads.
 *
 * The functions of the OpenMP runtime, which oneDNN may bring with it, are weak references. So the module can be
 * compiled without OpenMP, by any compiler, and never loads a second runtime beside oneDNN's. */
#include "runtime/backends/dnnl/kit/dnnl.h"
#include "runtime/base/system/thread.h"

extern int omp_get_max_threads(void) __attribute__((weak));
extern void omp_set_num_threads(int threads) __attribute__((weak));

tdm_dnnl_caller tdm__dnnl_enter(void) {
    tdm_dnnl_caller caller = {.threads = 1};
    (void)tdm__signals_hold(&caller.signals);
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

void tdm__dnnl_thread_begin(void) {
    (void)tdm__dnnl_enter();
}

tdm_status tdm__dnnl_share(tdm_device *device, int threads, int64_t count, tdm_dnnl_work_fn work, void *data) {
    if (threads > 1 && count > 1) return tdm__module_host()->share(device, count, work, data);
    work(data, 0, count);
    return TDM_OK;
}
