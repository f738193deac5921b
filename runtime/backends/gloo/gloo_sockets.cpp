/* See gloo_sockets.h. Of two ranks one listens and the other connects; so each connection is known by the address at
 * which the first one listened. */
#include "runtime/backends/gloo/gloo_sockets.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

namespace {

bool are_equal(const sockaddr_storage &a, const sockaddr_storage &b) {
    sockaddr_in in[2];
    sockaddr_in6 in6[2];
    if (a.ss_family != b.ss_family) return false;
    if (a.ss_family == AF_INET) {
        std::memcpy(&in[0], &a, sizeof(in[0]));
        std::memcpy(&in[1], &b, sizeof(in[1]));
        return in[0].sin_port == in[1].sin_port && in[0].sin_addr.s_addr == in[1].sin_addr.s_addr;
    }
    if (a.ss_family != AF_INET6) return false;
    std::memcpy(&in6[0], &a, sizeof(in6[0]));
    std::memcpy(&in6[1], &b, sizeof(in6[1]));
    return in6[0].sin6_port == in6[1].sin6_port &&
           std::memcmp(&in6[0].sin6_addr, &in6[1].sin6_addr, sizeof(in6[0].sin6_addr)) == 0;
}

using name_of = int (*)(int, sockaddr *, socklen_t *);

bool is_one_of(const std::vector<sockaddr_storage> &list, int fd, name_of name) {
    sockaddr_storage address = {};
    socklen_t bytes = sizeof(address);
    if (name(fd, reinterpret_cast<sockaddr *>(&address), &bytes) != 0) return false;
    return std::any_of(list.begin(), list.end(), [&](const sockaddr_storage &each) { return are_equal(each, address); });
}

void watch(int fd, int silence_ms) {
    const int on = 1, probe_s = std::max(1, silence_ms / 4000);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof(silence_ms));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe_s, sizeof(probe_s));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s, sizeof(probe_s));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

int port_of(const sockaddr_storage &address) {
    sockaddr_in6 in6;
    std::memcpy(&in6, &address, sizeof(in6)); // the port of IPv4 lies at the same offset, and Gloo compares it as it lies
    return in6.sin6_port;
}

/* < 0: a is the smaller one */
int compare(const sockaddr_storage &a, const sockaddr_storage &b) {
    int order;
    if (a.ss_family == AF_INET) {
        sockaddr_in in[2];
        std::memcpy(&in[0], &a, sizeof(in[0]));
        std::memcpy(&in[1], &b, sizeof(in[1]));
        order = std::memcmp(&in[0].sin_addr, &in[1].sin_addr, sizeof(in[0].sin_addr));
    } else {
        sockaddr_in6 in6[2];
        std::memcpy(&in6[0], &a, sizeof(in6[0]));
        std::memcpy(&in6[1], &b, sizeof(in6[1]));
        order = std::memcmp(&in6[0].sin6_addr, &in6[1].sin6_addr, sizeof(in6[0].sin6_addr));
    }
    return order != 0 ? order : port_of(a) - port_of(b);
}

} // namespace

bool tdm__gloo_listens(const sockaddr_storage &own, const sockaddr_storage &peer) {
    return compare(own, peer) < 0;
}

void tdm__gloo_watch(const std::vector<sockaddr_storage> &own, const std::vector<sockaddr_storage> &peers,
                     int silence_ms) {
    DIR *folder = opendir("/proc/self/fd");
    if (folder == nullptr) return; // then a wait for a lost peer ends at its deadline
    while (const dirent *entry = readdir(folder)) {
        /* A second descriptor: another thread may close the first one, and its number then be another file's. */
        const int fd = fcntl(std::atoi(entry->d_name), F_DUPFD_CLOEXEC, 0);
        if (fd < 0) continue;
        if (is_one_of(own, fd, getsockname) || is_one_of(peers, fd, getpeername)) watch(fd, silence_ms);
        close(fd);
    }
    closedir(folder);
}
