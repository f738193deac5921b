/* The socket at which ranks meet: a socket file, or an abstract socket.
 *
 * Any user can bind any abstract name. So neither end trusts the name alone: both ask the kernel which user the other
 * end belongs to. If another user holds the job's name, rank 0 binds that name with random digits appended, and the
 * other ranks look for it in /proc/net/unix. */
#include "runtime/comm/door.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/hash.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

/* BACKLOG: all ranks can connect even while rank 0 is stopped. */
enum { BACKLOG = TDM_COMM_WORLD_MAX, UNREADY_TRIES = 10, UNREADY_MS = 20 };

/* ---- the address ---- */

static tdm_status find_file(tdm_door *door, const char *path) {
    int length = snprintf(door->where, sizeof(door->where), "%s.tandem", path);
    if (path[0] != '/' || (size_t)length >= sizeof(door->address.sun_path))
        TDM_FAIL(TDM_E_USAGE, "init_method file:// needs an absolute path of at most %zu bytes, got '%s'",
                 sizeof(door->address.sun_path) - sizeof(".tandem"), path);
    memcpy(door->address.sun_path, door->where, (size_t)length + 1);
    door->address_bytes = (socklen_t)sizeof(door->address);
    door->is_file = true;
    return TDM_OK;
}

static void find_abstract(tdm_door *door) {
    char *name = door->address.sun_path + 1;
    int length = snprintf(name, sizeof(door->address.sun_path) - 1, "tandem-%lu-%016llx", (unsigned long)geteuid(),
                          (unsigned long long)door->job);
    door->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

tdm_status tdm__door_find(tdm_door *door, const tdm_launch_facts *facts, const char *init_method) {
    const bool is_env = init_method == NULL || strcmp(init_method, "env") == 0;
    const bool is_file = !is_env && strncmp(init_method, "file://", 7) == 0;
    char key[512];
    if (!is_env && !is_file && strncmp(init_method, "tcp://", 6) != 0)
        TDM_FAIL(TDM_E_USAGE, "init_method must be env, tcp://host:port or file:///path, got '%s'", init_method);
    /* If nothing identifies the job, its ranks have at least the same parent process. */
    if (is_env && facts->job[0] == '\0')
        snprintf(key, sizeof(key), "parent/%ld", (long)getppid());
    else
        snprintf(key, sizeof(key), "%s %s", is_env ? "" : init_method, facts->job);
    *door = (tdm_door){.address.sun_family = AF_UNIX, .job = tdm__hash64(key, strlen(key), 0)};
    if (is_file) return find_file(door, init_method + 7);
    find_abstract(door);
    if (!is_env)
        snprintf(door->where, sizeof(door->where), "%.100s", init_method);
    else if (facts->master_port != 0)
        snprintf(door->where, sizeof(door->where), "port %d of this host", facts->master_port);
    else
        snprintf(door->where, sizeof(door->where), "this host");
    return TDM_OK;
}

/* ---- sockets ---- */

static bool get_peer(int fd, struct ucred *peer) {
    socklen_t bytes = sizeof(*peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &bytes) == 0;
}

bool tdm__door_is_same_user(int fd) {
    struct ucred peer;
    return get_peer(fd, &peer) && peer.uid == geteuid();
}

int tdm__door_pid(int fd) {
    struct ucred peer;
    return get_peer(fd, &peer) ? peer.pid : 0;
}

static tdm_status open_socket(int *out) {
    *out = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*out < 0) TDM_FAIL(TDM_E_COMM, "rendezvous: cannot open a local socket: %s", strerrordesc_np(errno));
    return TDM_OK;
}

static int name_bytes(const tdm_door *door) {
    return (int)(door->address_bytes - offsetof(struct sockaddr_un, sun_path) - 1);
}

static int try_bind(const tdm_door *door, int fd) {
    return bind(fd, (const struct sockaddr *)&door->address, door->address_bytes) == 0 ? 0 : errno;
}

/* *fd < 0: there is no socket, or nobody listens; *error says why. */
static tdm_status try_connect(const tdm_door *door, int *fd, int *error) {
    TDM_TRY(open_socket(fd));
    *error = connect(*fd, (const struct sockaddr *)&door->address, door->address_bytes) == 0 ? 0 : errno;
    if (*error == 0) return TDM_OK;
    close(*fd);
    *fd = -1;
    return TDM_OK;
}

/* ---- a socket file ---- */

/* Fails if the path is occupied by something that is not a socket of this user. Rank 0 does not remove it, so no rank
 * could ever listen there: both ends fail at once instead of waiting. */
static tdm_status check_file(const tdm_door *door) {
    struct stat found;
    if (lstat(door->address.sun_path, &found) != 0) return TDM_OK;
    if (!S_ISSOCK(found.st_mode))
        TDM_FAIL(TDM_E_COMM,
                 "rendezvous at %s: that path is not a socket and is left alone; give init_method another path",
                 door->where);
    if (found.st_uid != geteuid())
        TDM_FAIL(TDM_E_COMM, "rendezvous at %s: the socket there belongs to user %u; give init_method another path",
                 door->where, (unsigned)found.st_uid);
    return TDM_OK;
}

/* As try_connect. */
static tdm_status try_file(const tdm_door *door, int *fd, int *error) {
    TDM_TRY(check_file(door));
    TDM_TRY(try_connect(door, fd, error));
    if (*error == EPROTOTYPE)
        TDM_FAIL(TDM_E_COMM, "rendezvous at %s: another program listens there; give init_method another path",
                 door->where);
    return TDM_OK;
}

