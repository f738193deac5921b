/* tandem/comm.h - communicators: collectives between the threads of a process or the processes of a host.
 *
 * A tdm_comm is one rank's end of a group of `world` ranks. Every rank makes the same collective calls, with the same
 * counts, types, operators and roots, in the same order; a call that does not match is TDM_E_USAGE on every rank, with
 * both calls named. When a collective returns, the result is in place.
 *
 * Shapes: a tdm_span is `count` elements of `dtype` at `data`, aligned as its type wants. Spans are yours; they are
 * borrowed until the call returns (until tdm_comm_wait for the asynchronous forms) and must not overlap one another.
 *
 * Threads: one thread at a time uses a tdm_comm; different ends may be used by different threads. tdm_comm_abort may
 * come from any thread.
 *
 * Errors: each call has the group's timeout as its deadline. A peer that is gone, has left or does not come is
 * TDM_E_COMM, and the message names it. After a failure all communicators of the job fail at once, on every rank, with
 * the first cause; they can only be closed, in any order.
 *
 * Numbers: reductions are formed in rank order, ((r0 + r1) + r2) + ..., with the same bits on every rank, over threads
 * and over processes. Integers wrap; minimum and maximum of floats hand a NaN on. */
#ifndef TANDEM_COMM_H
#define TANDEM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/host.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tdm_dtype {
    TDM_DTYPE_F32,
    TDM_DTYPE_F64,
    TDM_DTYPE_I32,
    TDM_DTYPE_I64,
    TDM_DTYPE_U8,
    TDM_DTYPE_COUNT
} tdm_dtype;
typedef enum tdm_reduce_op { TDM_REDUCE_SUM, TDM_REDUCE_PRODUCT, TDM_REDUCE_MIN, TDM_REDUCE_MAX } tdm_reduce_op;

/* `count` elements of `dtype` at `data`. */
typedef struct tdm_span {
    void *data;
    size_t count;
    tdm_dtype dtype;
} tdm_span;

typedef struct tdm_comm tdm_comm;
typedef struct tdm_comm_request tdm_comm_request;

TDM_API size_t tdm_dtype_bytes(tdm_dtype dtype);     /* 0 for what is none */
TDM_API const char *tdm_dtype_name(tdm_dtype dtype); /* "f32"; "unknown" for what is none */

/* ---- opening and closing ---- */

/* `world` (1 to 256) ends of one group over the threads of this process; ranks[i] is for thread i. host NULL: the
 * default one. timeout_ms is at least 1. */
TDM_API tdm_status tdm_comm_open_threads(tdm_comm **ranks, int world, const tdm_host *host, int64_t timeout_ms);
/* This process as `rank` of a job over processes of this host; `fd` is from tdm_launch_create or tdm_launch_meet, and
 * stays the caller's. Waits until all ranks have come. From here to the close a thread of this process, which takes no
 * signals, looks after the others: the job ends when a rank is gone or gives no sign of life for five seconds (it is
 * stopped), and when the process that called tdm_launch_create ends before its ranks. */
TDM_API tdm_status tdm_comm_open_shm(tdm_comm **out, int fd, int rank, int world, const tdm_host *host,
                                     int64_t timeout_ms);
/* Waits for asynchronous calls under way, then leaves the group: peers that still wait for this rank fail. Requests not
 * waited for are freed. NULL is fine. */
TDM_API void tdm_comm_close(tdm_comm *comm);

TDM_API int tdm_comm_rank(const tdm_comm *comm);
TDM_API int tdm_comm_world(const tdm_comm *comm);
TDM_API const char *tdm_comm_backend(const tdm_comm *comm); /* "local", "shm" */

/* ---- collectives ---- */

TDM_API tdm_status tdm_comm_all_reduce(tdm_comm *comm, tdm_span io, tdm_reduce_op op);
TDM_API tdm_status tdm_comm_broadcast(tdm_comm *comm, tdm_span io, int root);
/* The result is at the root only; the io of the others is unchanged. */
TDM_API tdm_status tdm_comm_reduce(tdm_comm *comm, tdm_span io, int root, tdm_reduce_op op);
/* out.count = world * in.count, rank r's part at r * in.count. `out` matters at the root only. */
TDM_API tdm_status tdm_comm_gather(tdm_comm *comm, tdm_span in, tdm_span out, int root);
/* As gather, on every rank. `in` may be this rank's own part of `out`. */
TDM_API tdm_status tdm_comm_all_gather(tdm_comm *comm, tdm_span in, tdm_span out);
/* in.count = world * out.count; `in` matters at the root only. */
TDM_API tdm_status tdm_comm_scatter(tdm_comm *comm, tdm_span in, tdm_span out, int root);
TDM_API tdm_status tdm_comm_barrier(tdm_comm *comm);

/* Between two ranks. A send returns when the receiver has the data, so in a ring let even ranks send first. Messages
 * from one rank to another arrive in order; count and type must be equal at both ends. */
