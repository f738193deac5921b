/* Ranks of one host meet: tdm_launch_meet of tandem/comm.h. */
#ifndef TDM_COMM_RENDEZVOUS_H
#define TDM_COMM_RENDEZVOUS_H

#include <tandem/comm.h>

/* Tells the ranks at the meeting point of this host that this one has failed. Returns when they have arrived, after at
 * most three seconds. Keeps the thread's error. */
void tdm__rendezvous_fail(const tdm_launch_facts *facts, const char *init_method, const char *why);

#endif
