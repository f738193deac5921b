/* Rounds: the ranks of a group publish their calls and wait for one another. See group.h. */
#include "runtime/comm/group.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/hash.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"

/* ---- making and ending groups ---- */

tdm_status tdm__group_new(tdm_group **out, tdm_site *site, int rank, int world, int64_t timeout_ms) {
    tdm_group *group;
    *out = NULL;
    atomic_fetch_add(&site->users, 1);
    tdm_status status = tdm__new(site->host, &group, 1, sizeof(*group), "communicator");
    if (status == TDM_OK) {
        status = tdm__new(site->host, &group->job_rank, (size_t)world, sizeof(*group->job_rank), "communicator");
        if (status != TDM_OK) tdm__delete(site->host, group);
    }
    if (status != TDM_OK) {
        tdm__site_release(site);
        return tdm__frame(status, __FILE__, __LINE__);
    }
    group->comm.ops = site->ops->comm_ops;
    group->comm.host = site->host;
    group->comm.process = getpid();
    group->comm.rank = rank;
    group->comm.world = world;
    group->comm.timeout_ms = timeout_ms;
    group->site = site;
    for (int r = 0; r < world; r++) group->job_rank[r] = r;
    *out = group;
    return TDM_OK;
}

void tdm__group_free(tdm_group *group) {
    if (group == NULL) return;
    tdm_site *site = group->site;
    const tdm_host *host = site->host;
    if (group->seat != NULL) {
        atomic_store(&group->seat[group->comm.rank].left, 1);
        tdm__site_ring(site);
    }
    tdm__delete(host, group->parts);
    tdm__delete(host, group->region);
    tdm__delete(host, group->job_rank);
    tdm__delete(host, group);
    tdm__site_release(site);
}

void tdm__group_close(tdm_comm *comm) {
    tdm__group_free((tdm_group *)comm);
}

size_t tdm__seats_bytes(int world, bool boxes) {
    const size_t offers = (size_t)world * sizeof(tdm_offer);
    return (size_t)world * (sizeof(tdm_seat) + offers + (boxes ? 2 * TDM_MAIL_BYTES : 0));
}

void tdm__group_seat(tdm_group *group, void *area, bool boxes) {
    const size_t world = (size_t)group->comm.world;
    group->seat = area;
    group->offer = (tdm_offer *)(group->seat + world);
    group->box = boxes ? (unsigned char *)(group->offer + world * world) : NULL;
    snprintf(group->abort_cause, sizeof(group->abort_cause), "rank %d called abort", group->job_rank[group->comm.rank]);
}

/* ---- calls ---- */

void tdm__group_note(tdm_group *group, const tdm_call *call) {
    group->call = *call;
    group->call.sequence = group->comm.sequence;
    group->deadline_ns = tdm__deadline_ns(tdm__now_ns(), group->comm.timeout_ms);
}

tdm_status tdm__group_enter(tdm_group *group, const tdm_call *call) {
    tdm__group_note(group, call);
    if (tdm__site_ended(group->site)) return tdm__group_ended(group);
    return TDM_OK;
}

/* Threads read one another's spans in place. A thread that is reading when the job ends finishes its copy, which waits
 * for no other rank. Only then may this rank's caller free its memory. */
static void wait_until_untouched(tdm_group *group) {
    for (int r = 0; r < group->comm.world; r++) {
        if (r == group->comm.rank) continue;
        while (atomic_load(&group->seat[r].touching) != 0) sched_yield();
    }
}

tdm_status tdm__group_leave(tdm_group *group, tdm_status status) {
    if (status == TDM_OK) return TDM_OK;
    if (!tdm__site_ended(group->site)) tdm__group_abort(&group->comm, tdm_error_message());
    if (group->site->process == NULL) wait_until_untouched(group);
    return status;
}

tdm_status tdm__group_touch(tdm_group *group) {
    atomic_store(&group->seat[group->comm.rank].touching, 1);
    if (!tdm__site_ended(group->site)) return TDM_OK;
    tdm__group_untouch(group);
    return tdm__group_ended(group);
}

void tdm__group_untouch(tdm_group *group) {
    atomic_store(&group->seat[group->comm.rank].touching, 0);
}

/* ---- rounds ---- */

tdm_entry *tdm__group_next_entry(tdm_group *group) {
    return &group->seat[group->comm.rank].entry[(group->round + 1) % 2];
}

