/* tandem/comm.h - communicators: collectives between the threads of a process, the processes of a host, or several
 * hosts.
 *
 * A tdm_comm is one rank's end of a group of `world` ranks. Every rank makes the same collective calls in the same
 * order, with the same counts (all_to_all_v: counts that match), types, operators and roots. A call that does not match
 * is TDM_E_USAGE on every rank of the group, and the message names both calls; other calls of the job, also those that
 * wait meanwhile, are then TDM_E_COMM. When a collective returns, its result is in place.
 *
 * Shapes: a tdm_span is `count` elements of `dtype` at `data`, aligned for its type. The caller owns the memory; it is
 * borrowed until the call returns (until tdm_comm_wait for the asynchronous forms). Spans must not overlap one another,
 * except that a batch may send from the same memory several times.
 *
 * Threads: one thread at a time uses a tdm_comm. Different ends may be used by different threads. tdm_comm_abort may be
 * called from any thread.
 *
 * Fork: only the process that opened a tdm_comm uses it. In a child every call is TDM_E_USAGE, also tdm_comm_wait for a
 * request of the parent; tdm_comm_close and tdm_comm_abort do nothing there, and the parent's job goes on.
 *
 * Errors: the group's timeout is the deadline of each call. A peer that has died, has left or does not arrive in time
 * is TDM_E_COMM, and the message names it. After a failure all communicators of the job fail at once, on every rank,
 * with the first cause. They can only be closed then, in any order.
 *
 * Numbers: a reduction of n ranks is the canonical tree, T(n) = T(the first p) op T(the last n - p), where p is the
 * largest power of two below n: ((r0 + r1) + (r2 + r3)) + r4 of five. So it gives the same bits on every rank, over
 * threads and over processes, and ranks at the end that add -0 change none. Integers wrap around. Minimum and maximum
 * of floats propagate NaN. Floats of 16 bits are computed with as floats, and rounded once at the end. */
#ifndef TANDEM_COMM_H
#define TANDEM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include <tandem/host.h>

TDM_BEGIN_DECLS

typedef enum tdm_dtype {
    TDM_DTYPE_F32,
    TDM_DTYPE_F64,
    TDM_DTYPE_I32,
    TDM_DTYPE_I64,
    TDM_DTYPE_U8,
    TDM_DTYPE_BF16, /* uint16_t: the upper half of a float */
    TDM_DTYPE_F16,  /* uint16_t: IEEE half precision */
    TDM_DTYPE_COUNT
} tdm_dtype;
typedef enum tdm_reduce_op {
    TDM_REDUCE_SUM,
    TDM_REDUCE_PRODUCT,
    TDM_REDUCE_MIN,
    TDM_REDUCE_MAX,
    TDM_REDUCE_AVG,  /* the sum divided by the number of ranks; floats only */
    TDM_REDUCE_BAND, /* and, or, exclusive or of the bits; integers only */
    TDM_REDUCE_BOR,
    TDM_REDUCE_BXOR,
    TDM_REDUCE_OPS
} tdm_reduce_op;

/* `count` elements of `dtype` at `data`. */
typedef struct tdm_span {
    void *data;
    size_t count;
    tdm_dtype dtype;
} tdm_span;

/* One message of tdm_comm_batch_send_receive: `span` goes to `peer`, or comes from it. */
typedef struct tdm_transfer {
    int sends; /* non-zero: to the peer; 0: from it */
    int peer;
    tdm_span span;
} tdm_transfer;

typedef struct tdm_comm tdm_comm;
typedef struct tdm_comm_request tdm_comm_request;

TDM_API size_t tdm_dtype_bytes(tdm_dtype dtype);     /* 0 for a number that is not a type */
TDM_API const char *tdm_dtype_name(tdm_dtype dtype); /* "f32"; "unknown" for a number that is not a type */

/* ---- opening and closing ---- */

