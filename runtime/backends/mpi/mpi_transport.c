/* Messages over MPI. MPI has no deadlines, and gives no promise once a rank has died: tandem's own connections watch
 * the ranks, and `abort` ends what still waits here. */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "runtime/backends/kit/module_host.h"
#include "runtime/backends/mpi/mpi_links.h"
#include "runtime/backends/mpi/mpi_transport.h"
#include "runtime/base/system/clock.h"

/* PART: what one MPI message holds at most; MPI counts in int. GIVE_UP_MS: how long all messages of a job that has
 * ended may take to get out of the caller's memory; those to a dead rank never do, and a rank has a second to end.
 * LISTS: of messages that have begun, by tag. */
enum { PART = 1 << 30, SPINS = 2000, PAUSE_NS = 20000, GIVE_UP_MS = 200, LISTS = 64 };

typedef struct transport {
    tdm_transport base; /* must be first */
    MPI_Comm comm;
    pthread_mutex_t mutex; /* MPI may not allow calls from two threads at once */
    bool is_aborted;       /* atomic */
    int64_t give_up_ns;    /* atomic; when its messages are given up; 0: none has been waited for after the job's end */
    bool is_initializer;   /* MPI_Init was called here, and so MPI_Finalize must be */
    int begin_code;        /* the first failure of `begin` */
    mpi_links *links;      /* guarded by the mutex */
    struct pending *begun[LISTS];
} transport;

static void close_transport(tdm_transport *base);

static tdm_status check(int code, const char *doing) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) return TDM_OK;
    MPI_Error_string(code, text, &length);
    TDM_MODULE_FAIL(TDM_E_COMM, "mpi: %s: %s", doing, text);
}

/* ---- opening ---- */

/* The call in which Open MPI meets a closed connection tells mpirun of it, and waits until that has heard. mpirun may
 * be ending ranks then, and hears nothing for seconds. Tandem itself says which rank is lost. */
static void hold_tongue(void) {
    bool *is_quiet = dlsym(RTLD_DEFAULT, "orte_execute_quiet");
    if (is_quiet != NULL) *is_quiet = true;
}

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
    if (code == MPI_SUCCESS) hold_tongue(); /* not earlier: what is wrong at the start, only Open MPI says */
    return code;
}

static tdm_status begin_mpi(transport *t) {
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

bool tdm__mpi_version(char *text, size_t bytes) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    if (MPI_Get_library_version(version, &length) != MPI_SUCCESS) return false;
    version[strcspn(version, ",\n")] = '\0';
    for (char *tab = version; (tab = strchr(tab, '\t')) != NULL;) *tab = ' '; /* MPICH's */
    snprintf(text, bytes, "%s", version);
    return true;
}

static tdm_status check_ranks(const transport *t) {
    int rank, world;
    char version[64] = "MPI";
    TDM_MODULE_TRY(check(MPI_Comm_rank(t->comm, &rank), "MPI_Comm_rank"));
    TDM_MODULE_TRY(check(MPI_Comm_size(t->comm, &world), "MPI_Comm_size"));
    if (rank == t->base.rank && world == t->base.world) return TDM_OK;
    (void)tdm__mpi_version(version, sizeof(version));
    TDM_MODULE_FAIL(TDM_E_USAGE,
                    "mpi: this process is rank %d of %d, but %s, with which the module was built, says rank %d of %d; "
                    "start the ranks with the mpirun of that MPI, or with srun --mpi=pmix",
                    t->base.rank, t->base.world, version, rank, world);
}

