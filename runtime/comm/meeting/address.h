/* The address at which ranks of several hosts meet. */
#ifndef TDM_COMM_MEETING_ADDRESS_H
#define TDM_COMM_MEETING_ADDRESS_H

#include "runtime/comm/meeting/meeting.h"

/* Fills in m->at from init_method ("env" or NULL, "tcp://host:port", "file:///path" on a shared disk); rank 0 also
 * begins to listen there, or at a free port whose address it publishes. */
tdm_status tdm__address_find(tdm_meeting *m, const tdm_launch_facts *facts, const char *init_method,
                             const char *interface);
/* The file of a meeting at file:///path. Rank 0 replaces it as a whole, so a reader sees an old one or a new one. */
tdm_status tdm__address_publish(const tdm_meeting *m);
/* Reads m->at. False: there is no such file yet, or it is not one of these; `why` then says so. */
bool tdm__address_read(tdm_meeting *m, char *why, size_t bytes);
void tdm__address_withdraw(const tdm_meeting *m); /* removes the file, if it is still this rank's */
/* Listens at a free port of this host; *at is how others reach it. interface NULL: the first that is no loopback. */
tdm_status tdm__address_listen(int *listener, tdm_endpoint *at, const char *interface);

#endif