const tdm_entry *tdm__group_entry(const tdm_group *group, int r) {
    return &group->seat[r].entry[group->round % 2];
}

static bool not_arrived(const tdm_group *group, int r) {
    return atomic_load(&group->seat[r].round) < group->round;
}

tdm_status tdm__group_round(tdm_group *group) {
    tdm_seat *own = &group->seat[group->comm.rank];
    tdm__group_next_entry(group)->call = group->call;
    group->round++;
    atomic_store(&own->last_call, group->call.sequence << 8 | (uint64_t)group->call.kind);
    atomic_store(&own->round, group->round);
    for (int r = 0; r < group->comm.world; r++) {
        if (not_arrived(group, r)) return tdm__group_wait(group, not_arrived);
    }
    /* This rank is the last: all others wait for it. */
    tdm__site_ring(group->site);
    return TDM_OK;
}

/* Every rank compares all calls with member 0's, so that all ranks reach the same verdict. */
static tdm_status check_calls(tdm_group *group) {
    const tdm_call *first = &tdm__group_entry(group, 0)->call;
    for (int r = 1; r < group->comm.world; r++)
        TDM_TRY(tdm__call_compare(first, 0, &tdm__group_entry(group, r)->call, r, group->job_rank));
    return TDM_OK;
}

tdm_status tdm__group_meet(tdm_group *group, tdm_span span, const void *data, size_t small) {
    tdm_entry *entry = tdm__group_next_entry(group);
    entry->address = tdm__group_address(group, span.data, tdm__span_bytes(span));
    if (data != NULL && small > 0 && small <= TDM_ENTRY_BYTES) memcpy(entry->data, data, small);
    TDM_TRY(tdm__group_round(group));
    return check_calls(group);
}

tdm_status tdm__group_tell(tdm_group *group, int root, void *data, size_t bytes) {
    if (group->comm.rank == root) memcpy(tdm__group_next_entry(group)->data, data, bytes);
    TDM_TRY(tdm__group_round(group));
    memcpy(data, tdm__group_entry(group, root)->data, bytes);
    return TDM_OK;
}

/* ---- memory ---- */

tdm_peer_address tdm__group_address(const tdm_group *group, const void *data, size_t bytes) {
    uintptr_t at = (uintptr_t)data;
    if (group->site->process == NULL) return (tdm_peer_address){.region = 1, .offset = at};
    for (size_t i = 0; i < group->region_count; i++) {
        const tdm_region *region = &group->region[i];
        uintptr_t base = (uintptr_t)(region->base + (size_t)group->comm.rank * region->stride);
        if (at >= base && at - base <= region->stride && bytes <= region->stride - (at - base))
            return (tdm_peer_address){.region = i + 1, .offset = at - base};
    }
    return (tdm_peer_address){0};
}

void *tdm__group_reach(const tdm_group *group, int r, tdm_peer_address address) {
    if (group->site->process == NULL) return (void *)(uintptr_t)address.offset;
    const tdm_region *region = &group->region[address.region - 1];
    return region->base + (size_t)r * region->stride + address.offset;
}

bool tdm__group_reaches(const tdm_group *group, int first, int count) {
    for (int r = first; r < first + count; r++) {
        if (tdm__group_entry(group, r)->address.region == 0) return false;
    }
    return true;
}

void *tdm__group_peer_span(const tdm_group *group, int r) {
    return tdm__group_reach(group, r, tdm__group_entry(group, r)->address);
}

tdm_span tdm__group_publish(tdm_group *group, const tdm_span *spans, size_t count) {
    tdm_peer_address *address = (void *)tdm__group_next_entry(group)->data;
    tdm_span last = spans[0];
    for (size_t i = 0; i < count; i++) {
        if (spans[i].count == 0) continue;
        last = spans[i];
        address[i] = tdm__group_address(group, last.data, tdm__span_bytes(last));
        if (address[i].region == 0) break;
    }
    return last;
}

void *tdm__group_peer_span_at(const tdm_group *group, int r, size_t i) {
    const tdm_peer_address *address = (const void *)tdm__group_entry(group, r)->data;
    return tdm__group_reach(group, r, address[i]);
}