static tdm_status connect_ranks(transport *t, int64_t silence_ms) {
    TDM_MODULE_TRY(begin_mpi(t));
    TDM_MODULE_TRY(check(MPI_Comm_dup(MPI_COMM_WORLD, &t->comm), "MPI_Comm_dup"));
    TDM_MODULE_TRY(check(MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    TDM_MODULE_TRY(check_ranks(t));
    t->links = tdm__mpi_links_open(t->base.host, t->comm, t->base.rank, t->base.world, silence_ms);
    if (t->links == NULL) TDM_MODULE_FAIL(TDM_E_MEMORY, "mpi: out of memory");
    return TDM_OK;
}

static tdm_status open_transport(tdm_transport **out, const tdm_host *host, int rank, int world, const char *interface,
                                 int64_t timeout_ms, int64_t silence_ms, void *addresses) {
    (void)interface;
    (void)timeout_ms;
    (void)addresses;
    transport *t = tdm__module_new(host, sizeof(*t));
    *out = NULL;
    if (t == NULL || pthread_mutex_init(&t->mutex, NULL) != 0) {
        tdm__module_delete(t);
        TDM_MODULE_FAIL(TDM_E_MEMORY, "mpi: out of memory");
    }
    t->base = (tdm_transport){.ops = &tdm__mpi_ops, .host = host, .rank = rank, .world = world};
    t->comm = MPI_COMM_NULL;
    const tdm_status status = connect_ranks(t, silence_ms);
    if (status != TDM_OK) {
        __atomic_store_n(&t->is_aborted, true, __ATOMIC_RELEASE); /* the others may wait in a call */
        close_transport(&t->base);
        return status;
    }
    *out = &t->base;
    return TDM_OK;
}

/* ---- messages ---- */

/* A message on its way. */
typedef struct pending {
    struct pending *next;
    tdm_message message;
    MPI_Request request[]; /* of its parts */
} pending;

static int parts_of(const tdm_message *message) {
    return (int)((message->bytes + PART - 1) / PART);
}

/* Starts the parts of one message. The mutex is held. */
static int start(const transport *t, const tdm_message *message, MPI_Request *request) {
    for (size_t done = 0; done < message->bytes; done += PART, request++) {
        const size_t left = message->bytes - done;
        const int bytes = left < PART ? (int)left : PART, tag = (int)message->tag;
        unsigned char *data = (unsigned char *)message->data + done;
        const int code = message->sends ? MPI_Isend(data, bytes, MPI_BYTE, message->peer, tag, t->comm, request)
                                        : MPI_Irecv(data, bytes, MPI_BYTE, message->peer, tag, t->comm, request);
        if (code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
}

/* A receive from any of some ranks is started when one of them has sent. The mutex is held. */
static int start_from_any(const transport *t, const tdm_message *message, MPI_Request *request, bool *found) {
    int flag = 0, code = MPI_SUCCESS;
    tdm_message from_one = *message;
    for (int i = 0; i < message->any_count && code == MPI_SUCCESS && !flag; i++) {
        from_one.peer = message->any[i];
        code = MPI_Iprobe(from_one.peer, (int)message->tag, t->comm, &flag, MPI_STATUS_IGNORE);
    }
    *found = flag != 0;
    if (code != MPI_SUCCESS || !flag) return code;
    *message->from = from_one.peer;
    return start(t, &from_one, request);
}

/* MPI makes progress while it is called; so waiting is asking. */
static void pause_between(int look) {
    if (look < SPINS)
        (void)sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* The messages of a call. */
typedef struct batch {
    transport *t;
    const tdm_message *message;
    int messages, count; /* count: of requests */
    MPI_Request *request;
    bool *is_started; /* of each message */
    int lost;         /* the rank whose host does not answer; -1: none */
} batch;

/* Asks whether all is done. The mutex is held. */
static int look(const batch *b, bool *done) {
    int flag = 0;
    bool all = true;
    for (int i = 0, at = 0; i < b->messages; at += parts_of(&b->message[i++])) {
        if (b->is_started[i]) continue;
        const int code = start_from_any(b->t, &b->message[i], &b->request[at], &b->is_started[i]);
        if (code != MPI_SUCCESS) return code;
        all = all && b->is_started[i];
    }
    const int code = MPI_Testall(b->count, b->request, &flag, MPI_STATUSES_IGNORE);
    *done = all && flag != 0;
    return code;
}

/* Does a host not answer? The mutex is held. */
static void look_at_links(batch *b) {
    bool is_peer[MPI_LINKS_RANKS] = {false};
    for (int i = 0; i < b->messages; i++)
        if (b->message[i].any == NULL) is_peer[b->message[i].peer] = true;
    b->lost = tdm__mpi_links_lost(b->t->links, is_peer);
}

/* All messages are there. The mutex is held. */
static void note_senders(const batch *b) {
    for (int i = 0; i < b->messages; i++) {
        const tdm_message *m = &b->message[i];
        if (!m->sends && m->bytes > 0) tdm__mpi_links_heard(b->t->links, m->any != NULL ? *m->from : m->peer);
    }
    tdm__mpi_links_see(b->t->links);
}

/* Until all are done, the job has ended, or a host is lost. */
static int wait_for_all(batch *b, bool *done) {
    for (int n = 0;; n++) {
        pthread_mutex_lock(&b->t->mutex);
        const int code = look(b, done);
        if (code == MPI_SUCCESS && !*done && n > SPINS) look_at_links(b);
        if (code == MPI_SUCCESS && *done) note_senders(b);
        pthread_mutex_unlock(&b->t->mutex);
        if (code != MPI_SUCCESS || *done || b->lost >= 0 || __atomic_load_n(&b->t->is_aborted, __ATOMIC_ACQUIRE))
            return code;
        pause_between(n);
    }
}

/* The job has ended, or nobody will send: receives are withdrawn, so that MPI does not write to the caller's memory
 * later. What is sent cannot be; it is waited for, but not for long. */
static void withdraw(transport *t, bool sends, MPI_Request *request, int count, int64_t deadline_ns) {
    int flag = 0, code = MPI_SUCCESS;
    pthread_mutex_lock(&t->mutex);
    for (int i = 0; i < count && !sends; i++)
        if (request[i] != MPI_REQUEST_NULL) (void)MPI_Cancel(&request[i]);
    pthread_mutex_unlock(&t->mutex);
    for (int n = 0; code == MPI_SUCCESS && !flag; n++) {
        pthread_mutex_lock(&t->mutex);
        code = MPI_Testall(count, request, &flag, MPI_STATUSES_IGNORE);
        pthread_mutex_unlock(&t->mutex);
        if (tdm__now_ns() >= deadline_ns) return;
        if (!flag) pause_between(n);
    }
}

/* Counts from the first message that is waited for, whatever waits for the others. */
static int64_t give_up_ns(transport *t) {
    int64_t at = 0;
    const int64_t first = tdm__now_ns() + (int64_t)GIVE_UP_MS * 1000000;
    if (__atomic_compare_exchange_n(&t->give_up_ns, &at, first, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return first;
    return at;
}

/* ---- messages that have begun ---- */

static bool are_equal(const tdm_message *a, const tdm_message *b) {
    return a->sends == b->sends && a->peer == b->peer && a->tag == b->tag && a->data == b->data &&
           a->bytes == b->bytes && b->any == NULL;
}

static pending **list_of(transport *t, uint32_t tag) {
    return &t->begun[tag % LISTS];
}

/* Takes over the requests of a message that has begun. The mutex is held. */
static bool take_begun(transport *t, const tdm_message *message, MPI_Request *request) {
    for (pending **link = list_of(t, message->tag); *link != NULL; link = &(*link)->next) {
        pending *found = *link;
        if (!are_equal(&found->message, message)) continue;
        memcpy(request, found->request, (size_t)parts_of(message) * sizeof(*request));
        *link = found->next;
        tdm__module_delete(found);
        return true;
    }
    return false;
}

/* The mutex is held. */
static int begin_one(transport *t, const tdm_message *message) {
    const int parts = parts_of(message);
    pending **link = list_of(t, message->tag);
    pending *made = tdm__module_new(t->base.host, sizeof(*made) + (size_t)parts * sizeof(made->request[0]));
    if (made == NULL) return MPI_ERR_NO_MEM;
    made->message = *message;
    for (int i = 0; i < parts; i++) made->request[i] = MPI_REQUEST_NULL;
    while (*link != NULL) link = &(*link)->next; /* equal messages finish in the order in which they began */
    *link = made;
    return start(t, message, made->request);
}

static void begin(tdm_transport *base, const tdm_message *message, int count) {
    transport *t = (transport *)base;
    pthread_mutex_lock(&t->mutex);
    for (int i = 0; i < count && t->begin_code == MPI_SUCCESS; i++) t->begin_code = begin_one(t, &message[i]);
    pthread_mutex_unlock(&t->mutex);
}

/* tag < 0: of all tags */
static void drop(transport *t, uint32_t list, int64_t tag) {
    pending *dropped = NULL;
    const int64_t deadline = give_up_ns(t);
    pthread_mutex_lock(&t->mutex);
    for (pending **link = &t->begun[list]; *link != NULL;) {
        pending *each = *link;
        if (tag >= 0 && each->message.tag != tag) {
            link = &each->next;
            continue;
        }
        *link = each->next;
        each->next = dropped;
        dropped = each;
    }
    pthread_mutex_unlock(&t->mutex);
    while (dropped != NULL) {
        pending *next = dropped->next;
        withdraw(t, dropped->message.sends, dropped->request, parts_of(&dropped->message), deadline);
        tdm__module_delete(dropped);
        dropped = next;
    }
}

static void forget(tdm_transport *base, uint32_t tag) {
    drop((transport *)base, tag % LISTS, tag);
}

/* ---- a call ---- */

/* In the order of the messages: those of one tag between two ranks arrive in it. */
static int start_all(const batch *b) {
    transport *t = b->t;
    int code = t->begin_code;
    for (int i = 0, at = 0; i < b->messages && code == MPI_SUCCESS; at += parts_of(&b->message[i++])) {
        b->is_started[i] = b->message[i].bytes == 0 || take_begun(t, &b->message[i], &b->request[at]);
        if (b->is_started[i] || b->message[i].any != NULL) continue;
        code = start(t, &b->message[i], &b->request[at]);
        b->is_started[i] = true;
    }
    return code;
}

static tdm_status run(batch *b) {
    bool done = false;
    for (int i = 0; i < b->count; i++) b->request[i] = MPI_REQUEST_NULL;
    pthread_mutex_lock(&b->t->mutex);
    int code = start_all(b);
    pthread_mutex_unlock(&b->t->mutex);
    if (code == MPI_SUCCESS) code = wait_for_all(b, &done);
    if (code == MPI_SUCCESS && !done) {
        const int64_t deadline = give_up_ns(b->t);
        for (int i = 0, at = 0; i < b->messages; at += parts_of(&b->message[i++]))
            withdraw(b->t, b->message[i].sends, &b->request[at], parts_of(&b->message[i]), deadline);
        if (b->lost >= 0)
            TDM_MODULE_FAIL(TDM_E_COMM, "mpi: the host of rank %d does not answer, or has closed the connection",
                            b->lost);
        TDM_MODULE_FAIL(TDM_E_COMM, "mpi: a message: the job has ended");
    }
    return check(code, "a message");
}

static tdm_status exchange(tdm_transport *base, const tdm_message *message, int messages, int *lost) {
    batch b = {.t = (transport *)base, .message = message, .messages = messages, .lost = -1};
    for (int i = 0; i < messages; i++) b.count += parts_of(&message[i]);
    b.request = tdm__module_new(base->host, ((size_t)b.count + 1) * sizeof(*b.request));
    b.is_started = tdm__module_new(base->host, ((size_t)messages + 1) * sizeof(*b.is_started));
    const bool has_room = b.request != NULL && b.is_started != NULL;
    const tdm_status result = has_room ? run(&b) : TDM_E_MEMORY;
    *lost = b.lost;
    tdm__module_delete(b.request);
    tdm__module_delete(b.is_started);
    if (!has_room) TDM_MODULE_FAIL(TDM_E_MEMORY, "mpi: out of memory");
    return result;
}

/* ---- the end ---- */

static void abort_transport(tdm_transport *base) {
    __atomic_store_n(&((transport *)base)->is_aborted, true, __ATOMIC_RELEASE);
}

static void close_transport(tdm_transport *base) {
    transport *t = (transport *)base;
    if (t == NULL) return;
    for (uint32_t list = 0; list < LISTS; list++) drop(t, list, -1);
    /* Both wait for all ranks, so not after a failure. */
    const bool is_good = !__atomic_load_n(&t->is_aborted, __ATOMIC_ACQUIRE);
    if (is_good && t->comm != MPI_COMM_NULL) (void)MPI_Comm_free(&t->comm);
    if (is_good && t->is_initializer) (void)MPI_Finalize();
    pthread_mutex_destroy(&t->mutex);
    tdm__mpi_links_close(t->links);
    tdm__module_delete(t);
}

const tdm_transport_ops tdm__mpi_ops = {
    .name = "mpi",
    .address_bytes = 0,
    .open = open_transport,
    .exchange = exchange,
    .begin = begin,
    .forget = forget,
    .abort = abort_transport,
    .close = close_transport,
};
