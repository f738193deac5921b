/* Appending to metrics.jsonl and other logs, see metrics.h. */
#include "runtime/train/log/metrics.h"

#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/status.h"

tdm_status tdm__metrics_open(tdm_metrics *metrics, const tdm_host *host, const tdm_file_ops *ops,
                             const tdm_folder *folder, const char *name) {
    *metrics = (tdm_metrics){.host = host, .ops = ops, .folder = folder, .name = name, .fd = -1};
    tdm__text_init(&metrics->kept, host);
    return tdm__file_keep(&metrics->fd, ops, folder, name);
}

/* A part of the line may be in the file already: the rest must follow it there, as soon as writing works again. */
static tdm_status write_kept(tdm_metrics *metrics) {
    tdm_text *kept = &metrics->kept;
    tdm_out_file file = {.ops = metrics->ops, .folder = metrics->folder, .name = metrics->name, .fd = metrics->fd};
    if (kept->length == 0) return TDM_OK;
    tdm_status status = tdm__out_write(&file, kept->data, kept->length);
    kept->length -= (size_t)file.at;
    memmove(kept->data, kept->data + file.at, kept->length);
    return status;
}

static void tell_failure(tdm_metrics *metrics) {
    if (!metrics->failing)
        TDM_WARN(metrics->host, "run", "%s; training continues, and the lines are written once that is possible again",
                 tdm_error_message());
    metrics->failing = true;
}

static void tell_success(tdm_metrics *metrics) {
    if (metrics->left_out > 0)
        TDM_WARN(metrics->host, "run", "%s/%s is written again; %lld lines are lost: more than %d MiB of them waited",
                 metrics->folder->path, metrics->name, (long long)metrics->left_out, TDM_METRICS_KEPT >> 20);
    else if (metrics->failing)
        TDM_WARN(metrics->host, "run", "%s/%s is written again; no line is lost", metrics->folder->path, metrics->name);
    metrics->failing = false;
    metrics->lines = metrics->left_out = 0;
}

tdm_status tdm__metrics_add(tdm_metrics *metrics, tdm_text *line) {
    bool fits = metrics->kept.length + line->length <= TDM_METRICS_KEPT;
    tdm_error record;
    if (fits) tdm__text_add(&metrics->kept, line->data, line->length);
    bool failed = line->failed || metrics->kept.failed;
    tdm__text_deinit(line);
    if (failed) TDM_FAIL(TDM_E_MEMORY, "out of memory while writing %s", metrics->name);
    if (fits)
        metrics->lines++;
    else
        metrics->left_out++;
    tdm__error_save(&record);
    if (write_kept(metrics) == TDM_OK)
        tell_success(metrics);
    else
        tell_failure(metrics);
    (void)tdm__error_restore(&record, NULL);
    return TDM_OK;
}

void tdm__metrics_close(tdm_metrics *metrics) {
    if (metrics->fd < 0) return;
    if (metrics->kept.length > 0 && write_kept(metrics) == TDM_OK) tell_success(metrics);
    if (metrics->kept.length > 0)
        TDM_WARN(metrics->host, "run", "%s/%s could not be written to the end: up to %lld lines are lost",
                 metrics->folder->path, metrics->name, (long long)(metrics->lines + metrics->left_out));
    metrics->ops->close(metrics->ops->user, metrics->fd);
    metrics->fd = -1;
    tdm__text_deinit(&metrics->kept);
}
