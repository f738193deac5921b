/* How communicators begin and end. Before any call of NCCL the ranks agree, over the control plane, on NCCL's version
 * and on who uses which GPU: inside NCCL a disagreement would hang. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/backends/nccl/nccl_comm.h"

enum { REFUSAL = 400 };

/* What a rank reports to the others; all ranks judge the same table. */
typedef struct nccl_facts {
    int32_t version, index; /* version of NCCL; index of the device */
    uint64_t host;          /* hash of what tells hosts apart */
    unsigned char gpu[16];  /* its identity; the index depends on what this process sees */
    int32_t shares;         /* this rank allows several ranks on one GPU */
    int32_t status;         /* TDM_OK, or why this rank cannot take part */
    char refusal[REFUSAL];
} nccl_facts;

/* What rank 0 sends: the meeting point, or why there is none. */
typedef struct nccl_invitation {
    int32_t status;
    char refusal[REFUSAL];
    ncclUniqueId id;
} nccl_invitation;

/* ---- what the ranks agree on ---- */

/* FNV-1a */
static uint64_t hash_text(const char *text) {
    uint64_t hash = 14695981039346656037u;
    for (; text != NULL && *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

/* NCCL's own rule: NCCL_HOSTID, or else the name of the host and the boot of its kernel. Names alone may be equal, and
 * containers of one machine have its boot in common. */
static uint64_t hash_of_host(void) {
    char text[256] = "";
    const char *id = tdm__module_variable("NCCL_HOSTID");
    if (id != NULL) return hash_text(id);
    if (gethostname(text, sizeof(text) / 2) != 0) text[0] = '\0';
    const size_t used = strnlen(text, sizeof(text) / 2);
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd >= 0 ? read(fd, text + used, sizeof(text) - 1 - used) : 0;
    if (fd >= 0) close(fd);
    text[used + (size_t)(bytes > 0 ? bytes : 0)] = '\0';
    return hash_text(text);
}

static bool is_one(const char *variable) {
    const char *value = tdm__module_variable(variable);
    return value != NULL && strcmp(value, "1") == 0;
}

/* The variable overrides ncclConfig_t.blocking, so it must be refused here. */
static bool must_block(char refusal[REFUSAL]) {
    if (!is_one("NCCL_COMM_BLOCKING")) return false;
    snprintf(refusal, REFUSAL,
             "NCCL_COMM_BLOCKING=1 is set (in the environment or in nccl.conf), and blocking calls cannot be aborted "
             "when a peer is lost; set it to 0 or unset it");
    return true;
}

static const tdm_nccl_library *gather_facts(nccl_facts *own, const tdm_device *device) {
    tdm_device_info info;
    memset(own, 0, sizeof(*own));
    const tdm_nccl_library *nccl = tdm__nccl_library(own->refusal, sizeof(own->refusal));
    own->index = device->index;
    own->host = hash_of_host();
    if (device->ops->info(device->index, &info) == TDM_OK) memcpy(own->gpu, info.identity, sizeof(own->gpu));
    own->shares = is_one("NCCL_MULTI_RANK_GPU_ENABLE");
    if (nccl == NULL) {
        own->status = TDM_E_UNSUPPORTED;
        return NULL;
    }
    own->version = nccl->version;
    if (must_block(own->refusal)) own->status = TDM_E_USAGE;
    return nccl;
}

static bool are_on_one_gpu(const nccl_facts *a, const nccl_facts *b) {
    static const unsigned char unknown[sizeof(a->gpu)];
    return a->host == b->host && memcmp(a->gpu, b->gpu, sizeof(a->gpu)) == 0 &&
           memcmp(a->gpu, unknown, sizeof(unknown)) != 0;
}

static tdm_status judge_devices(const nccl_facts *all, int world, const char *version) {
    for (int r = 1; r < world; r++) {
        for (int s = 0; s < r; s++) {
            if (!are_on_one_gpu(&all[r], &all[s]) ||
                (all[0].version >= TDM_NCCL_VERSION_MANY_RANKS && all[r].shares && all[s].shares))
                continue;
            TDM_MODULE_FAIL(
                TDM_E_DEVICE,
                "nccl: cuda:%d of rank %d and cuda:%d of rank %d are one GPU, and NCCL %s allows one rank per GPU; give "
                "each rank its own GPU, or set parallel.ddp.backend: shm%s",
                all[s].index, s, all[r].index, r, version,
                all[0].version >= TDM_NCCL_VERSION_MANY_RANKS
                    ? " (or try NCCL_MULTI_RANK_GPU_ENABLE=1, which NVIDIA calls experimental)"
                    : "");
        }
    }
    return TDM_OK;
}

static tdm_status judge(const nccl_facts *all, int world) {
    char first[TDM_NCCL_VERSION_TEXT], other[TDM_NCCL_VERSION_TEXT];
    for (int r = 0; r < world; r++) {
        if (all[r].status != TDM_OK)
            TDM_MODULE_FAIL((tdm_status)all[r].status, "nccl: rank %d: %.*s", r, REFUSAL - 1, all[r].refusal);
    }
    tdm__nccl_version_print(first, all[0].version);
    for (int r = 1; r < world; r++) {
        if (all[r].version == all[0].version) continue;
        tdm__nccl_version_print(other, all[r].version);
        TDM_MODULE_FAIL(
            TDM_E_UNSUPPORTED,
            "nccl: ranks have different versions: rank 0 NCCL %s, rank %d NCCL %s; make all ranks find the same "
            "libnccl.so.2 (TANDEM_CUDA_LIBRARIES)",
            first, r, other);
    }
    return judge_devices(all, world, first);
}

static tdm_span bytes_of(void *data, size_t bytes) {
    return (tdm_span){data, bytes, TDM_DTYPE_U8};
}

static tdm_status agree(const nccl_facts *own, tdm_comm *control) {
    size_t bytes = (size_t)control->world * sizeof(*own);
    nccl_facts *all = tdm__module_new(control->host, bytes);
    tdm_status status = TDM_OK;
    /* A rank without memory leaves: its peers learn of it through the control plane. */
    if (all == NULL) {
        control->ops->abort(control, "nccl: communicator: out of memory");
        TDM_MODULE_FAIL(TDM_E_MEMORY, "nccl: communicator: out of memory, needed %zu bytes", bytes);
    }
    nccl_facts copy = *own;
    status = tdm__module_host()->comm_call(control, &(tdm_comm_call){.kind = TDM_COMM_ALL_GATHER,
                                                                     .rank = -1,
                                                                     .in = bytes_of(&copy, sizeof(copy)),
                                                                     .out = bytes_of(all, bytes)});
    if (status == TDM_OK) status = judge(all, control->world);
    tdm__module_delete(all);
    return status;
}

static tdm_status meet(const tdm_nccl_library *nccl, tdm_comm *control, ncclUniqueId *id) {
    nccl_invitation invitation;
    memset(&invitation, 0, sizeof(invitation));
    if (control->rank == 0) {
        ncclResult_t result = nccl->GetUniqueId(&invitation.id);
        if (result != ncclSuccess) {
            invitation.status = TDM_E_COMM;
            snprintf(invitation.refusal, REFUSAL, "ncclGetUniqueId: %s: %s (NCCL_DEBUG=WARN prints more)",
                     nccl->GetErrorString(result), nccl->GetLastError(NULL));
        } else if (must_block(invitation.refusal)) { /* NCCL has read nccl.conf by now */
            invitation.status = TDM_E_USAGE;
        }
    }
    TDM_MODULE_TRY(tdm__module_host()->comm_call(
        control, &(tdm_comm_call){.kind = TDM_COMM_BROADCAST, .in = bytes_of(&invitation, sizeof(invitation))}));
    if (invitation.status != TDM_OK)
        TDM_MODULE_FAIL((tdm_status)invitation.status, "nccl: rank 0: %.*s", REFUSAL - 1, invitation.refusal);
    *id = invitation.id;
    return TDM_OK;
}

/* ---- one communicator ---- */

static tdm_status open_queue(tdm_nccl_comm *c) {
    tdm_device *device = c->site->device;
    TDM_MODULE_TRY(device->ops->queues->open(device, TDM_COLLECTIVES, &c->queue));
    TDM_MODULE_TRY(device->ops->events->open(device, TDM_ORDERS, &c->ahead));
    TDM_MODULE_TRY(device->ops->events->open(device, TDM_ORDERS, &c->behind));
    TDM_MODULE_TRY(device->ops->allocate(device, &c->token, sizeof(int32_t), "nccl barrier"));
    return TDM_OK;
}

/* Adds a communicator to the site's list; it has no handle yet. */
static tdm_status new_comm(tdm_nccl_comm **out, tdm_nccl_site *site, int rank, int world) {
    tdm_nccl_comm *c = tdm__module_new(site->host, sizeof(*c));
    *out = NULL;
    if (c == NULL) TDM_MODULE_FAIL(TDM_E_MEMORY, "nccl: communicator: out of memory, needed %zu bytes", sizeof(*c));
    c->base = (tdm_comm){.ops = &tdm__nccl_ops,
                         .host = site->host,
                         .rank = rank,
                         .world = world,
                         .timeout_ms = site->timeout_ms,
                         .process = getpid()};
    c->site = site;
    pthread_mutex_lock(&site->mutex);
    site->users++;
    c->next = site->comms;
    site->comms = c;
    pthread_mutex_unlock(&site->mutex);
    *out = c;
    return TDM_OK;
}

/* Finalizes the communicator on all ranks together: NCCL first waits for calls in progress. */
static void finalize(tdm_nccl_comm *c) {
    tdm_nccl_site *site = c->site;
    snprintf(c->call, sizeof(c->call), "close");
    tdm__nccl_begin(c);
    if (!tdm__nccl_enter(site)) return;
    ncclResult_t result = c->handle != NULL ? site->nccl->CommFinalize(c->handle) : ncclSuccess;
    tdm__nccl_leave(site);
    if (tdm__nccl_settle(c, c, result) != TDM_OK || !tdm__nccl_enter(site)) return;
    if (c->handle != NULL) (void)site->nccl->CommDestroy(c->handle);
    c->handle = NULL;
    tdm__nccl_leave(site);
}

/* Leaves the site's list. A communicator that still has a handle is aborted; captured work is gone by now, so the abort
 * ends. False: the abort hangs all the same, and the keeper still holds the communicator. */
static bool leave_list(tdm_nccl_comm *c) {
    tdm_nccl_site *site = c->site;
    for (;;) {
        pthread_mutex_lock(&site->mutex);
        bool free = site->state == TDM_NCCL_DEAD || (site->state == TDM_NCCL_LIVE && c->handle == NULL);
        tdm_nccl_comm **at = &site->comms;
        while (*at != c) at = &(*at)->next;
        if (free) *at = c->next;
        pthread_mutex_unlock(&site->mutex);
        if (free) return true;
        tdm__nccl_want_abort(site);
        if (tdm__nccl_wait_dead(site)) continue;
        if (site->host->log != NULL)
            site->host->log(site->host->user, TDM_LOG_ERROR, "nccl",
                            "ncclCommAbort has not returned for 10 s (it waits for captured work that was not freed "
                            "before the communicator was closed, or hangs); end the process");
        return false;
    }
}

static void close_comm(tdm_comm *comm) {
    tdm_nccl_comm *c = (tdm_nccl_comm *)comm;
    if (c == NULL) return;
    tdm_nccl_site *site = c->site;
    tdm_device *device = site->device;
    finalize(c);
    if (!leave_list(c)) return; /* not freed: NCCL may still use it */
    device->ops->release(device, c->token);
    if (c->behind != NULL) device->ops->events->close(device, c->behind);
    if (c->ahead != NULL) device->ops->events->close(device, c->ahead);
    if (c->queue != NULL) device->ops->queues->close(device, c->queue);
    tdm__module_delete(c);
    tdm__nccl_site_release(site);
}

/* ---- open and split ---- */

static tdm_status initialise(tdm_nccl_comm *c, ncclUniqueId id) {
    tdm_nccl_site *site = c->site;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    snprintf(c->call, sizeof(c->call), "open nccl");
    tdm__nccl_begin(c);
    tdm_status status = open_queue(c); /* this also makes the device this thread's current one */
    if (status != TDM_OK) return tdm__nccl_device_failed(c, status);
    if (!tdm__nccl_enter(site)) return tdm__nccl_ended(c);
    ncclResult_t result = site->nccl->CommInitRankConfig(&c->handle, c->base.world, id, c->base.rank, &config);
    tdm__nccl_leave(site);
    TDM_MODULE_TRY(tdm__nccl_settle(c, c, result));
    char refusal[REFUSAL];
    if (must_block(refusal)) return tdm__nccl_broken(c, TDM_E_USAGE, "%s", refusal);
    /* Ranks that have come this far learn here if another has not. */
    return tdm__module_host()->comm_call(site->control, &(tdm_comm_call){.kind = TDM_COMM_BARRIER, .rank = -1});
}

static tdm_status open_comm(tdm_comm **out, tdm_device *device, tdm_comm *control, int64_t timeout_ms) {
    nccl_facts own;
    ncclUniqueId id;
    tdm_nccl_site *site = NULL;
    tdm_nccl_comm *c = NULL;
    *out = NULL;
    const tdm_nccl_library *nccl = gather_facts(&own, device);
    TDM_MODULE_TRY(agree(&own, control));
    TDM_MODULE_TRY(meet(nccl, control, &id));
    tdm_status status = tdm__nccl_site_open(&site, nccl, device, control, timeout_ms);
    if (status == TDM_OK) {
        status = new_comm(&c, site, control->rank, control->world);
        tdm__nccl_site_release(site);
    }
    if (status != TDM_OK) {
        control->ops->abort(control, "nccl: cannot open a communicator"); /* peers wait for this rank inside NCCL */
        return status;
    }
    status = initialise(c, id);
    if (status == TDM_OK) {
        *out = &c->base;
        return TDM_OK;
    }
    tdm__nccl_want_abort(site);
    close_comm(&c->base);
    return status;
}

static tdm_status split(tdm_nccl_comm *parent, tdm_nccl_comm *child, int key) {
    tdm_nccl_site *site = parent->site;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t *made = child != NULL ? &child->handle : &parent->none;
    config.blocking = 0;
    if (child != NULL) {
        tdm_status status = open_queue(child);
        if (status != TDM_OK) return tdm__nccl_device_failed(parent, status);
    }
    if (!tdm__nccl_enter(site)) return tdm__nccl_ended(parent);
    ncclResult_t result =
        site->nccl->CommSplit(parent->handle, child != NULL ? 0 : NCCL_SPLIT_NOCOLOR, key, made, &config);
    tdm__nccl_leave(site);
    TDM_MODULE_TRY(tdm__nccl_settle(parent, parent, result));
    if (child == NULL) return TDM_OK;
    return tdm__nccl_settle(parent, child, ncclInProgress);
}

static tdm_status split_comm(tdm_comm *comm, const int *ranks, int count, tdm_comm **out) {
    tdm_nccl_comm *parent = (tdm_nccl_comm *)comm, *child = NULL;
    tdm_status status = TDM_OK;
    int rank = 0;
    *out = NULL;
    snprintf(parent->call, sizeof(parent->call), "split (call %llu, %d ranks)", (unsigned long long)comm->sequence,
             count);
    tdm__nccl_begin(parent);
    while (rank < count && ranks[rank] != comm->rank) rank++;
    if (rank < count) status = new_comm(&child, parent->site, rank, count);
    if (status != TDM_OK) return tdm__nccl_device_failed(parent, status);
    status = split(parent, child, rank);
    if (status != TDM_OK) {
        close_comm(child != NULL ? &child->base : NULL);
        return status;
    }
    *out = child != NULL ? &child->base : NULL;
    return TDM_OK;
}

const tdm_comm_ops tdm__nccl_ops = {
    .name = "nccl",
    .deterministic = false,
    .run = tdm__nccl_run,
    .split = split_comm,
    .abort = tdm__nccl_abort,
    .close = close_comm,
    .open = open_comm,
    .join = tdm__nccl_join,
    .wait = tdm__nccl_wait,
};
