/* link.c - a link between two network namespaces with a rate and a latency, for measurements where the kernel has no
 * netem. Each end is a TAP device; this program carries their packets. It is no part of the build:
 *
 *     cc -O2 link.c -o link && ./link NAMESPACE0 NAMESPACE1 MBIT_PER_S LATENCY_US
 *
 * Makes the device `wire` in both (10.78.0.1 and 10.78.0.2), prints "ready", and runs until it is killed. A packet that
 * would wait longer than LONGEST_NS in front of the link is dropped, as by a switch. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* PACKET: the kernel hands over up to 64 KiB at once, as to a card that divides it itself. */
enum { PACKET = 70000, PLACES = 4096, LONGEST_NS = 50 * 1000 * 1000 };

struct packet {
    int64_t due_ns;
    ssize_t bytes;
    unsigned char *data;
};

struct direction {
    int from, to;
    int64_t free_ns; /* when the link has sent all that came before */
    size_t first, end;
    struct packet packet[PLACES];
};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int open_end(const char *space, int number) {
    char text[256];
    struct ifreq request = {.ifr_name = "wire"};
    request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    snprintf(text, sizeof(text), "/run/netns/%s", space);
    const int there = open(text, O_RDONLY);
    if (there < 0 || setns(there, CLONE_NEWNET) != 0) fail(text);
    const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0) fail("/dev/net/tun");
    if (ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0) fail("TUNSETOFFLOAD");
    close(there);
    snprintf(text, sizeof(text), "ip addr add 10.78.0.%d/24 dev wire && ip link set wire up txqueuelen 1000", number);
    if (system(text) != 0) fail("ip");
    return fd;
}

static void take_in(struct direction *d, double bytes_per_ns, int64_t latency_ns) {
    for (;;) {
        struct packet *p = &d->packet[d->end % PLACES];
        if (p->data == NULL && (p->data = malloc(PACKET)) == NULL) fail("memory");
        p->bytes = read(d->from, p->data, PACKET);
        if (p->bytes <= 0) return;
        const int64_t now = now_ns();
        if (d->free_ns < now) d->free_ns = now;
        if (d->free_ns > now + LONGEST_NS || d->end - d->first == PLACES - 1) continue;
        d->free_ns += (int64_t)((double)p->bytes / bytes_per_ns);
        p->due_ns = d->free_ns + latency_ns;
        d->end++;
    }
}

static int64_t give_out(struct direction *d) {
    for (; d->first != d->end; d->first++) {
        const struct packet *p = &d->packet[d->first % PLACES];
        if (p->due_ns > now_ns()) return p->due_ns;
        if (write(d->to, p->data, (size_t)p->bytes) < 0) continue; /* dropped */
    }
    return INT64_MAX;
}

int main(int count, char **words) {
    static struct direction both[2];
    if (count != 5) return 2;
    const double bytes_per_ns = atof(words[3]) / 8000;
    const int64_t latency_ns = atoll(words[4]) * 1000;
    struct pollfd ends[2] = {{open_end(words[1], 1), POLLIN, 0}, {open_end(words[2], 2), POLLIN, 0}};
    for (int i = 0; i < 2; i++) both[i].from = ends[i].fd, both[i].to = ends[1 - i].fd;
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        const int64_t a = give_out(&both[0]), b = give_out(&both[1]), due = a < b ? a : b, left = due - now_ns();
        const struct timespec pause = {left > 0 ? left / 1000000000 : 0, left > 0 ? left % 1000000000 : 0};
        if (ppoll(ends, 2, due == INT64_MAX ? NULL : &pause, NULL) < 0) fail("ppoll");
        for (int i = 0; i < 2; i++) take_in(&both[i], bytes_per_ns, latency_ns);
    }
}
