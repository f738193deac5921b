/* tandem/sys/device.h - a device: memory, queues of work, passes over flat arenas. For writers of devices.
 *
 * Work is put on queues and done in their order; a device has one queue of its own, where kernels run, and may have
 * more. Functions that put work on a queue return before it is done, unless the device is not `discrete`: then it is
 * done when they return, pointers are the host's own, and queues and events are names only. A failure of work that was
 * queued is told by the next call that waits for it. A device is used by one thread at a time; different devices, of
 * one kind or of several, by different threads at once. */
#ifndef TANDEM_SYS_DEVICE_H
#define TANDEM_SYS_DEVICE_H

#include <tandem/host.h>
#include <tandem/sys/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_queue tdm_queue;               /* NULL where one is asked for: the device's own */
typedef struct tdm_device_event tdm_device_event; /* a place in a queue that others can wait for */
/* What an event is for; the first kind costs least. */
typedef enum tdm_event_use {
    TDM_ORDERS, /* queues wait for it */
    TDM_WAKES,  /* event_finish, perhaps for long */
    TDM_STAMPS  /* event_stamp and event_ms */
} tdm_event_use;

/* What a queue is for. Work of the second kind goes first where both wait for room on the device: others wait for it.
 */
typedef enum tdm_queue_use { TDM_COPIES, TDM_COLLECTIVES } tdm_queue_use;

typedef struct tdm_capture tdm_capture; /* queued work as a value, to be run again in one call */

typedef struct tdm_device_info {
    char name[96];                     /* "NVIDIA H200" */
    char capability[16];               /* "9.0"; "" where there is no such number */
    int64_t memory_bytes, memory_free; /* 0: not told */
} tdm_device_info;

typedef struct tdm_device_options {
    int index;          /* of `count` */
    int precision;      /* tdm_precision of tandem/job.h: what matrix products and convolutions may round to */
    bool deterministic; /* algorithms whose result depends on timing are out */
} tdm_device_options;

/* A parameter's range in the flat arenas, in floats. */
typedef struct tdm_flat_range {
    size_t offset, count;
} tdm_flat_range;

/* A batch on its way into a step. It comes to the device's memory packed as
 *     position[rows]   int64_t
 *     target[rows]     at target_at; `target_bytes` each                        (nothing where 0)
 *     x[rows]          at x_at; as many bytes or floats as a sample has, PLAIN; or, with `samples`, int64_t: the row's
 *                      number in `samples` and `targets`, which then are in the device's memory whole
 * and becomes what kernels read: floats or bf16 in the layout that the plan has for the batch. All pointers are in the
 * device's memory. */
typedef struct tdm_ingest {
    const void *packed;
    size_t target_at, x_at;
    int64_t rows;
    const void *samples;      /* NULL: x is in `packed` */
    const void *targets;      /* with samples: [count] of target_bytes; NULL: none */
    bool bytes;               /* samples are uint8 and `table` says what each becomes; else floats, taken as they are */
    const float *table;       /* [channels][256], or [1][256] */
    int64_t table_channels;   /* 1: the same for all numbers of a sample */
    int64_t channels, points; /* a sample is [channels][points]; no image: 1 and its numbers */
    int precision;            /* tdm_precision: bf16, or floats */
    int layout;               /* tdm_layout of `x`: PLAIN or NHWC */
    int64_t x_channels;       /* with NHWC: channels of `x`, zeros behind those of the sample */
    size_t target_bytes;      /* of a row: a multiple of 4 */
    void *x, *target;         /* out */
    int64_t *position;        /* out */
} tdm_ingest;

