/* See mpi_links.h. Of each TCP connection of this process to another rank's host it is noted since when data waits for
 * its receipt; and whether there is one any more: Open MPI goes on without a word when one is reset. Nothing is changed
 * at the connections, which are MPI's. */
#include "runtime/backends/mpi/mpi_links.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/backends/kit/module_host.h"
#include "runtime/base/system/clock.h"

enum { ADDRESSES = 8, LOOK_MS = 200, ABSENT_LOOKS = 5, FDS_MOST = 4096 };

typedef struct address {
    unsigned char bytes[16]; /* of IPv6; IPv4 as ::ffff:a.b.c.d; all zero: none */
} address;

struct mpi_links {
    int rank, world;
    int64_t silence_ms, looked_ns;
    bool *is_heard; /* of each rank: a message of it has come */
    bool is_due;    /* one has come for the first time */
    int *
        absent; /* of each rank: for how many looks there has been no connection to its host; -1: there never was one */
    address *of_rank;             /* ADDRESSES for each */
    int64_t waiting_ns[FDS_MOST]; /* since when the data of this descriptor waits; 0: it does not */
    address peer[FDS_MOST];       /* of that connection */
};

/* False: it is no address of the internet. */
static bool take(const struct sockaddr *from, address *out) {
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    if (from->sa_family == AF_INET) {
        memcpy(&in, from, sizeof(in));
        memcpy(out->bytes, mapped, sizeof(mapped));
        memcpy(out->bytes + sizeof(mapped), &in.sin_addr, sizeof(in.sin_addr));
    } else if (from->sa_family == AF_INET6) {
        memcpy(&in6, from, sizeof(in6));
        memcpy(out->bytes, &in6.sin6_addr, sizeof(out->bytes));
    }
    return from->sa_family == AF_INET || from->sa_family == AF_INET6;
}

static bool are_equal(const address *a, const address *b) {
    return memcmp(a, b, sizeof(*a)) == 0;
}

static bool has(const mpi_links *l, int rank, const address *a) {
    for (int i = 0; i < ADDRESSES; i++)
        if (are_equal(&l->of_rank[rank * ADDRESSES + i], a)) return true;
    return false;
}

/* ---- opening ---- */

