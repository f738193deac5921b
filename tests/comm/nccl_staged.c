/* See nccl_staged.h. */
#include "tests/comm/nccl_staged.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/module/module.h"

enum { BLOCKS = 64 };

/* Shared by a communicator and those split from it. */
typedef struct ground {
    int users;
    tdm_device *device;
    void *block[BLOCKS]; /* what `allocate` gave */
    int block_count;
} ground;

typedef struct staged {
    tdm_comm base;
    ground *ground;
    tdm_comm *inner;
    void *memory; /* of the device */
    size_t bytes;
} staged;

tdm_status nccl_find(const tdm_device_ops **device, const tdm_comm_ops **comm) {
    const tdm_module *cuda, *nccl;
    tdm_module_report report;
    TDM_TRY(tdm__module_find(&cuda, tdm_host_default(), "cuda", NULL, &report));
    if (cuda == NULL) TDM_FAIL(TDM_E_UNSUPPORTED, "%s", report.text);
    TDM_TRY(tdm__module_find(&nccl, tdm_host_default(), "nccl", NULL, &report));
    if (nccl == NULL) TDM_FAIL(TDM_E_UNSUPPORTED, "%s", report.text);
    *device = cuda->device;
    *comm = nccl->comm;
    return TDM_OK;
}

/* ---- spans there and back ---- */

static size_t bytes_of(tdm_span span) {
    return span.count * tdm_dtype_bytes(span.dtype);
}

/* Room for two spans, one behind the other. */
static tdm_status reserve(staged *s, size_t bytes) {
    tdm_device *device = s->ground->device;
    if (bytes <= s->bytes) return TDM_OK;
    device->ops->release(device, s->memory);
    s->memory = NULL;
    s->bytes = 0;
    TDM_TRY(device->ops->allocate(device, &s->memory, bytes * 2, "staged"));
    s->bytes = bytes * 2;
    return TDM_OK;
}

static tdm_span there(const staged *s, size_t offset, tdm_span span) {
    return (tdm_span){s->memory == NULL ? NULL : (char *)s->memory + offset, span.count, span.dtype};
}

