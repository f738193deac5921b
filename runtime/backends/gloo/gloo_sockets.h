/* The sockets of Gloo's connections, which Gloo itself does not show. */
#ifndef TDM_BACKENDS_GLOO_SOCKETS_H
#define TDM_BACKENDS_GLOO_SOCKETS_H

#include <vector>

#include <sys/socket.h>

/* Lets the kernel end each connection of which one end is `own` listening address, or the other end is one of `peers`,
 * when the host at the other end has not answered for silence_ms: to data that waits for its receipt, or to the probes
 * of an idle connection. A receipt is the kernel's, so a rank that is busy or stopped does not count as silent. */
void tdm__gloo_watch(const std::vector<sockaddr_storage> &own, const std::vector<sockaddr_storage> &peers,
                     int silence_ms);

/* Of two ranks that listen at these addresses the one with the larger address gives up listening and connects to the
 * other one: does this rank go on listening? That is Gloo's choice; who guesses wrong only waits. */
bool tdm__gloo_listens(const sockaddr_storage &own, const sockaddr_storage &peer);

#endif
