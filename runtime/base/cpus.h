/* How much of the machine's processors this process may use. */
#ifndef TDM_BASE_CPUS_H
#define TDM_BASE_CPUS_H

double tdm__cgroup_cpus(void); /* CPUs' worth of time that the control group grants; 0: no limit */
int tdm__cpus_available(void); /* at least 1: those of the affinity mask, cut to what the control group grants */

#endif