static size_t round_up(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

static tdm_status copy(staged *s, void *to, const void *from, size_t bytes) {
    tdm_device *device = s->ground->device;
    if (bytes == 0) return TDM_OK;
    return device->ops->queues->copy(device, NULL, to, from, bytes);
}

/* ---- a call ---- */

/* What lies in `out` before goes along, and both spans come back: so the test sees a call that writes what it must not.
 */
static tdm_status run(staged *s, const tdm_comm_call *call) {
    tdm_device *device = s->ground->device;
    tdm_span in = call->in, out = call->out;
    if (call->kind == TDM_COMM_GATHER && call->rank != s->base.rank) out.count = 0;
    if (call->kind == TDM_COMM_SCATTER && call->rank != s->base.rank) in.count = 0;
    const char *from = in.data, *to = out.data;
    const bool inside = from >= to && from < to + bytes_of(out); /* `in` is a part of `out`, as all_gather allows */
    TDM_TRY(reserve(s, round_up(bytes_of(out)) + bytes_of(in)));
    tdm_comm_call there_call = *call;
    there_call.out = there(s, 0, out);
    there_call.in = there(s, round_up(bytes_of(out)), in);
    /* `out` is a part of `in`, as reduce_scatter allows */
    const bool holds = to >= from && to < from + bytes_of(in) && !inside;
    if (holds) there_call.out.data = (char *)there_call.in.data + (to - from);
    if (inside) there_call.in.data = (char *)there_call.out.data + (from - to);
    TDM_TRY(copy(s, there_call.out.data, out.data, bytes_of(out)));
    TDM_TRY(copy(s, there_call.in.data, in.data, bytes_of(in)));
    TDM_TRY(s->inner->ops->run(s->inner, &there_call));
    TDM_TRY(s->inner->ops->wait(s->inner, NULL));
    TDM_TRY(copy(s, out.data, there_call.out.data, bytes_of(out)));
    TDM_TRY(copy(s, in.data, there_call.in.data, bytes_of(in)));
    return device->ops->queues->finish(device, NULL);
}

/* The spans of a call, here and on the device. */
typedef struct moved {
    tdm_span *own, *there;
    size_t *offset, count;
} moved;

/* Adds a span, which lies on the device behind those before it, or within one of them, as it does here. */
static size_t add(moved *m, tdm_span span, size_t bytes) {
    const char *at = span.data;
    size_t i = m->count++;
    m->own[i] = span;
    m->offset[i] = bytes;
    for (size_t k = 0; k < i; k++) {
        const char *from = m->own[k].data;
        if (span.count == 0 || at < from || at + bytes_of(span) > from + bytes_of(m->own[k])) continue;
        m->offset[i] = m->offset[k] + (size_t)(at - from);
        return bytes;
    }
    return bytes + round_up(bytes_of(span));
}

static tdm_status carry(staged *s, const moved *m, bool back) {
    tdm_status status = TDM_OK;
    for (size_t i = 0; i < m->count && status == TDM_OK; i++) {
        const tdm_span own = m->own[i], away = m->there[i];
        status = back ? copy(s, own.data, away.data, bytes_of(own)) : copy(s, away.data, own.data, bytes_of(own));
    }
    return status;
}

/* Wholes come first: their parts may lie within them. */
static tdm_status place(staged *s, const tdm_comm_call *call, moved *m) {
    const tdm_span *first = call->kind == TDM_COMM_ALL_GATHER_COALESCED ? call->outs : call->spans;
    const tdm_span *second = call->kind == TDM_COMM_ALL_GATHER_COALESCED ? call->spans : call->outs;
    size_t bytes = 0;
    for (size_t i = 0; i < call->span_count; i++) bytes = add(m, first[i], bytes);
    for (size_t i = 0; i < call->span_count && second != NULL; i++) bytes = add(m, second[i], bytes);
    for (size_t i = 0; i < call->transfer_count; i++) bytes = add(m, call->transfers[i].span, bytes);
    TDM_TRY(reserve(s, bytes));
    for (size_t i = 0; i < m->count; i++) m->there[i] = there(s, m->offset[i], m->own[i]);
    return carry(s, m, false);
}

static tdm_status run_there(staged *s, tdm_comm_call call, const moved *m, tdm_transfer *transfers) {
    const bool gathers = call.kind == TDM_COMM_ALL_GATHER_COALESCED;
    if (call.outs != NULL) call.outs = gathers ? m->there : m->there + call.span_count;
    if (call.spans != NULL) call.spans = gathers ? m->there + call.span_count : m->there;
    for (size_t i = 0; i < call.transfer_count; i++) {
        transfers[i] = call.transfers[i];
        transfers[i].span = m->there[i];
    }
    if (call.transfers != NULL) call.transfers = transfers;
    TDM_TRY(s->inner->ops->run(s->inner, &call));
    return s->inner->ops->wait(s->inner, NULL);
}

/* A call of several spans or messages. */
static tdm_status run_many(staged *s, const tdm_comm_call *call) {
    const size_t count = 2 * call->span_count + call->transfer_count;
    moved m = {.own = calloc(count, sizeof(tdm_span)), .there = calloc(count, sizeof(tdm_span))};
    tdm_transfer *transfers = calloc(count, sizeof(*transfers));
    m.offset = calloc(count, sizeof(*m.offset));
    tdm_status status = TDM_OK;
    if (m.own == NULL || m.there == NULL || m.offset == NULL || transfers == NULL) abort();
    status = place(s, call, &m);
    if (status == TDM_OK) status = run_there(s, *call, &m, transfers);
    if (status == TDM_OK) status = carry(s, &m, true);
    free(m.own);
    free(m.there);
    free(m.offset);
    free(transfers);
    return status == TDM_OK ? s->ground->device->ops->queues->finish(s->ground->device, NULL) : status;
}

static tdm_status run_any(tdm_comm *comm, const tdm_comm_call *call) {
    staged *s = (staged *)comm;
    s->inner->sequence = comm->sequence;
    return call->span_count > 0 || call->transfer_count > 0 ? run_many(s, call) : run(s, call);
}

static tdm_status allocate(tdm_comm *comm, size_t bytes, void **out) {
    ground *g = ((staged *)comm)->ground;
    size_t room = (bytes + 64) / 64 * 64;
    *out = g->block_count < BLOCKS ? aligned_alloc(64, room) : NULL;
    if (*out == NULL) TDM_FAIL(TDM_E_MEMORY, "staged: wanted %zu bytes", bytes);
    memset(*out, 0, room);
    g->block[g->block_count++] = *out;
    return TDM_OK;
}

/* ---- making and ending ---- */

static tdm_status wrap(tdm_comm **out, ground *g, tdm_comm *inner);

static tdm_status split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out) {
    staged *s = (staged *)comm;
    tdm_comm *inner;
    s->inner->sequence = comm->sequence;
    *out = NULL;
    TDM_TRY(s->inner->ops->split(s->inner, ranks, count, &inner));
    return inner != NULL ? wrap(out, s->ground, inner) : TDM_OK;
}

static void abort_comm(tdm_comm *comm, const char *why) {
    tdm_comm *inner = ((staged *)comm)->inner;
    inner->ops->abort(inner, why);
}

static void leave(ground *g) {
    if (--g->users > 0) return;
    g->device->ops->close(g->device);
    for (int i = 0; i < g->block_count; i++) free(g->block[i]);
    free(g);
}

static void close_comm(tdm_comm *comm) {
    staged *s = (staged *)comm;
    s->inner->ops->close(s->inner);
    s->ground->device->ops->release(s->ground->device, s->memory);
    leave(s->ground);
    free(s);
}

static const tdm_comm_ops staged_ops = {
    .name = "nccl",
    .run = run_any,
    .allocate = allocate,
    .split = split,
    .abort = abort_comm,
    .close = close_comm,
};

static tdm_status wrap(tdm_comm **out, ground *g, tdm_comm *inner) {
    staged *s = calloc(1, sizeof(*s));
    if (s == NULL) TDM_FAIL(TDM_E_MEMORY, "staged: no memory");
    s->base = *inner;
    s->base.ops = &staged_ops;
    s->ground = g;
    s->inner = inner;
    g->users++;
    *out = &s->base;
    return TDM_OK;
}

tdm_status staged_open(tdm_comm **out, tdm_comm *control, int device_index, int64_t timeout_ms) {
    const tdm_device_ops *device_ops;
    const tdm_comm_ops *comm_ops;
    tdm_comm *inner;
    *out = NULL;
    TDM_TRY(nccl_find(&device_ops, &comm_ops));
    ground *g = calloc(1, sizeof(*g));
    if (g == NULL) TDM_FAIL(TDM_E_MEMORY, "staged: no memory");
    g->users = 1;
    tdm_status status = device_ops->open(&g->device, control->host, &(tdm_device_options){.index = device_index});
    if (status != TDM_OK) {
        free(g);
        return status;
    }
    status = comm_ops->open(&inner, g->device, control, timeout_ms);
    if (status == TDM_OK) status = wrap(out, g, inner);
    leave(g);
    return status;
}
