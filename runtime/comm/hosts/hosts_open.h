/* Opening a communicator over several hosts. */
#ifndef TDM_COMM_HOSTS_OPEN_H
#define TDM_COMM_HOSTS_OPEN_H

#include <tandem/comm.h>
#include <tandem/sys/transport.h>

/* As tdm_comm_open_hosts, with the transport found and the host taken. */
tdm_status tdm__hosts_open(tdm_comm **out, const tdm_transport_ops *transport, const tdm_launch_facts *facts,
                           const tdm_hosts_options *options);
/* Tells the ranks at the meeting point that this one has failed. Returns when they know, after a few seconds at most. */
void tdm__hosts_fail(const tdm_launch_facts *facts, const tdm_host *host, const char *init_method, const char *why);

#endif