static void find_own(address *out) {
    struct ifaddrs *list;
    int count = 0;
    if (getifaddrs(&list) != 0) return;
    for (const struct ifaddrs *i = list; i != NULL && count < ADDRESSES; i = i->ifa_next) {
        if (i->ifa_addr == NULL || (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
        if (take(i->ifa_addr, &out[count])) count++;
    }
    freeifaddrs(list);
}

mpi_links *tdm__mpi_links_open(const tdm_host *host, MPI_Comm comm, int rank, int world, int64_t silence_ms) {
    address own[ADDRESSES];
    mpi_links *l = tdm__module_new(host, sizeof(*l));
    address *all = tdm__module_new(host, (size_t)world * ADDRESSES * sizeof(*all));
    memset(own, 0, sizeof(own));
    find_own(own);
    int *absent = tdm__module_new(host, (size_t)world * sizeof(*absent));
    bool *is_heard = tdm__module_new(host, (size_t)world * sizeof(*is_heard));
    int lacks = l == NULL || all == NULL || absent == NULL || is_heard == NULL, some_lacks = 1;
    /* A rank without memory takes part here: the others would wait for it without a deadline. */
    if (MPI_Allreduce(&lacks, &some_lacks, 1, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS || some_lacks ||
        MPI_Allgather(own, sizeof(own), MPI_BYTE, all, sizeof(own), MPI_BYTE, comm) != MPI_SUCCESS) {
        tdm__module_delete(is_heard);
        tdm__module_delete(absent);
        tdm__module_delete(all);
        tdm__module_delete(l);
        return NULL;
    }
    for (int r = 0; r < world; r++) absent[r] = -1;
    l->absent = absent;
    l->is_heard = is_heard;
    l->rank = rank;
    l->world = world;
    l->silence_ms = silence_ms;
    l->of_rank = all;
    return l;
}

void tdm__mpi_links_close(mpi_links *l) {
    if (l == NULL) return;
    tdm__module_delete(l->is_heard);
    tdm__module_delete(l->absent);
    tdm__module_delete(l->of_rank);
    tdm__module_delete(l);
}

/* ---- looking ---- */

/* Milliseconds since the last receipt, if data waits for one; -1: none does. */
static int64_t waits_for_receipt(int fd) {
    struct tcp_info info;
    socklen_t bytes = sizeof(info);
    memset(&info, 0, sizeof(info));
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 || info.tcpi_unacked == 0) return -1;
    return info.tcpi_last_ack_recv;
}

/* Since when the data of a connection waits; 0: it does not. */
static int64_t note(mpi_links *l, int fd, const address *peer, int64_t now_ns) {
    const int64_t ms = waits_for_receipt(fd), since = l->waiting_ns[fd];
    const bool is_same = since != 0 && are_equal(peer, &l->peer[fd]);
    if (ms < 0)
        l->waiting_ns[fd] = 0;
    else if (!is_same || ms < (now_ns - since) / 1000000) /* the last receipt may be that of earlier data */
        l->waiting_ns[fd] = now_ns;
    l->peer[fd] = *peer;
    return l->waiting_ns[fd];
}

/* Of the ranks that `is_lost`, one that is waited for, if there is one. */
static int choose(const mpi_links *l, const bool *is_lost, const bool *is_waited_for) {
    int found = -1;
    for (int r = 0; r < l->world; r++) {
        if (is_lost[r] && is_waited_for[r]) return r;
        if (is_lost[r] && found < 0) found = r;
    }
    return found;
}

static void look_at(mpi_links *l, int fd, int64_t now_ns, bool *is_lost) {
    struct sockaddr_storage name;
    socklen_t bytes = sizeof(name);
    address peer = {{0}};
    if (fd >= FDS_MOST || getpeername(fd, (struct sockaddr *)&name, &bytes) != 0) return;
    if (!take((const struct sockaddr *)&name, &peer) || has(l, l->rank, &peer)) return;
    const int64_t since = note(l, fd, &peer, now_ns);
    for (int r = 0; r < l->world; r++) {
        if (!has(l, r, &peer)) continue;
        l->absent[r] = 0;
        is_lost[r] = is_lost[r] || (since != 0 && (now_ns - since) / 1000000 >= l->silence_ms);
    }
}

/* False: the descriptors cannot be listed; then a cut is found at the deadline. */
static bool look_at_all(mpi_links *l, int64_t now_ns, bool *is_lost) {
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) return false;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        look_at(l, atoi(entry->d_name), now_ns, is_lost);
    closedir(folder);
    return true;
}

void tdm__mpi_links_heard(mpi_links *l, int rank) {
    l->is_due = l->is_due || !l->is_heard[rank];
    l->is_heard[rank] = true;
}

void tdm__mpi_links_see(mpi_links *l) {
    bool is_lost[MPI_LINKS_RANKS] = {false};
    if (l->silence_ms == 0 || !l->is_due) return;
    l->is_due = false;
    (void)look_at_all(l, tdm__now_ns(), is_lost);
}

int tdm__mpi_links_lost(mpi_links *l, const bool *is_waited_for) {
    const int64_t now = tdm__now_ns();
    bool is_lost[MPI_LINKS_RANKS] = {false};
    if (l->silence_ms == 0 || now - l->looked_ns < (int64_t)LOOK_MS * 1000000) return -1;
    l->looked_ns = now;
    for (int r = 0; r < l->world; r++) l->absent[r] += l->absent[r] >= 0;
    if (!look_at_all(l, now, is_lost)) return -1;
    /* The connection that is gone may have been the program's own, so this says something of a peer that is late alone. */
    for (int r = 0; r < l->world; r++) is_lost[r] = is_lost[r] || (l->absent[r] >= ABSENT_LOOKS && is_waited_for[r]);
    return choose(l, is_lost, is_waited_for);
}
