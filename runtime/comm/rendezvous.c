/* Ranks that somebody else has started meet on a local socket, where rank 0 hands out the descriptor of their memory.
 *
 * An abstract socket has no file and ends with its process. Its name holds the user and a hash of what tells the job
 * from others (port, run number); both ends check the other's user, so that nobody else can slip in or listen (door.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/hash.h"
#include "runtime/base/status.h"
#include "runtime/comm/launch.h"
#include "runtime/comm/door.h"
#include "runtime/comm/shm/shm.h"

enum { RETRY_MS = 20, HELLO_MS = 1000, REFUSAL_TEXT = 200 };

static const char magic[8] = "tdmmeet1";

typedef struct hello {
    char magic[8];
    uint64_t job;
    int32_t rank, world;
} hello;

typedef struct answer {
    char magic[8];
    char refusal[REFUSAL_TEXT]; /* "": welcome, the descriptor comes with this message */
} answer;

typedef struct meeting {
    const tdm_launch_facts *facts;
    uint64_t job; /* hash of what tells it from others */
    tdm_door door;
    int64_t timeout_ms, deadline_ns;
} meeting;

/* ---- where ---- */

static tdm_status find_place(meeting *m, const char *init_method) {
    static const char file_scheme[] = "file://";
    tdm_door *door = &m->door;
    char key[512], base[sizeof(door->address.sun_path)];
    bool is_env = init_method == NULL || strcmp(init_method, "env") == 0;
    if (!is_env && strncmp(init_method, file_scheme, strlen(file_scheme)) != 0 &&
        strncmp(init_method, "tcp://", 6) != 0)
        TDM_FAIL(TDM_E_USAGE, "init_method wants env, tcp://host:port or file:///path, got '%s'", init_method);
    /* Ranks that nothing else tells from other jobs have at least the same launcher. */
    if (is_env && m->facts->job[0] == '\0')
        snprintf(key, sizeof(key), "parent/%ld", (long)getppid());
    else
        snprintf(key, sizeof(key), "%s %s", is_env ? "" : init_method, m->facts->job);
    m->job = tdm__hash64(key, strlen(key), 0);
    door->address.sun_family = AF_UNIX;
    door->is_file = !is_env && strncmp(init_method, file_scheme, strlen(file_scheme)) == 0;
    if (door->is_file) {
        const char *path = init_method + strlen(file_scheme);
        int length = snprintf(base, sizeof(base), "%s.tandem", path);
        if (path[0] != '/' || (size_t)length >= sizeof(base))
            TDM_FAIL(TDM_E_USAGE, "init_method file:// wants an absolute path of at most %zu bytes, got '%s'",
                     sizeof(base) - sizeof(".tandem"), path);
        memcpy(door->address.sun_path, base, (size_t)length + 1);
        door->address_bytes = (socklen_t)sizeof(door->address);
        snprintf(door->where, sizeof(door->where), "%s", base);
        return TDM_OK;
    }
    int length =
        snprintf(base, sizeof(base), "tandem-%lu-%016llx", (unsigned long)geteuid(), (unsigned long long)m->job);
    memcpy(door->address.sun_path + 1, base, (size_t)length);
    door->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (!is_env)
        snprintf(door->where, sizeof(door->where), "%.100s", init_method);
    else if (m->facts->master_port != 0)
        snprintf(door->where, sizeof(door->where), "port %d of this host", m->facts->master_port);
    else
        snprintf(door->where, sizeof(door->where), "this host");
    return TDM_OK;
}

/* ---- sockets ---- */

static int ms_left(const meeting *m, int most) {
    int64_t ms = (m->deadline_ns - tdm__now_ns() + 999999) / 1000000;
    return ms < 0 ? 0 : ms < most ? (int)ms : most;
}

/* Readable within `ms`? Signals cut the time short, never the wait of the caller, which asks again. */
static bool readable(int fd, int ms) {
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    return poll(&entry, 1, ms) == 1;
}

static bool send_answer(int to, const answer *what, int fd) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    answer copy = *what;
    struct iovec part = {.iov_base = &copy, .iov_len = sizeof(copy)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(copy);
}

