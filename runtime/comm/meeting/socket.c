/* See socket.h. */
#include "runtime/comm/meeting/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/text/text.h"

enum { PORT_MAX = 65535, BACKLOG = 512, PORT_TEXT = 8 };

/* ---- addresses ---- */

tdm_status tdm__endpoint_parse(tdm_endpoint *out, const char *text, const char *what) {
    int64_t port;
    const char *colon = strrchr(text, ':'), *host = text;
    size_t bytes = colon != NULL ? (size_t)(colon - text) : 0;
    if (bytes >= 2 && host[0] == '[' && host[bytes - 1] == ']') host++, bytes -= 2;
    if (bytes == 0 || bytes >= sizeof(out->host) || !tdm__parse_int(colon + 1, &port) || port < 1 || port > PORT_MAX)
        TDM_FAIL(TDM_E_USAGE, "%s must be host:port with a port from 1 to %d, got '%s'", what, PORT_MAX, text);
    memcpy(out->host, host, bytes);
    out->host[bytes] = '\0';
    out->port = (int)port;
    return TDM_OK;
}

void tdm__endpoint_print(char *out, size_t bytes, const tdm_endpoint *endpoint) {
    const bool is_v6 = strchr(endpoint->host, ':') != NULL;
    snprintf(out, bytes, is_v6 ? "[%s]:%d" : "%s:%d", endpoint->host, endpoint->port);
}

static bool print_address(char out[TDM_ADDRESS_TEXT], const struct sockaddr *address) {
    const bool is_v6 = address->sa_family == AF_INET6;
    if (!is_v6 && address->sa_family != AF_INET) return false;
    const socklen_t bytes = is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (getnameinfo(address, bytes, out, TDM_ADDRESS_TEXT, NULL, 0, NI_NUMERICHOST) != 0) return false;
    /* A v4 peer of a v6 socket: "::ffff:10.0.0.1". */
    if (strncmp(out, "::ffff:", 7) == 0 && strchr(out, '.') != NULL) memmove(out, out + 7, strlen(out + 7) + 1);
    return true;
}

void tdm__socket_address(char out[TDM_ADDRESS_TEXT], int fd, bool of_peer) {
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof(address);
    const int result = of_peer ? getpeername(fd, (struct sockaddr *)&address, &bytes)
                               : getsockname(fd, (struct sockaddr *)&address, &bytes);
    if (result != 0 || !print_address(out, (struct sockaddr *)&address)) out[0] = '\0';
}

/* Its first address of the wanted family. A name matches the interface, an address one of its addresses. */
static bool find_interface(char out[TDM_ADDRESS_TEXT], const struct ifaddrs *list, const char *wanted, int family) {
    char address[TDM_ADDRESS_TEXT];
    for (; list != NULL; list = list->ifa_next) {
        if (list->ifa_addr == NULL || list->ifa_addr->sa_family != family || !print_address(address, list->ifa_addr))
            continue;
        if (strcmp(list->ifa_name, wanted) != 0 && strcmp(address, wanted) != 0) continue;
        memcpy(out, address, TDM_ADDRESS_TEXT);
        return true;
    }
    return false;
}

tdm_status tdm__interface_address(char out[TDM_ADDRESS_TEXT], const char *interface) {
    struct ifaddrs *list;
    if (getifaddrs(&list) != 0) TDM_FAIL(TDM_E_COMM, "network interfaces: %s", strerrordesc_np(errno));
    const bool found = find_interface(out, list, interface, AF_INET) || find_interface(out, list, interface, AF_INET6);
    freeifaddrs(list);
    if (found) return TDM_OK;
    TDM_FAIL(TDM_E_USAGE,
             "parallel.ddp.interface: this machine has no network interface '%s' with an address; `ip address` lists "
             "them",
             interface);
}

tdm_status tdm__first_address(char out[TDM_ADDRESS_TEXT]) {
    struct ifaddrs *list;
    if (getifaddrs(&list) != 0) TDM_FAIL(TDM_E_COMM, "network interfaces: %s", strerrordesc_np(errno));
    snprintf(out, TDM_ADDRESS_TEXT, "127.0.0.1");
    for (const struct ifaddrs *each = list; each != NULL; each = each->ifa_next) {
        const bool is_up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
        if (!is_up || each->ifa_addr == NULL || each->ifa_addr->sa_family != AF_INET) continue;
        if (print_address(out, each->ifa_addr)) break;
    }
    freeifaddrs(list);
    return TDM_OK;
}

/* ---- opening ---- */

static tdm_status look_up(struct addrinfo **out, const tdm_endpoint *endpoint, bool listens, int *error) {
    char port[PORT_TEXT];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0)};
    snprintf(port, sizeof(port), "%d", endpoint->port);
    *error = getaddrinfo(endpoint->host[0] != '\0' ? endpoint->host : NULL, port, &hints, out);
    if (*error == EAI_MEMORY) TDM_FAIL(TDM_E_MEMORY, "host '%s': out of memory", endpoint->host);
    return TDM_OK;
}