/* Opens one group of `world` (1 to 256) ranks over the threads of this process: ranks[i] is the end for thread i. Close
 * each end. host NULL: tdm_host_default(). timeout_ms is at least 1. */
TDM_API tdm_status tdm_comm_open_threads(tdm_comm **ranks, int world, const tdm_host *host, int64_t timeout_ms);
/* Opens this process's end as `rank` of a group of `world` processes on this host, and waits until all ranks have
 * connected. `fd` comes from tdm_launch_create or tdm_launch_meet and remains the caller's. host NULL:
 * tdm_host_default(). timeout_ms is at least 1. Until the communicator is closed, a thread of this process, which
 * receives no signals, watches the other ranks. The job ends when a rank dies or gives no sign of life for five seconds
 * (it is stopped), and when the process that called tdm_launch_create ends before its ranks. */
TDM_API tdm_status tdm_comm_open_shm(tdm_comm **out, int fd, int rank, int world, const tdm_host *host,
                                     int64_t timeout_ms);
/* Waits for asynchronous calls in progress, then leaves the group: peers that still wait for this rank fail. Frees
 * requests that nobody waited for. NULL is allowed. */
TDM_API void tdm_comm_close(tdm_comm *comm);

TDM_API int tdm_comm_rank(const tdm_comm *comm);
TDM_API int tdm_comm_world(const tdm_comm *comm);
TDM_API const char *tdm_comm_backend(const tdm_comm *comm); /* "local", "shm" */

/* ---- collectives ---- */

/* Reduces the io of all ranks; every rank gets the result in its io. */
TDM_API tdm_status tdm_comm_all_reduce(tdm_comm *comm, tdm_span io, tdm_reduce_op op);
/* As an all_reduce of each of the `span_count` spans (at least 1, of one type), with the same bits, in one call: the
 * ranks meet once for all of them, which is faster for many small ones. Every rank passes spans of the same counts in
 * the same order. The array is borrowed like the spans. */
TDM_API tdm_status tdm_comm_all_reduce_coalesced(tdm_comm *comm, const tdm_span *spans, size_t span_count,
                                                 tdm_reduce_op op);
/* Copies the root's io into the io of every rank. */
TDM_API tdm_status tdm_comm_broadcast(tdm_comm *comm, tdm_span io, int root);
/* As all_reduce, but only the root gets the result. The io of the others is unchanged. */
TDM_API tdm_status tdm_comm_reduce(tdm_comm *comm, tdm_span io, int root, tdm_reduce_op op);
/* Collects the `in` of every rank in the root's `out`: out.count = world * in.count, and rank r's part begins at r *
 * in.count. Only the root's `out` is used. */
TDM_API tdm_status tdm_comm_gather(tdm_comm *comm, tdm_span in, tdm_span out, int root);
/* As gather, but every rank gets the result. `in` may be this rank's own part of `out`. */
TDM_API tdm_status tdm_comm_all_gather(tdm_comm *comm, tdm_span in, tdm_span out);
/* Distributes the root's `in`: rank r gets the part that begins at r * out.count. in.count = world * out.count. Only
 * the root's `in` is used. */
TDM_API tdm_status tdm_comm_scatter(tdm_comm *comm, tdm_span in, tdm_span out, int root);
/* Reduces the `in` of all ranks and distributes the result: rank r gets the part that begins at r * out.count. in.count
 * = world * out.count. `out` may be this rank's own part of `in`. */
TDM_API tdm_status tdm_comm_reduce_scatter(tdm_comm *comm, tdm_span in, tdm_span out, tdm_reduce_op op);
/* Every rank sends part r of its `in` to rank r, and gets the part from rank r as part r of its `out`. The parts are
 * equal: in.count = out.count, a multiple of the number of ranks. */
