/* The CPU as a device. cpu:0, cpu:1, ... are virtual: each is the thread that uses it, with its own memory, so that
 * data parallelism works on a laptop as it does on a node of GPUs. The CPU is a queue that runs at once: work runs on
 * the calling thread and is done when the call returns. Events are points in time. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/device/device.h"
#include "runtime/device/threads.h"
#include "runtime/graph/graph.h"

typedef struct cpu_device {
    tdm_device base;
    const tdm_flat_kernels *flat;
} cpu_device;

struct tdm_device_event {
    int64_t ns;
};

static tdm_status cpu_count(int *out) {
    *out = INT_MAX;
    return TDM_OK;
}

static tdm_status cpu_info(int index, tdm_device_info *out) {
    *out = (tdm_device_info){0};
    snprintf(out->name, sizeof(out->name), "CPU, virtual device %d", index);
    return TDM_OK;
}

static tdm_status cpu_open(tdm_device **out, const tdm_host *host, const tdm_device_options *options) {
    *out = NULL;
    cpu_device *device = NULL;
    TDM_TRY(tdm__new(host, &device, 1, sizeof(*device), "device"));
    device->base =
        (tdm_device){.ops = &tdm_cpu_device, .host = host, .index = options->index, .threads = options->threads};
    device->flat = tdm_builtin_flat();
    snprintf(device->base.name, sizeof(device->base.name), "cpu:%d", options->index);
    *out = &device->base;
    return TDM_OK;
}

static void cpu_close(tdm_device *device) {
    if (device != NULL) tdm__delete(device->host, device);
}

/* ---- memory ---- */

/* In front of each allocation, so that release knows its size. */
typedef struct block_head {
    size_t bytes;
    char pad[TDM_ALIGN - sizeof(size_t)];
} block_head;

static tdm_status cpu_allocate(tdm_device *device, void **out, size_t bytes, const char *what) {
    *out = NULL;
    block_head *head = NULL;
    size_t total = 0;
    if (!tdm__add_fits(bytes, sizeof(*head), &total))
        TDM_FAIL(TDM_E_MEMORY, "%s: %s: out of memory, needed more bytes than a size can hold", device->name, what);
    if (tdm__new_pages(device->host, &head, total, what) != TDM_OK) {
        char held[32];
        TDM_FAIL(TDM_E_MEMORY,
                 "%s: %s, beside the %s that the device holds already; make train.batch.per_device smaller, or "
                 "train.accumulate larger, or the model smaller",
                 device->name, tdm_error_message(), tdm__print_bytes(held, device->bytes_now));
    }
    head->bytes = bytes;
    device->bytes_now += bytes;
    if (device->bytes_now > device->bytes_peak) device->bytes_peak = device->bytes_now;
    *out = head + 1;
    return TDM_OK;
}

static void cpu_release(tdm_device *device, void *pointer) {
    if (pointer == NULL) return;
    block_head *head = (block_head *)pointer - 1;
    device->bytes_now -= head->bytes;
    tdm__delete_pages(device->host, head);
}

static tdm_status cpu_copy(tdm_device *device, tdm_queue *queue, void *to, const void *from, size_t bytes) {
    (void)device, (void)queue;
    if (bytes > 0 && to != from) memcpy(to, from, bytes);
    return TDM_OK;
}

/* ---- queues and events ---- */

static tdm_status cpu_finish(tdm_device *device, tdm_queue *queue) {
    (void)device, (void)queue;
    return TDM_OK;
}

static tdm_status cpu_queue_open(tdm_device *device, tdm_queue_use use, tdm_queue **out) {
    (void)device, (void)use;
    *out = NULL;
    return TDM_OK;
}

static void cpu_queue_close(tdm_device *device, tdm_queue *queue) {
    (void)device, (void)queue;
}

static tdm_status cpu_event_open(tdm_device *device, tdm_event_use use, tdm_device_event **out) {
    (void)use;
    return tdm__new(device->host, out, 1, sizeof(**out), "event");
}

static void cpu_event_close(tdm_device *device, tdm_device_event *event) {
    tdm__delete(device->host, event);
}

static tdm_status cpu_event_stamp(tdm_device *device, tdm_device_event *event, tdm_queue *queue) {
    (void)device, (void)queue;
    event->ns = tdm__steady_ns(device->host);
    return TDM_OK;
}

/* Work is done when it is put, so there is nothing to record or to wait for. */
static tdm_status cpu_order(tdm_device *device, tdm_device_event *event, tdm_queue *queue) {
    (void)device, (void)event, (void)queue;
    return TDM_OK;
}

