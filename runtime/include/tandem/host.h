/* tandem/host.h - what the embedding program lends to tandem: memory, a place for log lines, threads, clocks.
 *
 * Every object keeps a borrowed pointer to the tdm_host that it was made with. The host must outlive all of these
 * objects. It holds for this process alone: ranks of a ddp job that are processes of their own each have the host that
 * they open their run with, and in the child of a fork no call is made for a thread of its parent. */
#ifndef TANDEM_HOST_H
#define TANDEM_HOST_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/status.h>

TDM_BEGIN_DECLS

typedef enum tdm_log_level { TDM_LOG_ERROR, TDM_LOG_WARNING, TDM_LOG_INFO, TDM_LOG_DEBUG } tdm_log_level;

/* What a thread of tandem's does. runtime/docs/threads.md says when there are how many. */
typedef enum tdm_thread_role {
    TDM_THREAD_REPLICA, /* dp: runs replica `index` on its device */
    TDM_THREAD_STAGE,   /* parallel.stages: runs stage `index`, from 1, of a replica */
    TDM_THREAD_PART,    /* parallel.threads_per_device, tdm_model_options.threads: shares the work of kernels */
    TDM_THREAD_DATA,    /* data.workers: reads samples ahead, and calls functions of a tdm_source */
    TDM_THREAD_REDUCE,  /* ddp on the CPU: sums gradients while backward goes on */
    TDM_THREAD_QUEUE,   /* asynchronous calls of a communicator */
    TDM_THREAD_WATCH,   /* a job of several processes: says that this one lives, and learns of others' ends */
    TDM_THREAD_HUB,     /* a job on several hosts: the same between them */
    TDM_THREAD_NCCL,    /* ends NCCL's calls when the job has ended */
    TDM_THREAD_SAMPLES, /* while a run on a GPU opens: reads the samples that it keeps */
    TDM_THREAD_PREPARE, /* while a run opens, or a model's workspace: makes the machine code of kernels */
    TDM_THREAD_BURNIN   /* a burn-in: one for each device */
} tdm_thread_role;

/* A thread that is wanted. Valid during the call. */
typedef struct tdm_thread_info {
    uint32_t size; /* of this struct in the library that calls; members are only ever added at its end */
    tdm_thread_role role;
    int index;        /* which of those of its role; of PART, DATA, SAMPLES and BURNIN from 0 */
    int device;       /* the number N of the device cpu:N or cuda:N that it works for; -1: none of its own */
    const char *name; /* what tandem's own threads are called, such as "dp 1"; at most 15 bytes */
} tdm_thread_info;

typedef enum tdm_clock {
    TDM_CLOCK_STEADY, /* never goes back; from any origin */
    TDM_CLOCK_UTC     /* since 1 January 1970 */
} tdm_clock;

/* Start with TDM_HOST_INIT: every member may be NULL or 0, and tandem then does as it does without a host. */
typedef struct tdm_host {
    uint32_t size; /* sizeof(tdm_host) */
    /* Returns `bytes` bytes aligned to `align`, a power of two, or NULL when memory is exhausted. Called from any
     * thread. Both functions or none; none: those of the C library. All memory that tandem and its modules take is from
     * here, but for texts and buffers that are the program's (tdm_free, tdm_buffer), memory that processes share, and
     * what libraries of others take for themselves: runtime/docs/embedding.md. */
    void *(*allocate)(void *user, size_t bytes, size_t align);
    void (*release)(void *user,
                    void *pointer); /* Frees what `allocate` returned. NULL is allowed. Called from any thread. */
    /* Receives one complete line without a newline. Called from any thread, possibly by several at the same time. May
     * be NULL. */
    void (*log)(void *user, tdm_log_level level, const char *subsystem, const char *line);
    tdm_log_level log_level; /* less urgent lines are not even formatted */
    void *user;
    /* The members from here on came after 0.1.0. */

    /* Starts a thread of the program that calls run(argument) once, and sets *handle, which may be NULL, for
     * thread_join. `thread` says what it is for: the program chooses priority, CPUs, stack (256 KiB is enough for
     * tandem's own code; what a tdm_source needs comes on top) and name. Returns 0, or an error number of <errno.h> if
     * it does not start one. What the job asks for then fails with TDM_E_MEMORY and a message that names thread and
     * reason; PREPARE and SAMPLES only save time, and their work is done without.
     *
     * run must begin soon and beside all others: a pool that has it wait for another thread's end may wait for ever. It
     * blocks all signals but those of faults while it runs, and returns when tandem is done. thread_join waits for that
     * and frees *handle; it is called once for each thread that was started, by the thread that ends the object.
     *
     * Called from any thread of this process, also from those that they started. Both functions or none; none: threads
     * of tandem's own. Libraries of others (CUDA, NCCL, Gloo, MPI) start theirs themselves. */
    int (*thread_start)(void *user, const tdm_thread_info *thread, void (*run)(void *argument), void *argument,
                        void **handle);
    void (*thread_join)(void *user, void *handle);

    /* Returns a time in nanoseconds, 0 or more. All that tandem measures, shows and counts in seconds is of these
     * clocks: times of steps, intervals such as `checkpoint.every: 30m`, the length of a burn-in, times in names and
     * files. Waits end by the kernel's own clock, which other processes and the kernel's calls know. Called from any
     * thread, also between two kernels of a step; NULL: CLOCK_MONOTONIC and CLOCK_REALTIME. */
    int64_t (*now_ns)(void *user, tdm_clock clock);

    /* How many CPUs a run of this process may keep busy: where parallel.threads_per_device is null, its devices share
     * them. 0: those that the process may use (affinity, control group). */
    int cpus;

    /* The most bytes that each run (tdm_run_open) and each model (tdm_model_open) with this host may hold at a time; 0:
     * no limit. A job may have one, too (host.memory_limit); the smaller holds. What `allocate` gives counts, with 64
     * bytes of its own for each block, gradients in memory that ranks share, the file of a model that is mapped, and,
     * on the CPU, what oneDNN takes for kernels and in their calls. Of a run that is found before replicas are made, by
     * the growth of the process: what other threads take at that moment is counted, too, so let them rest meanwhile. Of
     * a model it is a bound, counted before kernels are prepared: 6 MiB, and more for each kernel
     * (runtime/docs/embedding.md). A run that cannot fit is refused by tdm_run_open; later an allocation beyond the
     * limit fails, and a call of a model that would take more. All are TDM_E_MEMORY, and the message says what needs how
     * much. Not counted: pages of code, which are the files'; stacks of threads; gradients of other ranks that this one
     * reads; what other libraries of others take; the memory of a GPU. */
    size_t memory_limit;
} tdm_host;
#define TDM_HOST_INIT \
    { sizeof(tdm_host), NULL, NULL, NULL, TDM_LOG_ERROR, NULL, NULL, NULL, NULL, 0, 0 }

/* Returns a host with the C library's allocator and no log. Static; never NULL. Its `size` is that of 0.1.0, so that
 * programs of all versions may copy it: a copy has no later members until its size is set. */
TDM_API const tdm_host *tdm_host_default(void);
/* Frees a text that a function returned through char **, whichever host that function used. NULL is allowed. */
TDM_API void tdm_free(void *text);

TDM_END_DECLS
#endif