static int new_socket(const struct addrinfo *address) {
    const int one = 1;
    const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static int try_listen(const struct addrinfo *address) {
    const int one = 1, zero = 0;
    const int fd = new_socket(address);
    if (fd < 0) return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (address->ai_family == AF_INET6) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int bound_port(int fd) {
    struct sockaddr_storage address;
    socklen_t bytes = sizeof(address);
    if (getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

tdm_status tdm__socket_listen(int *fd, tdm_endpoint *endpoint) {
    struct addrinfo *list = NULL;
    char text[TDM_HOST_TEXT + PORT_TEXT];
    int error;
    *fd = -1;
    TDM_TRY(look_up(&list, endpoint, true, &error));
    tdm__endpoint_print(text, sizeof(text), endpoint);
    if (error != 0) TDM_FAIL(TDM_E_COMM, "cannot listen at %s: %s", text, gai_strerror(error));
    /* First v6: where the machine has it, that socket takes v4 visitors, too. */
    for (int family = AF_INET6; *fd < 0 && family != 0; family = family == AF_INET6 ? AF_INET : 0) {
        for (const struct addrinfo *each = list; each != NULL && *fd < 0; each = each->ai_next)
            if (each->ai_family == family) *fd = try_listen(each);
    }
    error = errno;
    freeaddrinfo(list);
    if (*fd < 0)
        TDM_FAIL(TDM_E_COMM, "cannot listen at %s: %s%s", text, strerrordesc_np(error),
                 error == EADDRINUSE      ? "; another program uses the port: take another one"
                 : error == EADDRNOTAVAIL ? "; it is the address of another machine: rank 0 must run there"
                                          : "");
    endpoint->port = bound_port(*fd);
    return TDM_OK;
}

/* If nobody listens at a port of this machine, the kernel may give this end the same port, and the socket connects to
 * itself. It would keep the port from the rank that is to listen there, so it is reset, not closed. */
static bool is_own(int fd) {
    struct sockaddr_storage ours = {0}, theirs = {0};
    socklen_t ours_bytes = sizeof(ours), theirs_bytes = sizeof(theirs);
    const struct linger reset = {.l_onoff = 1};
    if (getsockname(fd, (struct sockaddr *)&ours, &ours_bytes) != 0 ||
        getpeername(fd, (struct sockaddr *)&theirs, &theirs_bytes) != 0 || ours_bytes != theirs_bytes ||
        memcmp(&ours, &theirs, ours_bytes) != 0)
        return false;
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    return true;
}

/* 0 or an error number. Closes the socket after an error. */
static int try_connect(int *fd, const struct addrinfo *address, int64_t deadline_ns) {
    int error = 0;
    socklen_t bytes = sizeof(error);
    *fd = new_socket(address);
    if (*fd < 0) return errno;
    if (connect(*fd, address->ai_addr, address->ai_addrlen) != 0) {
        struct pollfd entry = {.fd = *fd, .events = POLLOUT};
        const int64_t ms = (deadline_ns - tdm__now_ns()) / 1000000;
        error = errno;
        if (error == EINPROGRESS) {
            const int ready = poll(&entry, 1, ms > 0 ? (int)ms : 0);
            error = ETIMEDOUT;
            if (ready == 1 && getsockopt(*fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
        }
    }
    if (error == 0 && is_own(*fd)) error = ECONNREFUSED;
    if (error == 0) return 0;
    close(*fd);
    *fd = -1;
    return error;
}

tdm_status tdm__socket_connect(int *fd, const tdm_endpoint *endpoint, int64_t ms, char *why, size_t why_bytes) {
    struct addrinfo *list = NULL;
    int error;
    const int64_t deadline = tdm__deadline_ns(tdm__now_ns(), ms);
    *fd = -1;
    TDM_TRY(look_up(&list, endpoint, false, &error));
    if (error != 0) {
        snprintf(why, why_bytes, "the host's name cannot be looked up: %s", gai_strerror(error));
        return TDM_OK;
    }
    for (const struct addrinfo *each = list; each != NULL && *fd < 0; each = each->ai_next) {
        error = try_connect(fd, each, deadline);
        if (error != 0) snprintf(why, why_bytes, "%s", strerrordesc_np(error));
    }
    freeaddrinfo(list);
    return TDM_OK;
}

int tdm__socket_accept(int listener) {
    const int one = 1;
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* ---- reading and writing ---- */

/* False at the deadline. A closed connection is ready: the call that follows tells. */
static bool wait_for(int fd, short events, int64_t deadline_ns) {
    struct pollfd entry = {.fd = fd, .events = events};
    for (;;) {
        const int64_t ns = deadline_ns - tdm__now_ns();
        const int64_t ms = (ns + 999999) / 1000000;
        if (ns <= 0) return false;
        if (poll(&entry, 1, ms < INT32_MAX ? (int)ms : INT32_MAX) == 1) return true;
    }
}

bool tdm__socket_readable(int fd, int64_t deadline_ns) {
    return wait_for(fd, POLLIN, deadline_ns);
}

bool tdm__socket_read(int fd, void *data, size_t bytes, int64_t deadline_ns) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = recv(fd, (char *)data + done, bytes - done, 0);
        if (n > 0) done += (size_t)n;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
        if (n < 0 && !wait_for(fd, POLLIN, deadline_ns)) return false;
    }
    return true;
}

bool tdm__socket_write(int fd, const void *data, size_t bytes, int64_t deadline_ns) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = send(fd, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
        if (n > 0) done += (size_t)n;
        if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (n < 0 && !wait_for(fd, POLLOUT, deadline_ns)) return false;
    }
    return true;
}