static tdm_status cpu_event_done(tdm_device *device, tdm_device_event *event, bool *done) {
    (void)device, (void)event;
    *done = true;
    return TDM_OK;
}

static tdm_status cpu_event_finish(tdm_device *device, tdm_device_event *event) {
    (void)device, (void)event;
    return TDM_OK;
}

static tdm_status cpu_event_ms(tdm_device *device, tdm_device_event *from, tdm_device_event *to, double *ms) {
    (void)device;
    *ms = (double)(to->ns - from->ns) * 1e-6;
    return TDM_OK;
}

/* ---- flat loops ---- */

/* A loop over arrays; which members it uses depends on the loop. */
typedef struct flat_loop {
    const tdm_flat_kernels *flat;
    float *out;
    const float *const *source;
    int source_count;
    const float *in;
    void *out_bf16;
    const void *in_bf16;
    float weight;
    tdm_dtype type;
} flat_loop;

static tdm_status run_loop(tdm_device *device, void (*work)(void *loop, size_t begin, size_t end), flat_loop l,
                           size_t count) {
    l.flat = ((cpu_device *)device)->flat;
    return tdm__threads_loop(device->threads, count, work, &l);
}

static void sum_part(void *loop, size_t begin, size_t end) {
    const flat_loop *l = loop;
    const float *source[TDM_LIST_MAX];
    for (int i = 0; i < l->source_count; i++) source[i] = l->source[i] + begin;
    l->flat->sum(l->out + begin, source, l->source_count, end - begin);
}

static tdm_status cpu_sum(tdm_device *device, float *out, const float *const *source, int source_count, size_t count) {
    return run_loop(device, sum_part, (flat_loop){.out = out, .source = source, .source_count = source_count}, count);
}

static void scale_part(void *loop, size_t begin, size_t end) {
    const flat_loop *l = loop;
    l->flat->scale(l->out + begin, l->weight, end - begin);
}

static tdm_status cpu_clip(tdm_device *device, const tdm_step_values *values, float *g, size_t count,
                           const tdm_flat_range *ranges, int range_count, double *norm) {
    const tdm_flat_kernels *flat = ((cpu_device *)device)->flat;
    double squares = 0;
    for (int i = 0; i < range_count; i++) {
        float part = (float)sqrt(flat->sum_squares(g + ranges[i].offset, ranges[i].count));
        squares += (double)part * (double)part;
    }
    float total = (float)sqrt(squares);
    float factor = values->clip_norm / (total + 1e-6f);
    *norm = (double)total;
    return run_loop(device, scale_part, (flat_loop){.out = g, .weight = factor < 1.0f ? factor : 1.0f}, count);
}

static void clamp_part(void *loop, size_t begin, size_t end) {
    const flat_loop *l = loop;
    l->flat->clamp(l->out + begin, l->weight, end - begin);
}

static tdm_status cpu_clamp(tdm_device *device, const tdm_step_values *values, float *g, size_t count) {
    return run_loop(device, clamp_part, (flat_loop){.out = g, .weight = values->clip_value}, count);
}

static tdm_status cpu_norms(tdm_device *device, const float *g, size_t count, const tdm_flat_range *ranges,
                            int range_count, float *norm) {
    const tdm_flat_kernels *flat = ((cpu_device *)device)->flat;
    (void)count;
    for (int i = 0; i < range_count; i++)
        norm[i] = (float)sqrt(flat->sum_squares(g + ranges[i].offset, ranges[i].count));
    return TDM_OK;
}

static tdm_status cpu_scale(tdm_device *device, float *g, size_t count, float factor) {
    return run_loop(device, scale_part, (flat_loop){.out = g, .weight = factor}, count);
}

static void average_part(void *loop, size_t begin, size_t end) {
    const flat_loop *l = loop;
    l->flat->lerp(l->out + begin, l->in + begin, l->weight, end - begin);
}

static tdm_status cpu_average(tdm_device *device, const tdm_step_values *values, float *average, const float *p,
                              size_t count) {
    const flat_loop loop = {.out = average, .in = p, .weight = values->average_weight};
    return loop.weight > 0 ? run_loop(device, average_part, loop, count) : TDM_OK;
}

static void to_bf16_part(void *loop, size_t begin, size_t end) {
    const flat_loop *l = loop;
    l->flat->to_bf16((uint16_t *)l->out_bf16 + begin, l->in + begin, end - begin);
}