tdm_status tdm__group_share(tdm_group *group, size_t bytes, tdm_region *out) {
    size_t page = group->site->page, stride, total;
    if (!tdm__add_fits(bytes == 0 ? 1 : bytes, page - 1, &stride) ||
        !tdm__mul_fits(stride -= stride % page, (size_t)group->comm.world, &total) || total > PTRDIFF_MAX)
        TDM_FAIL(TDM_E_MEMORY, "shared memory: %zu bytes for each of %d ranks is more than this machine can address",
                 bytes, group->comm.world);
    out->stride = stride;
    TDM_TRY(group->site->ops->share(group, stride, &out->base));
    return TDM_OK;
}

tdm_status tdm__group_open_staging(tdm_group *group) {
    if (group->staging.base != NULL) return TDM_OK;
    return tdm__group_share(group, 2 * TDM_STAGING_BYTES, &group->staging);
}

static unsigned char *stage_half(const tdm_group *group, int r, uint64_t round) {
    return group->staging.base + (size_t)r * group->staging.stride + (size_t)(round % 2) * TDM_STAGING_BYTES;
}

unsigned char *tdm__group_own_staging(const tdm_group *group) {
    return stage_half(group, group->comm.rank, group->round + 1);
}

unsigned char *tdm__group_peer_staging(const tdm_group *group, int r) {
    return stage_half(group, r, group->round);
}

static tdm_status allocate(tdm_group *group, size_t bytes, void **out) {
    tdm_region region;
    TDM_TRY(tdm__group_meet(group, (tdm_span){NULL, 0, TDM_DTYPE_U8}, NULL, 0));
    TDM_TRY(tdm__grow(group->comm.host, &group->region, &group->region_capacity, group->region_count + 1,
                      sizeof(region), "shared memory"));
    TDM_TRY(tdm__group_share(group, bytes, &region));
    group->region[group->region_count++] = region;
    *out = region.base + (size_t)group->comm.rank * region.stride;
    return TDM_OK;
}

tdm_status tdm__group_allocate(tdm_comm *comm, size_t bytes, void **out) {
    tdm_group *group = (tdm_group *)comm;
    tdm_call call = {.kind = TDM_COMM_ALLOCATE, .dtype = TDM_DTYPE_U8, .op = -1, .root = -1, .count = bytes};
    *out = NULL;
    tdm_status status = tdm__group_enter(group, &call);
    if (status == TDM_OK) status = allocate(group, bytes, out);
    return tdm__group_leave(group, status);
}

/* ---- sub-groups ---- */

static tdm_status split(tdm_group *group, const int *ranks, int count, tdm_group **out) {
    bool boxes = group->site->process != NULL;
    size_t world = (size_t)group->comm.world;
    TDM_TRY(tdm__group_meet(group, (tdm_span){NULL, 0, TDM_DTYPE_U8}, NULL, 0));
    /* One area holds all seats: the seats' bytes are divided among the members' parts. */
    tdm_region area;
    TDM_TRY(tdm__group_share(group, (tdm__seats_bytes(count, boxes) + world - 1) / world, &area));
    int rank = 0;
    while (rank < count && ranks[rank] != group->comm.rank) rank++;
    if (rank == count) return TDM_OK;
    TDM_TRY(tdm__group_new(out, group->site, rank, count, group->comm.timeout_ms));
    for (int r = 0; r < count; r++) (*out)->job_rank[r] = group->job_rank[ranks[r]];
    tdm__group_seat(*out, area.base, boxes);
    return TDM_OK;
}

tdm_status tdm__group_split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out) {
    tdm_group *group = (tdm_group *)comm, *made = NULL;
    tdm_call call = {.kind = TDM_COMM_SPLIT, .dtype = TDM_DTYPE_I32, .op = -1, .root = -1, .count = (uint64_t)count};
    call.extra = tdm__hash64(ranks, (size_t)count * sizeof(*ranks), 0);
    *out = NULL;
    tdm_status status = tdm__group_enter(group, &call);
    if (status == TDM_OK) status = split(group, ranks, count, &made);
    if (made != NULL) *out = &made->comm;
    return tdm__group_leave(group, status);
}

/* ---- abort ---- */

void tdm__group_abort(tdm_comm *comm, const char *why) {
    const tdm_group *group = (const tdm_group *)comm;
    char cause[TDM_CAUSE_TEXT];
    if (why != NULL) snprintf(cause, sizeof(cause), "rank %d: %s", group->job_rank[comm->rank], why);
    tdm__control_end(group->site->control, group->site->process == NULL, why != NULL ? cause : group->abort_cause);
}
