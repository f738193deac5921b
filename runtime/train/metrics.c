/* Appending to metrics.jsonl, see metrics.h. */
#include "runtime/train/metrics.h"

#include <errno.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/status.h"

tdm_status tdm__metrics_open(tdm_metrics *metrics, const tdm_host *host, const tdm_file_ops *ops,
                             const tdm_folder *folder) {
    *metrics = (tdm_metrics){.host = host, .ops = ops, .folder = folder, .fd = -1};
    tdm__text_init(&metrics->kept, host);
    return tdm__file_keep(&metrics->fd, ops, folder, TDM_METRICS);
}

/* A part of the line may be in the file already: the rest must follow it there, as soon as writing works again. */
static int write_kept(tdm_metrics *metrics) {
    tdm_text *kept = &metrics->kept;
    size_t done = 0;
    int error = 0;
    while (done < kept->length && error == 0) {
        ssize_t n = metrics->ops->pwrite(metrics->ops->user, metrics->fd, kept->data + done, kept->length - done, 0);
        if (n > 0) done += (size_t)n;
        if (n == 0) error = ENOSPC;
        if (n < 0 && errno != EINTR) error = errno;
    }
    if (done > 0) memmove(kept->data, kept->data + done, kept->length - done);
    kept->length -= done;
    return error;
}

static void tell_failure(tdm_metrics *metrics, int error) {
    tdm_error record;
    if (metrics->failing) return;
    metrics->failing = true;
    tdm__error_save(&record);
    (void)tdm__file_fail("write", metrics->folder, TDM_METRICS, error);
    TDM_WARN(metrics->host, "run", "%s; training continues, and the lines are written once that is possible again",
             tdm_error_message());
    (void)tdm__error_restore(&record, NULL);
}

static void tell_success(tdm_metrics *metrics) {
    if (metrics->left_out > 0)
        TDM_WARN(metrics->host, "run", "%s/%s is written again; %lld lines are lost: more than %d MiB of them waited",
                 metrics->folder->path, TDM_METRICS, (long long)metrics->left_out, TDM_METRICS_KEPT >> 20);
    else if (metrics->failing)
        TDM_WARN(metrics->host, "run", "%s/%s is written again; no line is lost", metrics->folder->path, TDM_METRICS);
    metrics->failing = false;
    metrics->lines = metrics->left_out = 0;
}

tdm_status tdm__metrics_add(tdm_metrics *metrics, tdm_text *line) {
    bool fits = metrics->kept.length + line->length <= TDM_METRICS_KEPT;
    if (fits) tdm__text_add(&metrics->kept, line->data, line->length);
    bool failed = line->failed || metrics->kept.failed;
    tdm__text_deinit(line);
    if (failed) TDM_FAIL(TDM_E_MEMORY, "out of memory while writing " TDM_METRICS);
    if (fits)
        metrics->lines++;
    else
        metrics->left_out++;
    int error = write_kept(metrics);
    if (error != 0)
        tell_failure(metrics, error);
    else
        tell_success(metrics);
    return TDM_OK;
}

void tdm__metrics_close(tdm_metrics *metrics) {
    if (metrics->fd < 0) return;
    if (metrics->kept.length > 0 && write_kept(metrics) == 0) tell_success(metrics);
    if (metrics->kept.length > 0)
        TDM_WARN(metrics->host, "run", "%s/%s could not be written to the end: up to %lld lines are lost",
                 metrics->folder->path, TDM_METRICS, (long long)(metrics->lines + metrics->left_out));
    metrics->ops->close(metrics->ops->user, metrics->fd);
    metrics->fd = -1;
    tdm__text_deinit(&metrics->kept);
}
