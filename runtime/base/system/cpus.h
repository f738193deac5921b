/* How much of the machine's processors this process may use. */
#ifndef TDM_BASE_CPUS_H
#define TDM_BASE_CPUS_H

double tdm__cgroup_cpus(void); /* the control group's CPU quota, in CPUs; 0: no limit */
int tdm__cpus_available(void); /* CPUs in the affinity mask, at most the control group's quota; at least 1 */

#endif