TDM_API tdm_status tdm_comm_all_to_all(tdm_comm *comm, tdm_span in, tdm_span out);
/* As all_to_all, with parts of any size: in_counts[r] elements go to rank r, out_counts[r] come from it; a count may be
 * 0. Each array has a count for each rank, and is borrowed like the spans. The parts lie one behind another, in the
 * order of the ranks: in.count is the sum of in_counts, out.count that of out_counts. What a rank sends to another must
 * be what that one expects from it; if not, the call is TDM_E_USAGE on every rank, and the message names the two and
 * both counts. */
TDM_API tdm_status tdm_comm_all_to_all_v(tdm_comm *comm, tdm_span in, const size_t *in_counts, tdm_span out,
                                         const size_t *out_counts);
/* As an all_gather of each of the `span_count` pairs (at least 1, all of one type), in one call: the ranks meet once
 * for all of them. outs[i].count = world * ins[i].count; ins[i] may be this rank's own part of outs[i]. Every rank
 * passes spans of the same counts in the same order. The arrays are borrowed like the spans. */
TDM_API tdm_status tdm_comm_all_gather_coalesced(tdm_comm *comm, const tdm_span *ins, const tdm_span *outs,
                                                 size_t span_count);
/* As a reduce_scatter of each of the pairs, with the same bits, in one call: ins[i].count = world * outs[i].count, and
 * outs[i] may be this rank's own part of ins[i]. Else as all_gather_coalesced. */
TDM_API tdm_status tdm_comm_reduce_scatter_coalesced(tdm_comm *comm, const tdm_span *ins, const tdm_span *outs,
                                                     size_t span_count, tdm_reduce_op op);
/* Returns when every rank has called it. */
TDM_API tdm_status tdm_comm_barrier(tdm_comm *comm);

/* Send to and receive from one rank. A send returns when the receiver has the data, so in a ring let the even ranks
 * send first. Messages from one rank to another arrive in order. Count and type must be equal at both ends. */
TDM_API tdm_status tdm_comm_send(tdm_comm *comm, tdm_span in, int to);
TDM_API tdm_status tdm_comm_receive(tdm_comm *comm, tdm_span out, int from);
/* As receive, from whichever rank sends first. *from is set to its rank; NULL: is not asked for. Of several that wait,
 * the lowest rank is taken. */
TDM_API tdm_status tdm_comm_receive_any(tdm_comm *comm, tdm_span out, int *from);
/* Sends and receives `count` messages (at least 1, of any types) at once, and returns when all are done. None waits for
 * another one, except that those from one rank to another arrive in the order of its list; so the order of a list
 * matters only among messages with one peer, and in a ring no rank need begin. Not a collective: only ranks that have
 * messages make the call. The other end of each may be a batch, too, or a send or receive. The array is borrowed like
 * the spans. */
TDM_API tdm_status tdm_comm_batch_send_receive(tdm_comm *comm, const tdm_transfer *transfers, size_t count);

/* Allocates `bytes` zeroed bytes on every rank, aligned to 64, that peers can access directly: collectives on spans
 * within them make no extra copy. The memory lives until this process closes its last communicator of the job.
 * Collective. */
TDM_API tdm_status tdm_comm_allocate(tdm_comm *comm, size_t bytes, void **out);
/* Makes a communicator of the `count` ranks listed, in that order; *out is NULL on ranks that are not listed.
 * Collective over `comm`, with the same list on every rank. Messages still name ranks by their number in the job. */
TDM_API tdm_status tdm_comm_split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out);
/* Ends the job: the calls of every rank fail with "rank N: why". Any thread. why NULL or "": the message says that this
 * rank called abort; then the call is also allowed in a signal handler. */
TDM_API void tdm_comm_abort(tdm_comm *comm, const char *why);

/* ---- asynchronous forms: return at once; a thread of the communicator's own makes the calls in the order started ----
 *
 * End each request with tdm_comm_wait. After the first of these calls, the calls above go through the same thread,
 * behind what was started before. */
