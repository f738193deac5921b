/* How much of the machine's processors this process may use. */
#ifndef TDM_BASE_CPUS_H
#define TDM_BASE_CPUS_H

#include <stdint.h>

#include <tandem/host.h>

/* The CPUs on which a process may run: a bit each. */
typedef struct tdm_cpus {
    int64_t word[16];
} tdm_cpus;

void tdm__cpus_read(tdm_cpus *cpus); /* this process's; all of them if they cannot be read */
/* How many of `count` processes may run on a CPU of process `mine`, that one included. */
int tdm__cpus_sharers(const tdm_cpus *cpus, int count, int mine);

double tdm__cgroup_cpus(void); /* the control group's CPU quota, in CPUs; 0: no limit */
/* CPUs that the host grants; if it does not say, those of the affinity mask, at most the control group's quota. At
 * least 1. */
int tdm__cpus_available(const tdm_host *host);

#endif
