/* tandem/scale.h - predicts how a ddp job scales: step time, exposed communication and efficiency on more devices than
 * there are. Arithmetic only: nothing here opens a device, a network or a file. runtime/docs/scale.md has the formulas,
 * what they leave out, and how far they were from measured steps.
 *
 * Units: seconds, bytes, bytes per second. Every device has the same number of samples however many there are, so a
 * step grows with them (weak scaling), as with `batch.per_device`.
 *
 * Ownership: structs and arrays are the caller's and are read only during the call. Texts in *out are freed with
 * tdm_free. Threads: all functions may be called from any number of threads at once.
 *
 * Errors: TDM_E_USAGE for a NULL pointer, a number that is negative, NaN or not finite, a share outside 0 to 1, or a
 * text that is not understood; the message says which one and what is wanted. */
#ifndef TANDEM_SCALE_H
#define TANDEM_SCALE_H

#include <tandem/graph.h>
#include <tandem/job.h>

TDM_BEGIN_DECLS

enum { TDM_SCALE_DEVICES_MAX = 1 << 20 };

/* A connection: b bytes take latency + max(b / rate, b * cost / 2) + b * cost / 2. `rate` INFINITY: bytes take no time
 * on their way, as where processors copy them. */
typedef struct tdm_link {
    double rate;    /* bytes per second that arrive, in each direction at once */
    double latency; /* seconds, of one message */
    /* Seconds of a processor per byte that it sends, receives and adds; within a host of CPUs per byte of data that it
     * adds in shared memory. NaN: usual for the device. */
    double cost;
} tdm_link;
/* Reads "RATE,LATENCY" or "RATE,LATENCY,COST": "25Gb,20us", "100Gbit,5us", "3GB/s,20us", "10Gb,30us,1.2ns". RATE is in
 * bits (b, bit; what a network is sold by: protocols take TDM_LINK_FRAMES of it) or bytes (B; what arrives), with k, M,
 * G or T (powers of 1000) and with or without "/s" or "ps"; LATENCY in ns, us, ms or s; COST, per byte, in ps or ns. */
#define TDM_LINK_FRAMES 0.05
TDM_API tdm_status tdm_link_parse(const char *text, tdm_link *out);

/* How gradients are added over devices. */
typedef enum tdm_all_reduce {
    TDM_ALL_REDUCE_AUTO,     /* what tandem does there: SEGMENTS between CPUs, by LEVELS where hosts have several
                                devices; NCCL's RING or TREE between GPUs, whichever is faster */
    TDM_ALL_REDUCE_SEGMENTS, /* every device gets its segment from all others at once, adds it and sends it to all */
    TDM_ALL_REDUCE_RING,     /* 2 (n - 1) messages one after another, each of bytes / n */
    TDM_ALL_REDUCE_TREE,     /* two binary trees, up and down */
    TDM_ALL_REDUCE_LEVELS    /* within each host, between hosts, within each host */
} tdm_all_reduce;

/* Devices of the same kind on hosts of the same kind. Devices beyond one host's are on further hosts. */
typedef struct tdm_cluster {
    uint32_t size; /* sizeof(tdm_cluster) */
    int devices_per_host;
    tdm_link local, between; /* two devices of a host; two hosts, whose devices share it */
    tdm_all_reduce all_reduce;
    bool is_gpu;
    /* CPU devices: cores of a host, also a fraction; 0: communication takes none from computation. */
    double cores;
    int threads; /* of each device, that compute */
    /* CPU devices: how many times as long an update takes while all cores of a host work, whose memory they share; 0 or
     * 1: no longer. */
    double sharing;
    double beside; /* the same of forward and backward */
    double loader; /* samples per second that a host reads and prepares at most; 0: as many as its devices need */
} tdm_cluster;
/* The time of one all_reduce of `bytes` on `devices` devices, in *seconds: 0 on one device. */
TDM_API tdm_status tdm_all_reduce_time(const tdm_cluster *cluster, int devices, double bytes, double *seconds);