TDM_API tdm_status tdm_comm_send(tdm_comm *comm, tdm_span in, int to);
TDM_API tdm_status tdm_comm_receive(tdm_comm *comm, tdm_span out, int from);

/* Collective: `bytes` zeroed bytes on every rank, aligned to 64, that peers reach directly, so that collectives on
 * spans within them copy nothing extra. They live until the last communicator of this job is closed in this process. */
TDM_API tdm_status tdm_comm_allocate(tdm_comm *comm, size_t bytes, void **out);
/* A communicator of the ranks listed, in that order. Collective over `comm`, with the same list everywhere; *out is
 * NULL on ranks not listed. Messages go on naming ranks by their number in the job. */
TDM_API tdm_status tdm_comm_split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out);
/* Ends the job: calls of every rank fail with "rank N: why". Any thread. */
TDM_API void tdm_comm_abort(tdm_comm *comm, const char *why);

/* ---- asynchronous forms: return at once; a thread of the communicator's own makes the calls in the order started ----
 *
 * Each request ends with tdm_comm_wait. From the first of these on, the calls above go through the same thread, behind
 * what was started before. */
TDM_API tdm_status tdm_comm_start_all_reduce(tdm_comm *comm, tdm_span io, tdm_reduce_op op, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_broadcast(tdm_comm *comm, tdm_span io, int root, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_reduce(tdm_comm *comm, tdm_span io, int root, tdm_reduce_op op,
                                         tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_gather(tdm_comm *comm, tdm_span in, tdm_span out, int root,
                                         tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_all_gather(tdm_comm *comm, tdm_span in, tdm_span out, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_scatter(tdm_comm *comm, tdm_span in, tdm_span out, int root,
                                          tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_barrier(tdm_comm *comm, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_send(tdm_comm *comm, tdm_span in, int to, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_receive(tdm_comm *comm, tdm_span out, int from, tdm_comm_request **request);
/* Has it ended, well or not? Never waits. */
TDM_API int tdm_comm_done(tdm_comm_request *request);
/* Waits for the end, frees the request and returns the call's result, its error now this thread's. `ms`, if not NULL,
 * is set to the time that the call itself took. */
TDM_API tdm_status tdm_comm_wait(tdm_comm_request *request, double *ms);

/* ---- ranks started by somebody else ---- */

typedef enum tdm_launch_source {
    TDM_LAUNCH_NONE,      /* no launcher: one process */
    TDM_LAUNCH_TANDEM,    /* TANDEM_RANK, TANDEM_WORLD, TANDEM_LAUNCH_FD */
    TDM_LAUNCH_TORCHRUN,  /* RANK, WORLD_SIZE with LOCAL_RANK */
    TDM_LAUNCH_SLURM,     /* SLURM_PROCID in a step of srun */
    TDM_LAUNCH_OPENMPI,   /* OMPI_COMM_WORLD_RANK */
    TDM_LAUNCH_PMI,       /* PMI_RANK: MPICH, Intel MPI; MV2_COMM_WORLD_RANK */
    TDM_LAUNCH_PYTORCHJOB /* RANK, WORLD_SIZE without LOCAL_RANK */
} tdm_launch_source;

typedef struct tdm_launch_facts {
    tdm_launch_source source;
    int rank, world, local_rank, local_world; /* local: on this host */
    int fd;                                   /* TANDEM_LAUNCH_FD; -1 without one */
    char master_addr[256];                    /* "" if unknown */
    int master_port;                          /* 0 if unknown */
    char job[160];                            /* what tells this job from others on the host; "" if nothing does */
} tdm_launch_facts;

/* What the environment says about this process. Values that contradict one another are TDM_E_USAGE and named; *out is
 * then good for tdm_launch_fail. Without a launcher: TDM_LAUNCH_NONE, rank 0 of 1. */
TDM_API tdm_status tdm_launch_from_env(tdm_launch_facts *out);
TDM_API const char *tdm_launch_source_name(tdm_launch_source source); /* "torchrun" */
/* The descriptor for tdm_comm_open_shm that all ranks of this job share, whoever started them; close it with close().
 * init_method: "env" (or NULL), "tcp://host:port" or "file:///path". Ranks on several hosts are TDM_E_UNSUPPORTED.
 * timeout_ms is at least 1. While ranks are missing the host's log (NULL: the default host) is told which, after five
 * seconds and then each minute. A rank 0 that is there and does not answer for heartbeat_ms (at least 1000; 0: for
 * ever), as one that is stopped, is TDM_E_COMM. Facts that are wrong are told to the others as tdm_launch_fail does. */
TDM_API tdm_status tdm_launch_meet(int *fd, const tdm_launch_facts *facts, const tdm_host *host,
                                   const char *init_method, int64_t timeout_ms, int64_t heartbeat_ms);
/* For a rank that has failed and will not meet the others: they fail at once, with `why`, instead of waiting for it.
 * Takes until they have come, at most three seconds. */
TDM_API void tdm_launch_fail(const tdm_launch_facts *facts, const char *init_method, const char *why);

#ifdef __cplusplus
}
#endif
#endif