/* Removes a socket of this user at which nobody listens: it was left by a job that was killed. */
static tdm_status take_over(const tdm_door *door) {
    int probe, error;
    TDM_TRY(try_file(door, &probe, &error));
    if (probe >= 0) close(probe);
    if (error == ECONNREFUSED) unlink(door->address.sun_path);
    return TDM_OK;
}

static tdm_status bind_file(tdm_door *door, int fd, int *error) {
    (void)fchmod(fd, S_IRUSR | S_IWUSR); /* the mode of the file that bind makes */
    *error = try_bind(door, fd);
    if (*error == EADDRINUSE) {
        TDM_TRY(take_over(door));
        *error = try_bind(door, fd);
    }
    if (*error == 0) (void)lstat(door->address.sun_path, &door->made);
    return TDM_OK;
}

/* ---- an abstract socket ---- */

/* Does another process of this user listen under the name? A process that has bound the name but does not listen yet
 * gets a short time to do so. */
static tdm_status is_ours(const tdm_door *door, bool *ours) {
    int probe = -1, error = ECONNREFUSED;
    *ours = false;
    for (int i = 0; i < UNREADY_TRIES && error == ECONNREFUSED; i++) {
        if (i > 0) nanosleep(&(struct timespec){.tv_nsec = UNREADY_MS * 1000000}, NULL);
        TDM_TRY(try_connect(door, &probe, &error));
    }
    if (probe < 0) return TDM_OK;
    *ours = tdm__door_is_same_user(probe);
    close(probe);
    return TDM_OK;
}

static tdm_status bind_name(tdm_door *door, int fd, int *error) {
    uint64_t random;
    bool ours;
    *error = try_bind(door, fd);
    if (*error != EADDRINUSE) return TDM_OK;
    TDM_TRY(is_ours(door, &ours));
    if (ours || getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) return TDM_OK;
    int used = name_bytes(door);
    used += snprintf(door->address.sun_path + 1 + used, sizeof(door->address.sun_path) - 1 - (size_t)used, "-%016llx",
                     (unsigned long long)random);
    door->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used);
    *error = try_bind(door, fd);
    return TDM_OK;
}

/* Is this line of /proc/net/unix a socket whose name is this one with digits appended? *name is what follows the last
 * '@'. */
static bool is_listed(const tdm_door *door, char *line, const char **name) {
    const size_t bytes = (size_t)name_bytes(door);
    line[strcspn(line, "\n")] = '\0';
    char *at = strrchr(line, '@');
    *name = at != NULL ? at + 1 : "";
    return strncmp(*name, door->address.sun_path + 1, bytes) == 0 && (*name)[bytes] == '-' &&
           strlen(*name) < sizeof(door->address.sun_path) - 1;
}

/* Looks in /proc/net/unix for a listener of this user under the name with digits appended. */
static tdm_status visit_listed(const tdm_door *door, int *visitor) {
    char line[512];
    const char *name;
    tdm_status status = TDM_OK;
    *visitor = -1;
    FILE *list = fopen("/proc/net/unix", "re");
    while (list != NULL && status == TDM_OK && *visitor < 0 && fgets(line, sizeof(line), list) != NULL) {
        int error;
        tdm_door other = *door;
        if (!is_listed(door, line, &name)) continue;
        memcpy(other.address.sun_path + 1, name, strlen(name));
        other.address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
        status = try_connect(&other, visitor, &error);
        if (*visitor < 0 || tdm__door_is_same_user(*visitor)) continue;
        close(*visitor);
        *visitor = -1;
    }
    if (list != NULL) fclose(list);
    return status;
}

/* ---- the calls ---- */

tdm_status tdm__door_listen(tdm_door *door, int *listener) {
    int fd, error = 0;
    *listener = -1;
    TDM_TRY(open_socket(&fd));
    tdm_status status = door->is_file ? bind_file(door, fd, &error) : bind_name(door, fd, &error);
    if (status == TDM_OK && error == 0 && listen(fd, BACKLOG) != 0) error = errno;
    if (status == TDM_OK && error == 0) {
        *listener = fd;
        return TDM_OK;
    }
    close(fd);
    TDM_TRY(status);
    if (error == EADDRINUSE)
        TDM_FAIL(TDM_E_COMM,
                 "rendezvous at %s: another job is meeting there; give each job its own MASTER_PORT or init_method",
                 door->where);
    TDM_FAIL(TDM_E_COMM, "rendezvous at %s: %s", door->where, strerrordesc_np(error));
}

void tdm__door_leave(const tdm_door *door, int listener) {
    struct stat found;
    const char *path = door->address.sun_path;
    if (door->is_file && lstat(path, &found) == 0 && found.st_dev == door->made.st_dev &&
        found.st_ino == door->made.st_ino)
        unlink(path);
    close(listener);
}

tdm_status tdm__door_visit(const tdm_door *door, int *visitor) {
    int error;
    TDM_TRY(door->is_file ? try_file(door, visitor, &error) : try_connect(door, visitor, &error));
    if (*visitor >= 0 && tdm__door_is_same_user(*visitor)) return TDM_OK;
    if (*visitor >= 0) close(*visitor);
    *visitor = -1;
    if (error == 0 && door->is_file)
        TDM_FAIL(TDM_E_COMM, "rendezvous at %s: a process of another user listens there; give init_method another path",
                 door->where);
    if (error != 0 && error != ECONNREFUSED && error != ENOENT && error != EAGAIN && error != EINTR &&
        error != EPROTOTYPE)
        TDM_FAIL(TDM_E_COMM, "rendezvous at %s: %s", door->where, strerrordesc_np(error));
    return door->is_file ? TDM_OK : visit_listed(door, visitor);
}
