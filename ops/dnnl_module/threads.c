/* Threads of the module: those of the OpenMP runtime that oneDNN brings with it, if it brings one.
 *
 * The runtime's functions are weak references: the module is compiled without OpenMP, by any compiler, and never pulls
 * in a second runtime beside oneDNN's. */
#include "ops/dnnl_module/dnnl_module.h"

extern int omp_get_max_threads(void) __attribute__((weak));
extern void omp_set_num_threads(int threads) __attribute__((weak));
extern int omp_get_thread_num(void) __attribute__((weak));
extern int omp_get_num_threads(void) __attribute__((weak));
extern void GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags) __attribute__((weak));

/* All but those that tell of a fault of the running code, which cannot wait. OpenMP's threads are started under this
 * mask and keep it. */
static void hold_signals(sigset_t *before) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&held, faults[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

tdm_dnnl_caller tdm__dnnl_enter(int threads) {
    tdm_dnnl_caller caller = {.threads = threads};
    hold_signals(&caller.signals);
    if (omp_get_max_threads == NULL || omp_set_num_threads == NULL) return caller;
    caller.threads = omp_get_max_threads();
    if (caller.threads != threads) omp_set_num_threads(threads);
    return caller;
}

void tdm__dnnl_leave(const tdm_dnnl_caller *caller) {
    if (omp_get_max_threads != NULL && omp_set_num_threads != NULL && omp_get_max_threads() != caller->threads)
        omp_set_num_threads(caller->threads);
    pthread_sigmask(SIG_SETMASK, &caller->signals, NULL);
}

typedef struct {
    int64_t count;
    tdm_dnnl_work_fn work;
    void *data;
} job;

static void run_part(void *argument) {
    const job *j = argument;
    const int64_t part = omp_get_thread_num(), parts = omp_get_num_threads();
    const int64_t begin = j->count * part / parts, end = j->count * (part + 1) / parts;
    if (begin < end) j->work(j->data, begin, end);
}

void tdm__dnnl_share(int threads, int64_t count, tdm_dnnl_work_fn work, void *data) {
    if (threads > 1 && count > 1 && GOMP_parallel != NULL && omp_get_thread_num != NULL &&
        omp_get_num_threads != NULL) {
        job j = {count, work, data};
        GOMP_parallel(run_part, &j, (unsigned)threads, 0);
        return;
    }
    work(data, 0, count);
}

const tdm_dnnl_passes *tdm__dnnl_passes(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma")) {
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
            return &tdm__dnnl_passes_avx512;
        }
        if (__builtin_cpu_supports("avx2")) return &tdm__dnnl_passes_avx2;
    }
#endif
    return &tdm__dnnl_passes_plain;
}

/* Ranges are cut on whole vectors. */
enum { GRAIN = 16 };

typedef struct {
    float *out;
    const float *dy, *y;
    int64_t count;
} elements;

static int64_t grains(int64_t count) {
    return (count + GRAIN - 1) / GRAIN;
}

static int64_t up_to(const elements *e, int64_t end) {
    return end * GRAIN < e->count ? end * GRAIN : e->count;
}

static void relu_part(void *data, int64_t begin, int64_t end) {
    const elements *e = data;
    tdm__dnnl_passes()->relu(e->out + begin * GRAIN, up_to(e, end) - begin * GRAIN);
}

static void mask_part(void *data, int64_t begin, int64_t end) {
    const elements *e = data;
    const int64_t at = begin * GRAIN;
    tdm__dnnl_passes()->mask(e->out + at, e->dy + at, e->y + at, up_to(e, end) - at);
}

void tdm__dnnl_relu(float *y, int64_t count, int threads) {
    elements e = {.out = y, .count = count};
    tdm__dnnl_share(threads, grains(count), relu_part, &e);
}

void tdm__dnnl_mask(float *out, const float *dy, const float *y, int64_t count, int threads) {
    elements e = {.out = out, .dy = dy, .y = y, .count = count};
    tdm__dnnl_share(threads, grains(count), mask_part, &e);
}
