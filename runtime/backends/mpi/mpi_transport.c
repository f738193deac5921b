/* Messages over MPI. MPI has no deadlines, and gives no promise once a rank has died: tandem's own connections watch the
 * ranks, and `abort` ends what still waits here. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/backends/kit/module_host.h"
#include "runtime/backends/mpi/mpi_transport.h"
#include "runtime/base/system/clock.h"

/* PART: what one MPI message holds at most; MPI counts in int. GIVE_UP_MS: how long messages of a job that has ended may
 * take to get out of the caller's memory. */
enum { PART = 1 << 30, SPINS = 2000, PAUSE_NS = 20000, GIVE_UP_MS = 1000 };

typedef struct transport {
    tdm_transport base; /* must be first */
    MPI_Comm comm;
    pthread_mutex_t mutex; /* MPI may not allow calls from two threads at once */
    bool is_aborted;       /* atomic */
    bool is_initializer;   /* MPI_Init was called here, and so MPI_Finalize must be */
} transport;

static tdm_status check(int code, const char *doing) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) return TDM_OK;
    MPI_Error_string(code, text, &length);
    TDM_MODULE_FAIL(TDM_E_COMM, "mpi: %s: %s", doing, text);
}

/* ---- opening ---- */

/* MPI may start threads, which must receive no signals: those belong to the program. */
static int initialize(int *level) {
    sigset_t all, before;
    Dl_info self;
    /* Open MPI's plugins look for its symbols among the global ones. */
    if (dladdr((const void *)&MPI_Init_thread, &self) != 0)
        (void)dlopen(self.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, level);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static tdm_status begin(transport *t) {
    int is_done, was_done, level;
    TDM_MODULE_TRY(check(MPI_Finalized(&is_done), "MPI_Finalized"));
    if (is_done)
        TDM_MODULE_FAIL(TDM_E_USAGE, "mpi: MPI has been finalized in this process, and cannot begin again; a process "
                                     "can open one communicator over mpi, or must call MPI_Init_thread itself");
    TDM_MODULE_TRY(check(MPI_Initialized(&was_done), "MPI_Initialized"));
    t->is_initializer = !was_done;
    TDM_MODULE_TRY(check(was_done ? MPI_Query_thread(&level) : initialize(&level), "MPI_Init_thread"));
    if (level < MPI_THREAD_SERIALIZED)
        TDM_MODULE_FAIL(TDM_E_UNSUPPORTED, "mpi: calls must be allowed from any thread: pass MPI_THREAD_SERIALIZED or "
                                           "MPI_THREAD_MULTIPLE to MPI_Init_thread");
    return TDM_OK;
}

static tdm_status check_ranks(const transport *t) {
    int rank, world;
    TDM_MODULE_TRY(check(MPI_Comm_rank(t->comm, &rank), "MPI_Comm_rank"));
    TDM_MODULE_TRY(check(MPI_Comm_size(t->comm, &world), "MPI_Comm_size"));
    if (rank != t->base.rank || world != t->base.world)
        TDM_MODULE_FAIL(TDM_E_USAGE,
                        "mpi: this process is rank %d of %d, but MPI says rank %d of %d; start the ranks with "
                        "mpirun, or with srun --mpi=pmix",
                        t->base.rank, t->base.world, rank, world);
    return TDM_OK;
}

static tdm_status connect_ranks(transport *t) {
    TDM_MODULE_TRY(begin(t));
    TDM_MODULE_TRY(check(MPI_Comm_dup(MPI_COMM_WORLD, &t->comm), "MPI_Comm_dup"));
    TDM_MODULE_TRY(check(MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    return check_ranks(t);
}

static void close_transport(tdm_transport *base) {
    transport *t = (transport *)base;
    if (t == NULL) return;
    /* Both wait for all ranks, so not after a failure. */
    const bool is_good = !__atomic_load_n(&t->is_aborted, __ATOMIC_ACQUIRE);
    if (is_good && t->comm != MPI_COMM_NULL) (void)MPI_Comm_free(&t->comm);
    if (is_good && t->is_initializer) (void)MPI_Finalize();
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

static tdm_status open_transport(tdm_transport **out, const tdm_host *host, int rank, int world, const char *interface,
                                 int64_t timeout_ms, int64_t silence_ms, void *addresses) {
    (void)interface;
    (void)timeout_ms;
    (void)silence_ms; /* MPI's connections are its own */
    (void)addresses;
    transport *t = calloc(1, sizeof(*t));
    *out = NULL;
    if (t == NULL || pthread_mutex_init(&t->mutex, NULL) != 0) {
        free(t);
        TDM_MODULE_FAIL(TDM_E_MEMORY, "mpi: out of memory");
    }
    t->base = (tdm_transport){.ops = &tdm__mpi_ops, .host = host, .rank = rank, .world = world};
    t->comm = MPI_COMM_NULL;
    const tdm_status status = connect_ranks(t);
    if (status != TDM_OK) {
        __atomic_store_n(&t->is_aborted, true, __ATOMIC_RELEASE); /* the others may wait in a call */
        close_transport(&t->base);
        return status;
    }
    *out = &t->base;
    return TDM_OK;
}

/* ---- messages ---- */

static int parts_of(const tdm_message *message) {
    return (int)((message->bytes + PART - 1) / PART);
}

/* Starts the parts of one message. The mutex is held. */
static int start(const transport *t, const tdm_message *message, MPI_Request *request) {
    for (size_t done = 0; done < message->bytes; done += PART, request++) {
        const size_t left = message->bytes - done;
        const int bytes = left < PART ? (int)left : PART, tag = (int)message->tag;
        unsigned char *data = (unsigned char *)message->data + done;
        const int from = message->any != NULL ? MPI_ANY_SOURCE : message->peer;
        const int code = message->sends ? MPI_Isend(data, bytes, MPI_BYTE, message->peer, tag, t->comm, request)
                                        : MPI_Irecv(data, bytes, MPI_BYTE, from, tag, t->comm, request);
        if (code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
}

/* MPI makes progress while it is called; so waiting is asking. */
static void pause_between(int look) {
    if (look < SPINS)
        (void)sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* Until all are done, the job has ended, or (deadline_ns > 0) it is too late. */
static int wait_for_all(transport *t, MPI_Request *request, MPI_Status *status, int count, int64_t deadline_ns,
                        bool *done) {
    int flag = 0, code = MPI_SUCCESS;
    for (int look = 0;; look++) {
        pthread_mutex_lock(&t->mutex);
        code = MPI_Testall(count, request, &flag, status);
        pthread_mutex_unlock(&t->mutex);
        *done = flag != 0;
        if (code != MPI_SUCCESS || flag) return code;
        if (deadline_ns == 0 && __atomic_load_n(&t->is_aborted, __ATOMIC_ACQUIRE)) return MPI_SUCCESS;
        if (deadline_ns > 0 && tdm__now_ns() >= deadline_ns) return MPI_SUCCESS;
        pause_between(look);
    }
}

/* The job has ended: receives are withdrawn, so that MPI does not write to the caller's memory later. */
static void withdraw(transport *t, const tdm_message *message, int messages, MPI_Request *request, MPI_Status *status,
                     int count) {
    bool done;
    pthread_mutex_lock(&t->mutex);
    for (int i = 0, at = 0; i < messages; at += parts_of(&message[i++]))
        for (int k = 0; !message[i].sends && k < parts_of(&message[i]); k++)
            if (request[at + k] != MPI_REQUEST_NULL) (void)MPI_Cancel(&request[at + k]);
    pthread_mutex_unlock(&t->mutex);
    (void)wait_for_all(t, request, status, count, tdm__now_ns() + (int64_t)GIVE_UP_MS * 1000000, &done);
}

static tdm_status run(transport *t, const tdm_message *message, int messages, MPI_Request *request, MPI_Status *status,
                      int count) {
    int code = MPI_SUCCESS;
    bool done = false;
    for (int i = 0; i < count; i++) request[i] = MPI_REQUEST_NULL;
    pthread_mutex_lock(&t->mutex);
    for (int i = 0, at = 0; i < messages && code == MPI_SUCCESS; at += parts_of(&message[i++]))
        code = start(t, &message[i], request + at);
    pthread_mutex_unlock(&t->mutex);
    if (code == MPI_SUCCESS) code = wait_for_all(t, request, status, count, 0, &done);
    if (code == MPI_SUCCESS && !done) {
        withdraw(t, message, messages, request, status, count);
        TDM_MODULE_FAIL(TDM_E_COMM, "mpi: a message: the job has ended");
    }
    TDM_MODULE_TRY(check(code, "a message"));
    for (int i = 0, at = 0; i < messages; at += parts_of(&message[i++]))
        if (message[i].any != NULL) *message[i].from = status[at].MPI_SOURCE;
    return TDM_OK;
}

static tdm_status exchange(tdm_transport *base, const tdm_message *message, int messages, int *lost) {
    int count = 0;
    *lost = -1;
    for (int i = 0; i < messages; i++) count += parts_of(&message[i]);
    MPI_Request *request = calloc((size_t)count + 1, sizeof(*request));
    MPI_Status *status = calloc((size_t)count + 1, sizeof(*status));
    tdm_status result = TDM_E_MEMORY;
    if (request != NULL && status != NULL) result = run((transport *)base, message, messages, request, status, count);
    free(request);
    free(status);
    if (result == TDM_E_MEMORY) TDM_MODULE_FAIL(TDM_E_MEMORY, "mpi: out of memory");
    return result;
}

static void abort_transport(tdm_transport *base) {
    __atomic_store_n(&((transport *)base)->is_aborted, true, __ATOMIC_RELEASE);
}

const tdm_transport_ops tdm__mpi_ops = {
    .name = "mpi",
    .address_bytes = 0,
    .open = open_transport,
    .exchange = exchange,
    .abort = abort_transport,
    .close = close_transport,
};