TDM_API tdm_status tdm_comm_start_all_reduce(tdm_comm *comm, tdm_span io, tdm_reduce_op op, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_all_reduce_coalesced(tdm_comm *comm, const tdm_span *spans, size_t span_count,
                                                       tdm_reduce_op op, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_broadcast(tdm_comm *comm, tdm_span io, int root, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_reduce(tdm_comm *comm, tdm_span io, int root, tdm_reduce_op op,
                                         tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_gather(tdm_comm *comm, tdm_span in, tdm_span out, int root,
                                         tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_all_gather(tdm_comm *comm, tdm_span in, tdm_span out, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_scatter(tdm_comm *comm, tdm_span in, tdm_span out, int root,
                                          tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_reduce_scatter(tdm_comm *comm, tdm_span in, tdm_span out, tdm_reduce_op op,
                                                 tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_all_to_all(tdm_comm *comm, tdm_span in, tdm_span out, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_all_to_all_v(tdm_comm *comm, tdm_span in, const size_t *in_counts, tdm_span out,
                                               const size_t *out_counts, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_all_gather_coalesced(tdm_comm *comm, const tdm_span *ins, const tdm_span *outs,
                                                       size_t span_count, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_reduce_scatter_coalesced(tdm_comm *comm, const tdm_span *ins, const tdm_span *outs,
                                                           size_t span_count, tdm_reduce_op op,
                                                           tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_barrier(tdm_comm *comm, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_send(tdm_comm *comm, tdm_span in, int to, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_receive(tdm_comm *comm, tdm_span out, int from, tdm_comm_request **request);
TDM_API tdm_status tdm_comm_start_batch_send_receive(tdm_comm *comm, const tdm_transfer *transfers, size_t count,
                                                     tdm_comm_request **request);
/* *from is written before the request is done. */
TDM_API tdm_status tdm_comm_start_receive_any(tdm_comm *comm, tdm_span out, int *from, tdm_comm_request **request);
/* Returns non-zero if tdm_comm_wait would not wait: the call has ended, with or without success. Never waits. */
TDM_API int tdm_comm_done(tdm_comm_request *request);
/* Waits for the end of the call, frees the request and returns the call's result; its error becomes this thread's. If
 * `ms` is not NULL it is set to the milliseconds that the call itself took. */
TDM_API tdm_status tdm_comm_wait(tdm_comm_request *request, double *ms);

/* ---- ranks that a launcher started ---- */

typedef enum tdm_launch_source {
    TDM_LAUNCH_NONE,      /* no launcher: one process */
    TDM_LAUNCH_TANDEM,    /* TANDEM_RANK, TANDEM_WORLD, TANDEM_LAUNCH_FD */
    TDM_LAUNCH_TORCHRUN,  /* RANK, WORLD_SIZE with LOCAL_RANK */
    TDM_LAUNCH_SLURM,     /* SLURM_PROCID in a step of srun */
    TDM_LAUNCH_OPENMPI,   /* OMPI_COMM_WORLD_RANK */
    TDM_LAUNCH_PMI,       /* PMI_RANK: MPICH, Intel MPI; MV2_COMM_WORLD_RANK */
    TDM_LAUNCH_PYTORCHJOB /* RANK, WORLD_SIZE without LOCAL_RANK */
} tdm_launch_source;

/* Set `size` with TDM_LAUNCH_FACTS_INIT. */
typedef struct tdm_launch_facts {
    uint32_t size;
    tdm_launch_source source;
    int rank, world, local_rank, local_world; /* local: on this host */
    int fd;                                   /* TANDEM_LAUNCH_FD; -1 if there is none */
    char master_addr[256];                    /* "" if unknown */
    int master_port;                          /* 0 if unknown */
    char job[160];                            /* tells this job from others on the host; "" if nothing does */
    int store; /* non-zero: torchrun's agent keeps a TCPStore at the master's address, where ranks tell one another */
} tdm_launch_facts;
#define TDM_LAUNCH_FACTS_INIT \
    { sizeof(tdm_launch_facts), TDM_LAUNCH_NONE, 0, 1, 0, 1, -1, {0}, 0, {0}, 0 }

/* Reads what the environment says about this process into *out. Without a launcher: TDM_LAUNCH_NONE, rank 0 of 1.
 * Values that contradict each other are TDM_E_USAGE, and the message names them; *out may then be passed to
 * tdm_launch_fail. */
TDM_API tdm_status tdm_launch_from_env(tdm_launch_facts *out);
TDM_API const char *tdm_launch_source_name(tdm_launch_source source); /* "torchrun" */
/* Meets the other ranks of this job, whoever started them, and returns in *fd the shared descriptor for
 * tdm_comm_open_shm; close it with close(). init_method: "env" (or NULL), "tcp://host:port" or "file:///path". host
 * NULL: tdm_host_default(). timeout_ms is at least 1. Ranks on several hosts are TDM_E_UNSUPPORTED.
 *
 * While ranks are missing, the host's log says which, after five seconds and then every minute. If rank 0 exists but
 * does not answer for heartbeat_ms (at least 1000; 0: wait for ever), for example because it is stopped, the result is
 * TDM_E_COMM. Wrong facts are reported to the other ranks as by tdm_launch_fail. */
TDM_API tdm_status tdm_launch_meet(int *fd, const tdm_launch_facts *facts, const tdm_host *host,
                                   const char *init_method, int64_t timeout_ms, int64_t heartbeat_ms);
/* For a rank that has failed and will not meet the others: they fail at once with `why` instead of waiting for it.
 * Returns when they have arrived, after at most three seconds. */
TDM_API void tdm_launch_fail(const tdm_launch_facts *facts, const char *init_method, const char *why);

/* ---- several hosts ---- */

typedef struct tdm_hosts_options {
    uint32_t size;
    const tdm_host *host; /* NULL: tdm_host_default() */
    const char *backend;  /* the module that carries the data: "gloo", or another HOSTS_MODULE of sys/backends.def */
    const char
        *init_method; /* "env" (or NULL): MASTER_ADDR and MASTER_PORT; "tcp://host:port" of rank 0. mpi: not used */
    /* The network interface for the ranks' connections: its name or its address. NULL: the one that leads to rank 0. */
    const char *interface;
    int64_t timeout_ms;      /* deadline of each call; at least 1; INT64_MAX: none */
    int64_t heartbeat_ms;    /* a rank that is silent for so long ends the job; at least 1000, or 0: none does */
    const char *module_path; /* NULL: TANDEM_MODULE_PATH and the folders next to the library */
} tdm_hosts_options;
#define TDM_HOSTS_OPTIONS_INIT \
    { sizeof(tdm_hosts_options), NULL, "gloo", NULL, NULL, 600000, 5000, NULL }

/* Opens this process's end of a group whose ranks are on several hosts (or on one), and waits until all ranks have
 * connected. `facts` is what tdm_launch_from_env says, or its rank, world, master_addr, master_port and job.
 *
 * Rank 0 listens at the address of init_method. Only ranks of the same job, with the same secret (TANDEM_SECRET_FILE,
 * TANDEM_SECRET), are admitted; data and control are neither encrypted nor protected after that. Until the last
 * communicator of the job is closed, a thread of this process, which receives no signals, keeps in touch with rank 0: a
 * rank that dies, is stopped or cannot be reached ends the job. The last close waits until all ranks have closed
 * theirs.
 *
 * TDM_E_UNSUPPORTED if the module is not available. mpi calls MPI_Init_thread unless the program has, and then also
 * MPI_Finalize; it needs MPI_THREAD_SERIALIZED at least, and no other thread may call MPI meanwhile unless MPI has
 * MPI_THREAD_MULTIPLE. */
TDM_API tdm_status tdm_comm_open_hosts(tdm_comm **out, const tdm_launch_facts *facts, const tdm_hosts_options *options);

TDM_END_DECLS
#endif
