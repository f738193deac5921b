/* `local`: the ranks are threads of this process, and reach one another's spans by their addresses. */
#include "runtime/base/memory.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/comm/group.h"

static tdm_status share(tdm_group *group, size_t stride, unsigned char **base) {
    tdm_site *site = group->site;
    void *memory = NULL;
    if (group->comm.rank == 0) {
        size_t bytes = stride * (size_t)group->comm.world;
        TDM_TRY(tdm__new(site->host, &memory, bytes, 1, "shared memory"));
        TDM_TRY_ELSE(tdm__site_add_mapping(site, memory, bytes), tdm__delete(site->host, memory));
    }
    TDM_TRY(tdm__group_tell(group, 0, &memory, sizeof(memory)));
    *base = memory;
    return TDM_OK;
}

static void unmap(tdm_site *site, void *base, size_t bytes) {
    (void)bytes;
    tdm__delete(site->host, base);
}

static void free_site(tdm_site *site) {
    tdm__delete(site->host, site->control);
    tdm__delete(site->host, site);
}

static const tdm_comm_ops comm_ops = TDM_GROUP_OPS("local");
static const tdm_site_ops site_ops = {.comm_ops = &comm_ops, .share = share, .unmap = unmap, .free = free_site};

/* The caller holds the only reference. */
static tdm_status new_site(tdm_site **out, int world, const tdm_host *host) {
    tdm_site *site;
    *out = NULL;
    TDM_TRY(tdm__new(host, &site, 1, sizeof(*site), "communicator"));
    TDM_TRY_ELSE(tdm__new(host, &site->control, 1, sizeof(*site->control), "communicator"), tdm__delete(host, site));
    site->ops = &site_ops;
    site->host = host;
    site->world = world;
    site->page = TDM_ALIGN;
    site->spin_ns = tdm__spin_ns(world);
    site->fd = -1;
    atomic_store(&site->users, 1);
    *out = site;
    return TDM_OK;
}

static tdm_status open_ranks(tdm_comm **ranks, tdm_site *site, int64_t timeout_ms) {
    size_t bytes = tdm__seats_bytes(site->world, false);
    void *seats;
    TDM_TRY(tdm__new(site->host, &seats, bytes, 1, "communicator"));
    TDM_TRY_ELSE(tdm__site_add_mapping(site, seats, bytes), tdm__delete(site->host, seats));
    for (int r = 0; r < site->world; r++) {
        tdm_group *group;
        TDM_TRY(tdm__group_new(&group, site, r, site->world, timeout_ms));
        tdm__group_seat(group, seats, false);
        ranks[r] = &group->comm;
    }
    return TDM_OK;
}

tdm_status tdm_comm_open_threads(tdm_comm **ranks, int world, const tdm_host *host, int64_t timeout_ms) {
    tdm_site *site;
    if (ranks == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_comm_open_threads: ranks is NULL");
    TDM_TRY(tdm__host_take(&host));
    if (world < 1 || world > TDM_COMM_WORLD_MAX)
        TDM_FAIL(TDM_E_USAGE, "communicator: needs 1 to %d ranks, got %d", TDM_COMM_WORLD_MAX, world);
    TDM_TRY(tdm__comm_check_times("communicator", timeout_ms, 0));
    for (int r = 0; r < world; r++) ranks[r] = NULL;
    TDM_EXTRA(RANKS);
    TDM_TRY(new_site(&site, world, host));
    tdm_status status = open_ranks(ranks, site, timeout_ms);
    for (int r = 0; status != TDM_OK && r < world; r++) {
        tdm_comm_close(ranks[r]);
        ranks[r] = NULL;
    }
    tdm__site_release(site);
    return status;
}
