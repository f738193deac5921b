/* TCP sockets between ranks: addresses, and reads and writes that end at a deadline. */
#ifndef TDM_COMM_MEETING_SOCKET_H
#define TDM_COMM_MEETING_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tandem/host.h>

enum { TDM_HOST_TEXT = 256, TDM_ADDRESS_TEXT = 64 };

typedef struct tdm_endpoint {
    char host[TDM_HOST_TEXT]; /* a name or an address; "" for a listener: all of this machine's */
    int port;                 /* 0 for a listener: any free one, which it then says here */
} tdm_endpoint;

/* "host:port", "[v6 address]:port". TDM_E_USAGE names `what`. */
tdm_status tdm__endpoint_parse(tdm_endpoint *out, const char *text, const char *what);
void tdm__endpoint_print(char *out, size_t bytes, const tdm_endpoint *endpoint);

/* The address of a network interface, which is given by name ("eth0") or as one of this machine's addresses. */
tdm_status tdm__interface_address(char out[TDM_ADDRESS_TEXT], const char *interface);
/* The first address of this machine that is no loopback; if there is none, 127.0.0.1. */
tdm_status tdm__first_address(char out[TDM_ADDRESS_TEXT]);
/* The address at one end of a connection; "" if it cannot be told. */
void tdm__socket_address(char out[TDM_ADDRESS_TEXT], int fd, bool of_peer);

/* All sockets are non-blocking and close on exec. */
tdm_status tdm__socket_listen(int *fd, tdm_endpoint *endpoint);
/* Tries each address of the endpoint, `ms` at most for all. *fd < 0: none answered, and `why` says what happened. A
 * name that cannot be looked up is no failure either: it may come to exist. */
tdm_status tdm__socket_connect(int *fd, const tdm_endpoint *endpoint, int64_t ms, char *why, size_t why_bytes);
int tdm__socket_accept(int listener); /* -1: nobody is there */

/* Waits for data until the deadline (of tdm__now_ns). False: none came. */
bool tdm__socket_readable(int fd, int64_t deadline_ns);
/* All `bytes`, before the deadline. False: not all; the connection is of no use any more. */
bool tdm__socket_read(int fd, void *data, size_t bytes, int64_t deadline_ns);
bool tdm__socket_write(int fd, const void *data, size_t bytes, int64_t deadline_ns);

#endif
