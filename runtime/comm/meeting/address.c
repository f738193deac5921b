/* See address.h. */
#include "runtime/comm/meeting/address.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/comm/meeting/tcp_store.h"

static bool is_env(const char *init_method) {
    return init_method == NULL || strcmp(init_method, "env") == 0;
}

/* Ranks may be on other hosts: rank 0 listens at all addresses of its own, or at those of the interface asked for. */
static tdm_status listen_at(tdm_meeting *m, const char *interface) {
    tdm_endpoint own = {.port = m->at.port};
    if (interface != NULL) TDM_TRY(tdm__interface_address(own.host, interface));
    return tdm__socket_listen(&m->listener, &own);
}

static tdm_status from_env(tdm_meeting *m, const tdm_launch_facts *facts) {
    if (facts->master_addr[0] == '\0' || facts->master_port == 0)
        TDM_FAIL(TDM_E_USAGE,
                 "the job has %d ranks, %d of them on this host, and nothing says where they meet: set MASTER_ADDR and "
                 "MASTER_PORT, or parallel.ddp.init_method to tcp://host:port of rank 0",
                 facts->world, facts->local_world);
    memcpy(m->at.host, facts->master_addr, sizeof(m->at.host));
    m->at.port = facts->master_port;
    return TDM_OK;
}

/* ---- a file ---- */

enum { TEXT_MAX = TDM_HOST_TEXT + 64 };

static void print_file(char out[TEXT_MAX], const tdm_meeting *m) {
    char at[TDM_HOST_TEXT + 16];
    tdm__endpoint_print(at, sizeof(at), &m->at);
    snprintf(out, TEXT_MAX, "tandem job %016llx meets at %s\n", (unsigned long long)m->job, at);
}

/* False: there is none that can be read. */
static bool read_text(char out[TEXT_MAX], const char *path) {
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    const bool is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const ssize_t bytes = is_file ? read(fd, out, TEXT_MAX - 1) : -1;
    const int error = errno;
    close(fd);
    errno = is_file ? error : EINVAL;
    if (bytes < 0) return false;
    out[bytes] = '\0';
    return true;
}

tdm_status tdm__address_publish(const tdm_meeting *m) {
    char text[TEXT_MAX], path[PATH_MAX];
    print_file(text, m);
    if ((size_t)snprintf(path, sizeof(path), "%s.%d", m->file, (int)getpid()) >= sizeof(path))
        TDM_FAIL(TDM_E_USAGE, "parallel.ddp.init_method: the path of file:// is too long");
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    const bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int error = errno;
    if (fd >= 0) close(fd);
    if (written && rename(path, m->file) == 0) return TDM_OK;
    if (written) error = errno;
    (void)unlink(path);
    TDM_FAIL(TDM_E_IO, "parallel.ddp.init_method: cannot write '%s': %s", m->file, strerrordesc_np(error));
}

bool tdm__address_read(tdm_meeting *m, char *why, size_t bytes) {
    char text[TEXT_MAX], where[TEXT_MAX];
    unsigned long long job;
    if (!read_text(text, m->file)) {
        snprintf(why, bytes, "%s: %s", m->file, strerrordesc_np(errno));
        return false;
    }
    if (sscanf(text, "tandem job %16llx meets at %255s", &job, where) != 2 || job != m->job ||
        tdm__endpoint_parse(&m->at, where, "file") != TDM_OK) {
        snprintf(why, bytes, "%s is the file of another job", m->file);
        return false;
    }
    return true;
}

void tdm__address_withdraw(const tdm_meeting *m) {
    char own[TEXT_MAX], there[TEXT_MAX];
    print_file(own, m);
    if (read_text(there, m->file) && strcmp(own, there) == 0) (void)unlink(m->file);
}

/* ---- torchrun's store ---- */

/* At the master's address torchrun's agent listens itself. So rank 0 takes another port, and tells it there. */
static tdm_status through_store(tdm_meeting *m, const char *interface) {
    char key[64], at[TDM_HOST_TEXT + 16];
    size_t bytes = sizeof(at) - 1;
    tdm_tcp_store *store;
    const int64_t deadline = tdm__deadline_ns(tdm__now_ns(), m->timeout_ms);
    snprintf(key, sizeof(key), "tandem/%016llx/address", (unsigned long long)m->job);
    TDM_TRY(tdm__tcp_store_open(&store, &m->at, m->host, deadline));
    tdm_status status = TDM_OK;
    if (m->rank == 0) {
        status = tdm__address_listen(&m->listener, &m->at, interface);
        tdm__endpoint_print(at, sizeof(at), &m->at);
        if (status == TDM_OK) status = tdm__tcp_store_set(store, key, at, strlen(at), deadline);
    } else {
        status = tdm__tcp_store_get(store, key, at, &bytes, deadline);
        at[status == TDM_OK ? bytes : 0] = '\0';
        if (status == TDM_OK) status = tdm__endpoint_parse(&m->at, at, "rank 0's address in torchrun's store");
    }
    tdm__tcp_store_close(store);
    return status;
}

/* ---- any method ---- */

tdm_status tdm__address_find(tdm_meeting *m, const tdm_launch_facts *facts, const char *init_method,
                             const char *interface) {
    static const char tcp[] = "tcp://", file[] = "file://";
    if (!is_env(init_method) && strncmp(init_method, file, sizeof(file) - 1) == 0) {
        m->file = init_method + sizeof(file) - 1;
        if (m->file[0] != '/')
            TDM_FAIL(TDM_E_USAGE, "parallel.ddp.init_method file:// needs an absolute path, got '%s'", init_method);
        if (m->rank != 0) return TDM_OK;
        TDM_TRY(tdm__address_listen(&m->listener, &m->at, interface));
        return tdm__address_publish(m);
    }
    if (is_env(init_method)) {
        TDM_TRY(from_env(m, facts));
        if (facts->store != 0) return through_store(m, interface);
    } else if (strncmp(init_method, tcp, sizeof(tcp) - 1) == 0) {
        TDM_TRY(tdm__endpoint_parse(&m->at, init_method + sizeof(tcp) - 1, "parallel.ddp.init_method tcp://"));
    } else {
        TDM_FAIL(TDM_E_USAGE, "parallel.ddp.init_method must be env, tcp://host:port or file:///path, got '%s'",
                 init_method);
    }
    return m->rank == 0 ? listen_at(m, interface) : TDM_OK;
}

tdm_status tdm__address_listen(int *listener, tdm_endpoint *at, const char *interface) {
    char address[TDM_ADDRESS_TEXT];
    *at = (tdm_endpoint){.port = 0};
    if (interface != NULL)
        TDM_TRY(tdm__interface_address(address, interface));
    else
        TDM_TRY(tdm__first_address(address));
    TDM_TRY(tdm__socket_listen(listener, at));
    snprintf(at->host, sizeof(at->host), "%s", address);
    return TDM_OK;
}