/* A bucket of gradients, in the order in which they are reduced. */
typedef struct tdm_scale_bucket {
    double bytes;
    double ready; /* share of backward after which it is complete; 0 to 1, never falling */
} tdm_scale_bucket;

/* A step of one device. */
typedef struct tdm_scale_work {
    uint32_t size;                    /* sizeof(tdm_scale_work) */
    double forward, backward, update; /* seconds; what else a step takes may be added to update */
    double jitter;                    /* standard deviation of their sum: every step waits for its slowest device */
    double buffer_bytes;              /* of running statistics that rank 0 sends before each step */
    double samples;                   /* of a device in a step */
    const tdm_scale_bucket *buckets;
    int bucket_count;
} tdm_scale_work;

typedef struct tdm_scale_point {
    uint32_t size; /* sizeof(tdm_scale_point), set by the caller */
    int devices, hosts;
    double step; /* seconds */
    double comm; /* all communication of a step, hidden or not */
    /* What the step waits for: communication, what that takes from computation, the slowest device, memory that is
     * shared, samples. */
    double exposed;
    double efficiency; /* samples per second of a device, over those of one device alone */
    double samples_per_s;
} tdm_scale_point;
/* Predicts a step on `devices` devices, 1 to TDM_SCALE_DEVICES_MAX. */
TDM_API tdm_status tdm_scale_at(const tdm_scale_work *work, const tdm_cluster *cluster, int devices,
                                tdm_scale_point *out);

/* ---- of a job ---- */

typedef struct tdm_plan_scale_options {
    uint32_t size;
    int json;    /* non-zero: JSON */
    int hosts;   /* at most; 0: as many as 1,024 devices need */
    int devices; /* of each host; 0: the job's */
    /* What computes: a name of the table of devices ("h100"; an unknown one is TDM_E_USAGE, and the message lists all).
     * NULL: the job's device here. */
    const char *device;
    /* Seconds, of one device. All 0: of a named device estimated from the plan's flops and bytes; else measured now, by
     * some steps on the job's first device alone, and of a CPU by as many ranks at once as have cores (threads of
     * this process, at most 64), each of which opens the job's data. */
    double forward, backward, update;
    double jitter; /* of the times above; NaN: usual for the device */
    /* NULL: of the kind of device; local, where that is this machine's CPU: measured now, in a fraction of a second;
     * between: 25Gb,20us. */
    const tdm_link *local, *between;
    tdm_all_reduce all_reduce;
    double cores;  /* of a host; 0: this machine's, or, if `device` is set, one for each thread of its devices */
    double loader; /* tdm_cluster.loader; `tandem bench data` measures it */
} tdm_plan_scale_options;
#define TDM_PLAN_SCALE_OPTIONS_INIT \
    { sizeof(tdm_plan_scale_options), 0, 0, 0, NULL, 0, 0, 0, 0, NULL, NULL, TDM_ALL_REDUCE_AUTO, 0, 0 }
/* Reads "FORWARD,BACKWARD,REST" or "FORWARD,BACKWARD,REST,JITTER" into out[4], in seconds: "46ms,107ms,6.6ms" (ns, us,
 * ms or s), the times of a step of one device, as `tandem bench step --mode single` prints them; REST is the update and
 * everything else, JITTER the standard deviation of their sum, NaN if it is left out. */
TDM_API tdm_status tdm_scale_times_parse(const char *text, double out[4]);
/* Prints a table of 1, 2, 4, ... devices up to hosts * devices, from the job's plan: its buckets, and where in backward
 * each is complete. The job's own mode and device_ids do not matter, but for the default of `devices`.
 * TDM_E_UNSUPPORTED for parallel.stages above 1 and for PowerSGD, which the formulas do not know. */
TDM_API tdm_status tdm_plan_scale(const tdm_job *job, const tdm_graph *graph, const tdm_plan_scale_options *options,
                                  char **out);

TDM_END_DECLS
#endif
