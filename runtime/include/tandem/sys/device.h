/* tandem/sys/device.h - a device: memory, queues of work, events, captured work. For writers of devices.
 *
 * Work is put on queues and done in their order; a device has one queue of its own, where kernels run, and may have
 * more. Functions that put work on a queue return before it is done. A device whose memory is the host's has no
 * `ingest` (tdm_arena_ops): there work is done when they return, pointers are the host's own, and queues and events are
 * names only. A failure of work that was queued is returned by the next call that waits for it. A device is used by one
 * thread at a time; different devices, of one kind or of several, by different threads at once. */
#ifndef TANDEM_SYS_DEVICE_H
#define TANDEM_SYS_DEVICE_H

#include <tandem/host.h>
#include <tandem/sys/arena.h>

TDM_BEGIN_DECLS

typedef struct tdm_device_event tdm_device_event; /* a point in a queue that others can wait for */
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
    int64_t memory_bytes, memory_free; /* 0: unknown */
    unsigned char identity[16];        /* no other device has it, on this host or another; zeros: unknown */
} tdm_device_info;

/* Threads that share the work of a device whose memory is the host's (tdm_host_calls.share). */
typedef struct tdm_threads tdm_threads;

typedef struct tdm_device_options {
    int index;               /* of `count` */
    tdm_precision precision; /* what matrix products and convolutions may round to */
    bool deterministic;      /* algorithms whose result depends on timing are out */
    tdm_threads *threads;    /* lent; NULL: the calling thread alone */
} tdm_device_options;

typedef struct tdm_queue_ops {
    tdm_status (*open)(tdm_device *device, tdm_queue_use use, tdm_queue **out);
    void (*close)(tdm_device *device, tdm_queue *queue); /* NULL is fine */
    /* `to` and `from` may be the host's, this device's, or another's of the same kind. */
    tdm_status (*copy)(tdm_device *device, tdm_queue *queue, void *to, const void *from, size_t bytes);
    tdm_status (*finish)(tdm_device *device, tdm_queue *queue); /* waits until its work is done */
    /* The queue as the device's own library knows it (cudaStream_t); for communicators. Optional. */
    void *(*handle)(tdm_device *device, tdm_queue *queue);
} tdm_queue_ops;

typedef struct tdm_event_ops {
    tdm_status (*open)(tdm_device *device, tdm_event_use use, tdm_device_event **out);
    void (*close)(tdm_device *device, tdm_device_event *event); /* NULL is fine */
    tdm_status (*record)(tdm_device *device, tdm_device_event *event, tdm_queue *queue);
    /* What is put on `queue` from now on runs after the recorded point. The event may be another device's. */
    tdm_status (*wait)(tdm_device *device, tdm_device_event *event, tdm_queue *queue);
    tdm_status (*done)(tdm_device *device, tdm_device_event *event, bool *done); /* does not wait */
    tdm_status (*finish)(tdm_device *device, tdm_device_event *event);           /* the caller waits for the point */
    /* As record, with the time; within captured work it is stamped in every run. */
    tdm_status (*stamp)(tdm_device *device, tdm_device_event *event, tdm_queue *queue);
    /* Both stamped and done. */
    tdm_status (*ms)(tdm_device *device, tdm_device_event *from, tdm_device_event *to, double *ms);
} tdm_event_ops;

/* What is put on the device's own queue, and on queues that wait for it and are waited for, from begin to end is kept
 * instead of done; run does it. */
typedef struct tdm_capture_ops {
    tdm_status (*begin)(tdm_device *device);
    tdm_status (*end)(tdm_device *device, tdm_capture **out); /* also after a failure; *out is NULL then */
    tdm_status (*run)(tdm_device *device, tdm_capture *capture);
    void (*free)(tdm_device *device, tdm_capture *capture);
} tdm_capture_ops;

typedef struct tdm_device_ops {
    const char *name; /* "cpu", "cuda" */

    const tdm_queue_ops *queues;
    const tdm_event_ops *events;
    const tdm_capture_ops *captures; /* NULL: work can't be kept */
    const tdm_arena_ops *arenas;

    tdm_status (*count)(int *out); /* devices that can be opened here */
    tdm_status (*info)(int index, tdm_device_info *out);
    tdm_status (*open)(tdm_device **out, const tdm_host *host, const tdm_device_options *options);
    void (*close)(tdm_device *device); /* waits for its work first; NULL is fine */

    /* What kernels the calling thread starts from now on are this device's. Its other functions do this themselves;
     * NULL where it means nothing. */
    tdm_status (*enter)(tdm_device *device);

    /* Zeroed, TDM_ALIGN-aligned or better. TDM_E_MEMORY says what was needed and what was free. */
    tdm_status (*allocate)(tdm_device *device, void **out, size_t bytes, const char *what);
    void (*release)(tdm_device *device, void *pointer); /* NULL is fine */
    /* Host memory from and to which copies are fast and do not block. */
    tdm_status (*allocate_host)(tdm_device *device, void **out, size_t bytes, const char *what);
    void (*release_host)(tdm_device *device, void *pointer);
    /* Host memory that others have allocated becomes like that, until unpin; whole pages. Optional: NULL where all
     * memory is. */
    tdm_status (*pin)(tdm_device *device, void *memory, size_t bytes);
    void (*unpin)(tdm_device *device, void *memory); /* NULL is fine */

    /* May kernels of `device` read and write memory of `peer`? Devices of one kind only, with memory of their own. */
    bool (*reaches)(tdm_device *device, tdm_device *peer);

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
    tdm_threads *threads;         /* lent; NULL: the calling thread alone */
    size_t bytes_now, bytes_peak; /* allocated */
};

TDM_END_DECLS
#endif
