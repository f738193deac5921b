/* `shm`: the ranks are processes of one host that share an anonymous file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/comm/shm/shm.h"

/* ---- the launcher's side ---- */

tdm_status tdm_launch_create(int *fd, int world) {
    if (fd == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_launch_create: fd is NULL");
    *fd = -1;
    TDM_EXTRA(RANKS);
    if (world < 1 || world > TDM_COMM_WORLD_MAX)
        TDM_FAIL(TDM_E_USAGE, "launch: needs 1 to %d ranks, got %d", TDM_COMM_WORLD_MAX, world);
    TDM_TRY(tdm__shm_create_file(fd, world, true));
    /* Without close-on-exec, so that the ranks inherit it. */
    (void)fcntl(*fd, F_SETFD, 0);
    return TDM_OK;
}

void tdm_launch_abort(int fd, int rank, const char *why) {
    if (!TDM_WITH_RANKS) return;
    tdm_control *control;
    char cause[TDM_CAUSE_TEXT];
    if (tdm__shm_map_control(fd, &control) != TDM_OK) return;
    if (rank < 0)
        snprintf(cause, sizeof(cause), "the launcher ended the job: %.200s", why);
    else
        snprintf(cause, sizeof(cause), "rank %d has ended: %.200s", rank, why);
    tdm__control_end(control, false, cause);
    munmap(control, sizeof(*control));
}

/* ---- a rank's side ---- */

static tdm_status share(tdm_group *group, size_t stride, unsigned char **base) {
    tdm_site *site = group->site;
    uint64_t offset = 0;
    size_t total = stride * (size_t)group->comm.world;
    void *mapped;
    if (group->comm.rank == 0) offset = atomic_fetch_add(&site->control->file_end, total);
    TDM_TRY(tdm__group_tell(group, 0, &offset, sizeof(offset)));
    /* Each rank reserves its own part, which puts it on the rank's memory node. */
    TDM_TRY(tdm__shm_reserve(site->fd, offset + (uint64_t)group->comm.rank * stride, stride));
    TDM_TRY(tdm__group_round(group));
    TDM_TRY(tdm__shm_map(site->fd, offset, total, &mapped));
    TDM_TRY_ELSE(tdm__site_add_mapping(site, mapped, total), munmap(mapped, total));
    *base = mapped;
    return TDM_OK;
}

static void unmap(tdm_site *site, void *base, size_t bytes) {
    (void)site;
    munmap(base, bytes);
}

static void free_site(tdm_site *site) {
    tdm__watch_close(site->watch);
    if (site->control != NULL) munmap(site->control, site->control_bytes);
    if (site->fd >= 0) close(site->fd);
    tdm__delete(site->host, site);
}

static const tdm_comm_ops comm_ops = TDM_GROUP_OPS("shm");
static const tdm_site_ops site_ops = {.comm_ops = &comm_ops, .share = share, .unmap = unmap, .free = free_site};

static tdm_status map_site(tdm_site *site, int fd) {
    tdm_control *control;
    TDM_TRY(tdm__shm_map_control(fd, &control));
    uint32_t made_for = control->world;
    munmap(control, sizeof(*control));
    if (made_for != (uint32_t)site->world)
        TDM_FAIL(TDM_E_USAGE,
                 "communicator: the job was made for %u ranks, but this rank was started with a world of %d", made_for,
                 site->world);
    site->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (site->fd < 0)
        TDM_FAIL(TDM_E_COMM, "communicator: cannot duplicate descriptor %d: %s", fd, strerrordesc_np(errno));
    tdm_shm_layout layout = tdm__shm_layout(site->world);
    void *base;
    TDM_TRY(tdm__shm_map(site->fd, 0, layout.total, &base));
    site->control = base;
    site->control_bytes = layout.total;
    site->process = (tdm_process *)((char *)base + layout.process);
    return TDM_OK;
}

/* The caller holds the only reference. */
static tdm_status new_site(tdm_site **out, int fd, int world, const tdm_host *host) {
    tdm_site *site;
    *out = NULL;
    TDM_TRY(tdm__new(host, &site, 1, sizeof(*site), "communicator"));
    site->ops = &site_ops;
    site->host = host;
    site->world = world;
    site->page = tdm__shm_page();
    site->spin_ns = tdm__spin_ns(world);
    site->fd = -1;
    atomic_store(&site->users, 1);
    TDM_TRY_ELSE(map_site(site, fd), tdm__site_release(site));
    *out = site;
    return TDM_OK;
}

static tdm_status take_rank(tdm_site *site, int rank, tdm_process_state to) {
    tdm_process *process = &site->process[rank];
    uint32_t absent = TDM_PROCESS_ABSENT, met = TDM_PROCESS_MEETING;
    if (atomic_load(&process->state) == met && process->pid == getpid() &&
        atomic_compare_exchange_strong(&process->state, &met, to))
        return TDM_OK;
    if (!atomic_compare_exchange_strong(&process->state, &absent, TDM_PROCESS_JOINING))
        TDM_FAIL(TDM_E_USAGE, "communicator: rank %d is taken by another process of this job; each rank joins once",
                 rank);
    tdm__process_note(process);
    atomic_store(&process->state, to);
    return TDM_OK;
}

static tdm_seat *seats_of(const tdm_site *site) {
    return (tdm_seat *)((char *)site->control + tdm__shm_layout(site->world).seats);
}

static bool not_joined(const tdm_group *group, int r) {
    return atomic_load(&group->site->process[r].state) < TDM_PROCESS_JOINED;
}

static tdm_status join(tdm_group *group, int64_t heartbeat_ms) {
    tdm_site *site = group->site;
    tdm_call call = {.kind = TDM_COMM_JOIN, .root = -1};
    TDM_TRY(take_rank(site, group->comm.rank, TDM_PROCESS_JOINED));
    tdm__group_seat(group, seats_of(site), true);
    if (site->world > 1) TDM_TRY(tdm__watch_open(&site->watch, site, group->comm.rank, group->seat, heartbeat_ms));
    tdm__site_ring(site);
    /* Not tdm__group_enter: if a peer has joined and ended the job since, joining has still succeeded. */
    tdm__group_note(group, &call);
    TDM_TRY(tdm__group_wait(group, not_joined));
    if (site->watch != NULL) tdm__watch_look(site->watch);
    return TDM_OK;
}

tdm_status tdm__comm_open_shm(tdm_comm **out, int fd, int rank, int world, const tdm_host *host, int64_t timeout_ms,
                              int64_t heartbeat_ms) {
    tdm_site *site;
    tdm_group *group;
    *out = NULL;
    TDM_EXTRA(RANKS);
    if (world < 1 || world > TDM_COMM_WORLD_MAX || rank < 0 || rank >= world)
        TDM_FAIL(TDM_E_USAGE, "communicator: needs a rank of 1 to %d ranks, got rank %d of %d", TDM_COMM_WORLD_MAX,
                 rank, world);
    TDM_TRY(tdm__comm_check_times("communicator", timeout_ms, heartbeat_ms));
    TDM_TRY(new_site(&site, fd, world, host));
    tdm_status status = tdm__group_new(&group, site, rank, world, timeout_ms);
    if (status == TDM_OK) status = join(group, heartbeat_ms);
    if (status == TDM_OK)
        *out = &group->comm;
    else
        tdm__group_free(group);
    tdm__site_release(site);
    return status;
}

/* ---- rank 0 at the rendezvous ---- */

/* Heartbeat 0: until rank 0 has joined, it does not check heartbeats, only whether processes are gone. */
tdm_status tdm__shm_host_open(tdm_site **out, int fd, int world, const tdm_host *host) {
    tdm_site *site;
    *out = NULL;
    TDM_TRY(new_site(&site, fd, world, host));
    tdm_status status = take_rank(site, 0, TDM_PROCESS_MEETING);
    if (status == TDM_OK) status = tdm__watch_open(&site->watch, site, 0, seats_of(site), 0);
    if (status != TDM_OK) {
        tdm__site_release(site);
        return tdm__frame(status, __FILE__, __LINE__);
    }
    *out = site;
    return TDM_OK;
}

void tdm__shm_host_close(tdm_site *site) {
    if (site != NULL) tdm__site_release(site);
}
