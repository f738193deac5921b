/* hosts.h - `tandem launch --hosts a:2,b:2`: one process starts the job's ranks on all hosts, over ssh, and ends with
 * all of them. On each host `tandem --hosted` does what a `tandem launch` by hand would do there (orders.h). */
#ifndef HOSTS_H
#define HOSTS_H

#include "tools/launch/orders.h"

/* Ranks of a host: the longest list of parallel.device_ids. */
enum { LAUNCH_HOSTS_MAX = 256, LAUNCH_RANKS_MAX = TDM_LIST_MAX };

typedef struct launch_host {
    char *target, *name; /* what ssh is given, user@name; and the name alone */
    int ranks;           /* 0: not said */
    bool is_here;        /* this machine, and no other user of it */
} launch_host;

typedef struct launch_hosts {
    launch_host *host;
    int count;
} launch_hosts;

/* Reads "host", "user@host:2", "[address]:2", separated by commas. Looks up no name: ssh may know hosts that nobody
 * else knows. TDM_E_USAGE after printing what is wrong. */
int hosts_read(const tool *t, const char *text, launch_hosts *out);
void hosts_free(launch_hosts *hosts);

/* How to start a job on hosts. */
typedef struct hosts_job {
    const tool *t;
    const launch_hosts *hosts;
    const char *ssh, *program;   /* a command for a shell; the path of tandem on other hosts */
    const launch_orders *orders; /* but for the number of the host */
    double grace;                /* seconds that a host has for a stop */
} hosts_job;

/* ---- hosts_run.c ---- */

/* Starts the job and waits for its end. Returns the exit code: that of the host that failed first, which it names. */
int hosts_run(const hosts_job *job);

#endif