/* The message's size, or -1; *fd is a descriptor that came with it, or -1. */
static ssize_t receive_answer(int from, answer *what, int *fd) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = what, .iov_len = sizeof(*what)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    *fd = -1;
    ssize_t bytes = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = bytes > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(fd, CMSG_DATA(header), sizeof(*fd));
    return bytes;
}

/* ---- rank 0 ---- */

/* Why this one is not let in; "" if it is. */
static void judge(const meeting *m, const hello *who, const bool *served, answer *out) {
    *out = (answer){0};
    memcpy(out->magic, magic, sizeof(magic));
    int world = m->facts->world;
    if (who->job != m->job)
        snprintf(out->refusal, sizeof(out->refusal), "another job is meeting there");
    else if (who->world != world)
        snprintf(out->refusal, sizeof(out->refusal), "rank 0 was told of %d ranks, rank %d of %d", world, who->rank,
                 who->world);
    else if (who->rank < 1 || who->rank >= world)
        snprintf(out->refusal, sizeof(out->refusal), "no such rank: %d of %d", who->rank, world);
    else if (served[who->rank])
        snprintf(out->refusal, sizeof(out->refusal), "rank %d has come twice", who->rank);
}

/* One visitor; *left counts down if it was a rank that now has the descriptor. Whoever does not belong here is turned
 * away and the meeting goes on. A rank of this very job that was told of another number of ranks ends it: the ranks can
 * never be complete. */
static tdm_status serve_one(const meeting *m, int visitor, int fd, bool *served, int *left) {
    hello who;
    answer reply;
    if (!tdm__door_is_same_user(visitor) || !readable(visitor, ms_left(m, HELLO_MS))) return TDM_OK;
    if (recv(visitor, &who, sizeof(who), 0) != (ssize_t)sizeof(who) || memcmp(who.magic, magic, sizeof(magic)) != 0)
        return TDM_OK;
    judge(m, &who, served, &reply);
    bool welcome = reply.refusal[0] == '\0';
    if (send_answer(visitor, &reply, welcome ? fd : -1) && welcome) {
        served[who.rank] = true;
        --*left;
    }
    if (who.job == m->job && who.world != m->facts->world)
        TDM_FAIL(TDM_E_USAGE,
                 "rendezvous at %s: rank 0 was told of %d ranks, rank %d of %d; start all ranks with one number",
                 m->door.where, m->facts->world, who.rank, who.world);
    return TDM_OK;
}

static tdm_status missing_ranks(const meeting *m, const bool *served) {
    char list[128] = "";
    int count = 0;
    for (int r = 1; r < m->facts->world; r++) {
        size_t used = strlen(list);
        if (!served[r] && used < sizeof(list) - 16)
            snprintf(list + used, sizeof(list) - used, "%s%d", count++ > 0 ? ", " : "", r);
    }
    TDM_FAIL(TDM_E_COMM, "rendezvous at %s: rank 0 waited %lld ms for rank%s %s; start all ranks on this host",
             m->door.where, (long long)m->timeout_ms, count == 1 ? "" : "s", list);
}

static tdm_status serve(const meeting *m, int listener, int fd) {
    bool served[TDM_COMM_WORLD_MAX] = {false};
    for (int left = m->facts->world - 1; left > 0;) {
        if (tdm__now_ns() >= m->deadline_ns) return missing_ranks(m, served);
        if (!readable(listener, ms_left(m, HELLO_MS))) continue;
        int visitor = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (visitor < 0) continue;
        tdm_status status = serve_one(m, visitor, fd, served, &left);
        close(visitor);
        TDM_TRY(status);
    }
    return TDM_OK;
}

static tdm_status host(meeting *m, int *fd) {
    int made, listener;
    TDM_TRY(tdm__shm_create_file(&made, m->facts->world, false));
    tdm_status status = tdm__door_listen(&m->door, &listener);
    if (status == TDM_OK) {
        status = serve(m, listener, made);
        tdm__door_leave(&m->door, listener);
    }
    if (status == TDM_OK) {
        *fd = made;
        return TDM_OK;
    }
    /* Ranks that have come already wait for the others in the shared memory. */
    tdm__shm_abort(made, 0, tdm_error_message());
    close(made);
    return status;
}

