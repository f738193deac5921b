/* The sockets of Gloo's connections, which Gloo itself does not show. */
#ifndef TDM_BACKENDS_GLOO_SOCKETS_H
#define TDM_BACKENDS_GLOO_SOCKETS_H

#include <vector>

#include <sys/socket.h>

/* Lets the kernel end each connection of which one end is `own` listening address, or the other end is one of `peers`,
 * when the host at the other end has not answered for silence_ms: to data that waits for its receipt, or to the probes of
 * an idle connection. A receipt is the kernel's, so a rank that is busy or stopped does not count as silent. */
void tdm__gloo_watch(const std::vector<sockaddr_storage> &own, const std::vector<sockaddr_storage> &peers,
                     int silence_ms);

#endif