typedef struct tdm_device_ops {
    uint32_t size;
    const char *name; /* "cpu", "cuda" */
    bool discrete;    /* memory of its own, work that is queued */

    tdm_status (*count)(int *out); /* devices that can be opened here */
    tdm_status (*info)(int index, tdm_device_info *out);
    tdm_status (*open)(tdm_device **out, const tdm_host *host, const tdm_device_options *options);
    void (*close)(tdm_device *device); /* waits for its work first; NULL is fine */

    /* What kernels the calling thread starts from now on are this device's. Its other functions do this themselves;
     * NULL where it means nothing. */
    tdm_status (*enter)(tdm_device *device);

    /* Zeroed, TDM_ALIGN-aligned or better. TDM_E_MEMORY says what was wanted and what was free. */
    tdm_status (*allocate)(tdm_device *device, void **out, size_t bytes, const char *what);
    void (*release)(tdm_device *device, void *pointer); /* NULL is fine */
    /* Host memory from and to which copies are fast and do not block. */
    tdm_status (*allocate_host)(tdm_device *device, void **out, size_t bytes, const char *what);
    void (*release_host)(tdm_device *device, void *pointer);
    /* Host memory that others have allocated becomes like that, until unpin; whole pages. Optional: NULL where all
     * memory is. */
    tdm_status (*pin)(tdm_device *device, void *memory, size_t bytes);
    void (*unpin)(tdm_device *device, void *memory); /* NULL is fine */

    /* `to` and `from` may be the host's, this device's, or another's of the same kind. */
    tdm_status (*copy)(tdm_device *device, tdm_queue *queue, void *to, const void *from, size_t bytes);
    tdm_status (*fill)(tdm_device *device, tdm_queue *queue, void *to, uint8_t byte, size_t bytes);
    tdm_status (*finish)(tdm_device *device, tdm_queue *queue); /* waits until its work is done */

    tdm_status (*queue_open)(tdm_device *device, tdm_queue_use use, tdm_queue **out);
    void (*queue_close)(tdm_device *device, tdm_queue *queue);
    tdm_status (*event_open)(tdm_device *device, tdm_event_use use, tdm_device_event **out);
    void (*event_close)(tdm_device *device, tdm_device_event *event);
    tdm_status (*event_record)(tdm_device *device, tdm_device_event *event, tdm_queue *queue);
    /* What is put on `queue` from now on runs after the recorded place. The event may be another device's. */
    tdm_status (*event_wait)(tdm_device *device, tdm_device_event *event, tdm_queue *queue);
    tdm_status (*event_done)(tdm_device *device, tdm_device_event *event, bool *done); /* does not wait */
    tdm_status (*event_finish)(tdm_device *device, tdm_device_event *event); /* the caller waits for the place */
    /* As event_record, with the time; within captured work it is stamped in every run. */
    tdm_status (*event_stamp)(tdm_device *device, tdm_device_event *event, tdm_queue *queue);
    tdm_status (*event_ms)(tdm_device *device, tdm_device_event *from, tdm_device_event *to,
                           double *ms); /* both stamped and done */

    /* Passes over flat arenas, on the device's own queue; fixed order of operations, those of ops/flat. `values` and
     * all arrays are in the device's memory. */
    /* out = ((source[0] + source[1]) + source[2]) + ...; out may be any of the sources. */
    tdm_status (*sum)(tdm_device *device, float *out, const float *const *source, int source_count, size_t count);
    /* p in bf16, to the nearest, ties to even. Discrete devices only. */
    tdm_status (*narrow)(tdm_device *device, void *narrow, const float *p, size_t count);
    /* out += what, both bf16, added in float: gradients of activations that several layers write. Discrete devices
     * only. */
    tdm_status (*add_narrow)(tdm_device *device, void *out, const void *what, size_t count);
    /* Discrete devices only. */
    tdm_status (*ingest)(tdm_device *device, tdm_queue *queue, const tdm_ingest *ingest);
    /* torch.nn.utils.clip_grad_norm_: g times min(1, values->clip_norm / (norm + 1e-6)), norm the 2-norm of the ranges'
     * 2-norms. *norm, in the device's memory, is it. */
    tdm_status (*clip)(tdm_device *device, const tdm_step_values *values, float *g, size_t count,
                       const tdm_flat_range *ranges, int range_count, double *norm);

    /* What is put on the device's own queue, and on queues that wait for it and are waited for, from begin to end is
     * kept instead of done; run does it. Optional: NULL where there is no such thing. */
    tdm_status (*capture_begin)(tdm_device *device);
    tdm_status (*capture_end)(tdm_device *device, tdm_capture **out); /* also after a failure; *out is NULL then */
    tdm_status (*capture_run)(tdm_device *device, tdm_capture *capture);
    void (*capture_free)(tdm_device *device, tdm_capture *capture);

    /* May kernels of `device` read and write memory of `peer`? Discrete devices of one kind only. */
    bool (*reaches)(tdm_device *device, tdm_device *peer);

    /* The queue as the device's own library knows it (cudaStream_t); for communicators. */
    void *(*queue_handle)(tdm_device *device, tdm_queue *queue);

    /* What a report about a problem should contain of devices of this kind, a line each; keys differ from each other.
     * Nothing is started on the devices for it. Optional: NULL where there is nothing to say. */
    tdm_status (*report)(void (*line)(void *user, const char *key, const char *value), void *user);
} tdm_device_ops;

/* Devices begin their own struct with this one. */
struct tdm_device {
    const tdm_device_ops *ops;
    const tdm_host *host;
    char name[16]; /* "cuda:1" */
    int index;
    size_t bytes_now, bytes_peak; /* allocated */
};

#ifdef __cplusplus
}
#endif
#endif