/* ---- the others ---- */

/* One try to get the descriptor. TDM_OK with *fd < 0: rank 0 is not there (yet). */
static tdm_status visit(const meeting *m, int *fd) {
    int visitor;
    hello self = {.job = m->job, .rank = m->facts->rank, .world = m->facts->world};
    answer reply;
    memcpy(self.magic, magic, sizeof(magic));
    TDM_TRY(tdm__door_visit(&m->door, &visitor));
    if (visitor < 0) return TDM_OK;
    ssize_t bytes = -1;
    if (send(visitor, &self, sizeof(self), MSG_NOSIGNAL) == (ssize_t)sizeof(self)) {
        while (tdm__now_ns() < m->deadline_ns && !readable(visitor, ms_left(m, HELLO_MS))) continue;
        bytes = receive_answer(visitor, &reply, fd);
    }
    close(visitor);
    if (bytes != (ssize_t)sizeof(reply) || memcmp(reply.magic, magic, sizeof(magic)) != 0) {
        if (*fd >= 0) close(*fd);
        *fd = -1;
        return TDM_OK;
    }
    reply.refusal[REFUSAL_TEXT - 1] = '\0';
    if (reply.refusal[0] != '\0') TDM_FAIL(TDM_E_USAGE, "rendezvous at %s: %s", m->door.where, reply.refusal);
    return TDM_OK;
}

static tdm_status join(const meeting *m, int *fd) {
    while (tdm__now_ns() < m->deadline_ns) {
        TDM_TRY(visit(m, fd));
        if (*fd >= 0) return TDM_OK;
        nanosleep(&(struct timespec){.tv_nsec = (long)ms_left(m, RETRY_MS) * 1000000}, NULL);
    }
    TDM_FAIL(TDM_E_COMM,
             "rendezvous at %s: rank %d waited %lld ms for rank 0; start all ranks on this host, with the same "
             "MASTER_PORT or init_method",
             m->door.where, m->facts->rank, (long long)m->timeout_ms);
}

/* ---- the call ---- */

static tdm_status check_facts(const tdm_launch_facts *facts, int64_t timeout_ms) {
    if (facts->world < 1 || facts->rank < 0 || facts->rank >= facts->world)
        TDM_FAIL(TDM_E_USAGE, "rendezvous: rank %d of %d makes no sense", facts->rank, facts->world);
    if (timeout_ms < 1)
        TDM_FAIL(TDM_E_USAGE, "rendezvous: wants a timeout of at least 1 ms, got %lld", (long long)timeout_ms);
    if (facts->local_world != facts->world)
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "the job has %d ranks, %d of them on this host: ranks on several hosts want a communicator module "
                 "(nccl, gloo or mpi), and none is in this build; start all ranks on one host",
                 facts->world, facts->local_world);
    if (facts->world > TDM_COMM_WORLD_MAX)
        TDM_FAIL(TDM_E_UNSUPPORTED, "the job has %d ranks; on one host %d is the most", facts->world,
                 TDM_COMM_WORLD_MAX);
    return TDM_OK;
}

tdm_status tdm__rendezvous_shm(int *fd, const tdm_launch_facts *facts, const char *init_method, int64_t timeout_ms) {
    *fd = -1;
    if (facts->fd >= 0) {
        *fd = fcntl(facts->fd, F_DUPFD_CLOEXEC, 0);
        if (*fd < 0)
            TDM_FAIL(TDM_E_USAGE,
                     "environment variable TANDEM_LAUNCH_FD is %d: %s; start the ranks through the launcher", facts->fd,
                     strerrordesc_np(errno));
        return TDM_OK;
    }
    TDM_TRY(check_facts(facts, timeout_ms));
    int64_t most = INT64_MAX / 2000000;
    meeting m = {.facts = facts, .timeout_ms = timeout_ms};
    m.deadline_ns = tdm__now_ns() + (timeout_ms < most ? timeout_ms : most) * 1000000;
    TDM_TRY(find_place(&m, init_method));
    return facts->rank == 0 ? host(&m, fd) : join(&m, fd);
}