static tdm_status cpu_to_bf16(tdm_device *device, void *out, const float *p, size_t count) {
    return run_loop(device, to_bf16_part, (flat_loop){.out_bf16 = out, .in = p}, count);
}

static void from_bf16_part(void *loop, size_t begin, size_t end) {
    const flat_loop *l = loop;
    l->flat->from_bf16(l->out + begin, (const uint16_t *)l->in_bf16 + begin, end - begin);
}

static tdm_status cpu_from_bf16(tdm_device *device, float *out, const void *what, size_t count) {
    return run_loop(device, from_bf16_part, (flat_loop){.out = out, .in_bf16 = what}, count);
}

static void add_bf16_part(void *loop, size_t begin, size_t end) {
    const flat_loop *l = loop;
    l->flat->add_bf16((uint16_t *)l->out_bf16 + begin, (const uint16_t *)l->in_bf16 + begin, end - begin);
}

static tdm_status cpu_add_bf16(tdm_device *device, void *out, const void *what, size_t count) {
    return run_loop(device, add_bf16_part, (flat_loop){.out_bf16 = out, .in_bf16 = what}, count);
}

/* ---- gradients of 16 bits ---- */

static void narrow_part(void *loop, size_t begin, size_t end) {
    const flat_loop *l = loop;
    (l->type == TDM_DTYPE_BF16 ? l->flat->to_bf16 : l->flat->to_f16)((uint16_t *)l->out_bf16 + begin, l->in + begin,
                                                                     end - begin);
}

static tdm_status cpu_narrow(tdm_device *device, tdm_dtype type, void *out, const float *x, size_t count) {
    return run_loop(device, narrow_part, (flat_loop){.type = type, .out_bf16 = out, .in = x}, count);
}

static void widen_part(void *loop, size_t begin, size_t end) {
    const flat_loop *l = loop;
    (l->type == TDM_DTYPE_BF16 ? l->flat->from_bf16
                               : l->flat->from_f16)(l->out + begin, (const uint16_t *)l->in_bf16 + begin, end - begin);
}

static tdm_status cpu_widen(tdm_device *device, tdm_dtype type, float *out, const void *x, size_t count) {
    return run_loop(device, widen_part, (flat_loop){.type = type, .out = out, .in_bf16 = x}, count);
}

static void round_part(void *loop, size_t begin, size_t end) {
    const flat_loop *l = loop;
    uint16_t block[256];
    for (size_t at = begin; at < end; at += 256) {
        const size_t count = end - at < 256 ? end - at : 256;
        flat_loop part = {.flat = l->flat, .type = l->type, .out_bf16 = block, .in = l->out + at};
        narrow_part(&part, 0, count);
        part = (flat_loop){.flat = l->flat, .type = l->type, .in_bf16 = block, .out = l->out + at};
        widen_part(&part, 0, count);
    }
}

static tdm_status cpu_round(tdm_device *device, tdm_dtype type, float *x, size_t count) {
    return run_loop(device, round_part, (flat_loop){.type = type, .out = x}, count);
}

static const tdm_arena_ops arena_ops = {
    .sum = cpu_sum,
    .clip = cpu_clip,
    .clamp = cpu_clamp,
    .average = cpu_average,
    .to_bf16 = cpu_to_bf16,
    .from_bf16 = cpu_from_bf16,
    .add_bf16 = cpu_add_bf16,
    .norms = cpu_norms,
    .scale = cpu_scale,
    .narrow = cpu_narrow,
    .widen = cpu_widen,
    .round = cpu_round,
};

static const tdm_queue_ops queue_ops = {
    .copy = cpu_copy,
    .finish = cpu_finish,
    .open = cpu_queue_open,
    .close = cpu_queue_close,
};

static const tdm_event_ops event_ops = {
    .open = cpu_event_open,
    .close = cpu_event_close,
    .record = cpu_order,
    .wait = cpu_order,
    .done = cpu_event_done,
    .finish = cpu_event_finish,
    .stamp = cpu_event_stamp,
    .ms = cpu_event_ms,
};

const tdm_device_ops tdm_cpu_device = {
    .name = "cpu",
    .queues = &queue_ops,
    .events = &event_ops,
    .arenas = &arena_ops,
    .count = cpu_count,
    .info = cpu_info,
    .open = cpu_open,
    .close = cpu_close,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .allocate_host = cpu_allocate,
    .release_host = cpu_release,
};
