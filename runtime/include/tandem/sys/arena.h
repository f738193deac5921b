/* tandem/sys/arena.h - work on whole arenas, and on batches, that belongs to no op. For writers of devices.
 *
 * All of it is put on a queue of the device and done in that queue's order; arrays and `values` are in the device's
 * memory. The order of operations is fixed and is that of the CPU's loops (tdm_flat_kernels), so all devices give the
 * same bits. Only norms may differ: each kind of device adds in a fixed order of its own. */
#ifndef TANDEM_SYS_ARENA_H
#define TANDEM_SYS_ARENA_H

#include <tandem/comm.h>
#include <tandem/sys/op.h>

TDM_BEGIN_DECLS

typedef struct tdm_queue tdm_queue; /* NULL where one is asked for: the device's own */

/* A parameter's range in the flat arenas, in floats. */
typedef struct tdm_flat_range {
    size_t offset, count;
} tdm_flat_range;

/* A batch on its way into a step. It comes to the device's memory packed as
 *     position[rows]   int64_t
 *     target[rows]     at target_at; `target_bytes` each (nothing where 0)
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
    tdm_precision precision;  /* bf16, or floats */
    tdm_layout layout;        /* of `x`: PLAIN or NHWC */
    int64_t x_channels;       /* with NHWC: channels of `x`, zeros behind those of the sample */
    size_t target_bytes;      /* of a row: a multiple of 4 */
    void *x, *target;         /* out */
    int64_t *position;        /* out */
} tdm_ingest;

/* On the device's own queue, but for ingest. */
typedef struct tdm_arena_ops {
    /* out = the sum of the sources as the canonical tree, (s0 + s1) + (s2 + s3) of four; out may
     * be any of the sources. */
    tdm_status (*sum)(tdm_device *device, float *out, const float *const *source, int source_count, size_t count);
    /* torch.nn.utils.clip_grad_norm_: g times min(1, values->clip_norm / (norm + 1e-6)), where norm is the 2-norm of
     * the ranges' 2-norms. Writes it to *norm, in the device's memory. */
    tdm_status (*clip)(tdm_device *device, const tdm_step_values *values, float *g, size_t count,
                       const tdm_flat_range *ranges, int range_count, double *norm);
    /* torch.nn.utils.clip_grad_value_: g between -values->clip_value and values->clip_value. */
    tdm_status (*clamp)(tdm_device *device, const tdm_step_values *values, float *g, size_t count);

    /* average = torch.lerp(average, p, values->average_weight); nothing if that weight is 0. */
    tdm_status (*average)(tdm_device *device, const tdm_step_values *values, float *average, const float *p,
                          size_t count);

    /* out = p in bf16, rounded to the nearest, ties to even. This and add_bf16: NULL on a device without bf16. */
    tdm_status (*to_bf16)(tdm_device *device, void *out, const float *p, size_t count);
    /* out = what, which is bf16. NULL on a device whose kernels all take bf16. */
    tdm_status (*from_bf16)(tdm_device *device, float *out, const void *what, size_t count);
    /* out += what, both bf16, added in float: gradients of activations that several layers write. */
    tdm_status (*add_bf16)(tdm_device *device, void *out, const void *what, size_t count);
    /* Gradients on their way between ranks. `type` is TDM_DTYPE_BF16 or TDM_DTYPE_F16; rounded to the nearest, ties to
     * even. narrow: out = x; widen: out = x; round: x becomes what it would be after both. */
    tdm_status (*narrow)(tdm_device *device, tdm_dtype type, void *out, const float *x, size_t count);
    tdm_status (*widen)(tdm_device *device, tdm_dtype type, float *out, const void *x, size_t count);
    tdm_status (*round)(tdm_device *device, tdm_dtype type, float *x, size_t count);
    /* NULL on a device whose memory is the host's: its kernels read batches where they are. */
    tdm_status (*ingest)(tdm_device *device, tdm_queue *queue, const tdm_ingest *ingest);

    /* norm[i] = the 2-norm of range i, with the bits that clip has for `count` numbers: those of all the devices
     * together, where several have a part of the gradients each (parallel.stages). For clipping there, and for
     * optimizers that take norms of parameters. */
    tdm_status (*norms)(tdm_device *device, const float *g, size_t count, const tdm_flat_range *ranges, int range_count,
                        float *norm);
    /* g *= factor. */
    tdm_status (*scale)(tdm_device *device, float *g, size_t count, float factor);
} tdm_arena_ops;

TDM_END_DECLS
#endif
