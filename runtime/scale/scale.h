/* How a job would scale, as arithmetic: what a device needs for the plan's entries (work.c), what an all_reduce takes
 * (all_reduce.c), and how the two overlap (step.c). runtime/docs/scale.md explains the formulas. */
#ifndef TDM_SCALE_SCALE_H
#define TDM_SCALE_SCALE_H

#include <tandem/scale.h>

#include "runtime/plan/plan.h"

/* Of a message, or of a collective. */
typedef struct tdm_scale_time {
    double seconds;
    double busy; /* of these, seconds in which a processor works on it: of the rank, or of ranks that share a core */
} tdm_scale_time;

/* Devices as they lie on hosts. */
typedef struct tdm_scale_group {
    const tdm_cluster *cluster;
    int devices, hosts;
    int locals; /* on a host; the last one may have fewer */
} tdm_scale_group;

tdm_scale_group tdm__scale_group(const tdm_cluster *cluster, int devices);
tdm_scale_time tdm__scale_all_reduce(const tdm_scale_group *group, double bytes);
/* What every collective takes before its data moves, as when ranks exchange the results of a step. */
tdm_scale_time tdm__scale_meeting(const tdm_scale_group *group);
/* *out: a copy of what a program gives, which may be shorter, checked. */
tdm_status tdm__scale_take_cluster(tdm_cluster *out, const tdm_cluster *given, int devices);

/* ---- devices that are known by name ---- */

/* Seconds in which a processor sends and receives a byte through sockets, and adds it: between the two machines that were
 * measured, 0.5 and 2 ns (docs/scale.md). */
#define TDM_SCALE_SOCKET_COST 1.0e-9

/* A row of devices.def. */
typedef struct tdm_scale_device {
    const char *name;
    bool is_gpu;
    double flops[3];     /* per second at most: f32, tf32, bf16 */
    double memory;       /* bytes per second at most */
    double share[3];     /* of `flops` that products reach */
    double memory_share; /* of `memory` that other layers reach */
    double launch;       /* seconds between two kernels */
    double jitter;       /* standard deviation of a step, as a share of it */
    tdm_link local;      /* to another device of its host */
} tdm_scale_device;

/* NULL: there is none of this name. */
const tdm_scale_device *tdm__scale_device(const char *name);
/* The names, with commas. */
void tdm__scale_device_names(tdm_text *out);
/* The CPU or GPU whose rates stand for a device that was not named. */
const tdm_scale_device *tdm__scale_usual_device(bool is_gpu);

/* ---- the step of a plan ---- */

/* One micro-batch of `rows` rows, and an update. Fills everything but `jitter`, `samples` and `buffer_bytes`; `bucket`
 * has room for the plan's buckets. */
void tdm__scale_work(const tdm_plan *plan, const tdm_scale_device *device, int64_t rows, int state_count,
                     tdm_scale_bucket *bucket, tdm_scale_work *out);

#endif
