/* How calls of NCCL end: they are polled until a deadline, and all ranks get every failure as a sentence. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/backends/nccl/nccl_comm.h"

enum { DRAIN_MS = 10 * 1000 };

void tdm__nccl_begin(tdm_nccl_comm *comm) {
    comm->deadline_ns = tdm__deadline_ns(tdm__now_ns(), comm->base.timeout_ms);
}

/* ---- failures ---- */

/* Waits until the work behind NCCL's kernels is done. Once the keeper has raised NCCL's abort flags its kernels end,
 * and the work behind them runs on garbage: it must finish before anyone frees its memory. If no event can be made
 * (during a capture) the wait ends. */
static void drain(tdm_nccl_comm *comm) {
    tdm_device *device = comm->site->device;
    int64_t deadline = tdm__now_ns() + (int64_t)DRAIN_MS * 1000000;
    bool done = false;
    tdm_nccl_pause pause = {0};
    if (comm->behind == NULL || device->ops->events->record(device, comm->behind, comm->queue) != TDM_OK) return;
    while (!done && tdm__now_ns() < deadline) {
        if (device->ops->events->done(device, comm->behind, &done) != TDM_OK) return;
        if (!done) tdm__nccl_pause(&pause);
    }
}

/* Does not wait for ncclCommAbort, which returns only when the graphs with NCCL's calls are gone. The owner of these
 * graphs must learn of the failure first. */
static void give_up(tdm_nccl_comm *comm) {
    tdm__nccl_want_abort(comm->site);
    drain(comm);
}

tdm_status tdm__nccl_ended(tdm_nccl_comm *comm) {
    tdm_nccl_site *site = comm->site;
    char why[TDM_NCCL_WHY] = "";
    give_up(comm);
    if (!site->control->ops->ended(site->control, why, sizeof(why))) {
        pthread_mutex_lock(&site->mutex);
        snprintf(why, sizeof(why), "%s", site->why[0] != '\0' ? site->why : "the job was ended");
        pthread_mutex_unlock(&site->mutex);
    }
    TDM_MODULE_FAIL(TDM_E_COMM, "%s: %s", comm->call, why);
}

/* The first cause is kept. */
static void report_to_all(tdm_nccl_comm *comm, const char *what) {
    tdm_nccl_site *site = comm->site;
    char why[TDM_NCCL_WHY];
    snprintf(why, sizeof(why), "%s: %.*s", comm->call, (int)(sizeof(why) - strlen(comm->call) - 3), what);
    pthread_mutex_lock(&site->mutex);
    if (site->why[0] == '\0') memcpy(site->why, why, sizeof(why));
    pthread_mutex_unlock(&site->mutex);
    site->control->ops->abort(site->control, why);
}

tdm_status tdm__nccl_broken(tdm_nccl_comm *comm, tdm_status status, const char *format, ...) {
    char what[TDM_NCCL_WHY];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    report_to_all(comm, what);
    give_up(comm);
    TDM_MODULE_FAIL(status, "%s: rank %d: %s", comm->call, comm->site->rank, what);
}

tdm_status tdm__nccl_device_failed(tdm_nccl_comm *comm, tdm_status status) {
    char what[64];
    snprintf(what, sizeof(what), "%s failed", comm->site->device->name);
    report_to_all(comm, what);
    tdm__nccl_want_abort(comm->site);
    return tdm__module_host()->frame(status, __FILE__, __LINE__);
}

/* Copies a foreign text as one line. */
static void copy_line(char *to, size_t bytes, const char *from) {
    size_t length = 0;
    for (; from != NULL && *from != '\0' && length + 1 < bytes; from++)
        to[length++] = (unsigned char)*from < ' ' ? ' ' : *from;
    while (length > 0 && to[length - 1] == ' ') length--;
    to[length] = '\0';
}

static tdm_status status_of(ncclResult_t result) {
    switch (result) {
    case ncclUnhandledCudaError:
        return TDM_E_DEVICE;
    case ncclInvalidArgument:
    case ncclInvalidUsage:
        return TDM_E_INTERNAL;
    default:
        return TDM_E_COMM;
    }
}

tdm_status tdm__nccl_refused(tdm_nccl_comm *comm, ncclResult_t result) {
    tdm_nccl_site *site = comm->site;
    char text[64], last[256] = "";
    if (!tdm__nccl_enter(site)) return tdm__nccl_ended(comm);
    copy_line(text, sizeof(text), site->nccl->GetErrorString(result));
    copy_line(last, sizeof(last), site->nccl->GetLastError(comm->handle));
    tdm__nccl_leave(site);
    /* The second text is that of 2.30.7. */
    if (strstr(last, "Duplicate GPU") != NULL || strstr(last, "using the same GPU") != NULL)
        return tdm__nccl_broken(
            comm, TDM_E_DEVICE,
            "NCCL allows one rank per GPU, and another rank uses %s, too (%s); give each rank its own "
            "GPU, or set parallel.ddp.backend: shm",
            site->device->name, last);
    return tdm__nccl_broken(comm, status_of(result), "NCCL: %s%s%s (NCCL_DEBUG=WARN prints more)", text,
                            last[0] != '\0' ? ": " : "", last);
}

/* ---- the end of a call ---- */

tdm_status tdm__nccl_settle(tdm_nccl_comm *comm, const tdm_nccl_comm *state_of, ncclResult_t result) {
    tdm_nccl_site *site = comm->site;
    tdm_nccl_pause pause = {0};
    while (result == ncclInProgress) {
        if (tdm__now_ns() >= comm->deadline_ns)
            return tdm__nccl_broken(comm, TDM_E_COMM, "waited %lld ms for NCCL to start it",
                                    (long long)comm->base.timeout_ms);
        tdm__nccl_pause(&pause);
        if (!tdm__nccl_enter(site)) return tdm__nccl_ended(comm);
        ncclResult_t answer = site->nccl->CommGetAsyncError(state_of->handle, &result);
        tdm__nccl_leave(site);
        if (answer != ncclSuccess) result = answer;
    }
    return result == ncclSuccess ? TDM_OK : tdm__nccl_refused(comm, result);
}
