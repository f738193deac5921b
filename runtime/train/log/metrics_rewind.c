/* Cuts lines from metrics.jsonl whose steps will be repeated. A cut line is durable in the other file before it leaves
 * this one: after a crash it may be in both files, never in none.
 *
 *   1. Looks at every line: does it stay, and does a line that stays follow one that goes?
 *   2. Appends the lines that go to metrics.jsonl.cut and syncs that file.
 *   3. Truncates the file if only its end goes. Otherwise, and if the last line lacks its newline, writes the lines
 *      that stay to a new file and renames that: a newline appended in place might be torn and damage the line.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/text/json.h"
#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/train/log/metrics.h"

typedef enum verdict { STAYS, LATER, UNREADABLE } verdict;

/* A line with its newline, if it has one; or a part of a line that is too long. */
typedef struct piece {
    const char *text;
    size_t bytes;
    uint64_t at; /* in the file */
    verdict verdict;
    bool begins, ends; /* a line */
} piece;

typedef struct scan {
    const tdm_metrics *metrics;
    int64_t step;
    bool eval_due;
    char *window; /* TDM_METRICS_LINE bytes */
    size_t from, filled;
    uint64_t window_at; /* in the file */
    bool in_long_line;
} scan;

/* ---- one line ---- */

/* {"kind": ..., "step": n, ...}: the step, and whether the line is an evaluation's. */
static bool read_line(const char *text, size_t bytes, int64_t *step, bool *is_eval) {
    tdm_json json;
    char key[16], kind[16] = "";
    size_t length;
    bool has_step = false;
    tdm__json_open(&json, text, bytes, TDM_JSON_DEPTH);
    if (!tdm__json_object(&json)) return false;
    while (tdm__json_key(&json, key, sizeof(key), &length)) {
        if (strcmp(key, "step") == 0)
            has_step = tdm__json_integer(&json, step);
        else if (strcmp(key, "kind") == 0)
            (void)tdm__json_string(&json, kind, sizeof(kind), &length);
        else
            (void)tdm__json_skip(&json);
    }
    *is_eval = strcmp(kind, "eval") == 0;
    return has_step && tdm__json_end(&json);
}

static verdict judge(const scan *s, const char *text, size_t bytes) {
    int64_t step = 0;
    bool is_eval = false;
    if (!read_line(text, bytes, &step, &is_eval)) return UNREADABLE;
    return step > s->step || (step == s->step && s->eval_due && is_eval) ? LATER : STAYS;
}

/* ---- line by line ---- */

static void start(scan *s) {
    s->from = s->filled = 0;
    s->window_at = 0;
    s->in_long_line = false;
}

static tdm_status fill(scan *s) {
    memmove(s->window, s->window + s->from, s->filled - s->from);
    s->window_at += s->from;
    s->filled -= s->from;
    s->from = 0;
    while (s->filled < TDM_METRICS_LINE) {
        ssize_t got = pread(s->metrics->fd, s->window + s->filled, TDM_METRICS_LINE - s->filled,
                            (off_t)(s->window_at + s->filled));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return tdm__file_fail("read", s->metrics->folder, TDM_METRICS, errno);
        if (got == 0) break;
        s->filled += (size_t)got;
    }
    return TDM_OK;
}

/* Reads the next piece; at the end it has no bytes. */
static tdm_status next(scan *s, piece *out) {
    const char *newline = memchr(s->window + s->from, '\n', s->filled - s->from);
    if (newline == NULL) {
        TDM_TRY(fill(s));
        newline = memchr(s->window, '\n', s->filled);
    }
    const char *text = s->window + s->from;
    size_t bytes = newline != NULL ? (size_t)(newline + 1 - text) : s->filled - s->from;
    bool at_end = newline == NULL && s->filled < TDM_METRICS_LINE;
    bool whole = (newline != NULL || at_end) && !s->in_long_line;
    *out = (piece){.text = text, .bytes = bytes, .at = s->window_at + s->from, .begins = !s->in_long_line};
    out->ends = newline != NULL;
    out->verdict = whole ? judge(s, text, bytes - out->ends) : UNREADABLE;
    s->in_long_line = newline == NULL;
    s->from += bytes;
    return TDM_OK;
}

/* ---- all of them ---- */

typedef struct found {
    uint64_t first_cut; /* in the file */
    int64_t later, unreadable;
    bool stays_behind; /* a line that stays follows one that goes */
    bool lacks_end;    /* the last line stays, and has no newline */
} found;

static tdm_status look(scan *s, found *out) {
    piece p;
    *out = (found){.later = 0};
    start(s);
    for (;;) {
        TDM_TRY(next(s, &p));
        if (p.bytes == 0) return TDM_OK;
        bool any = out->later + out->unreadable > 0;
        if (p.verdict == STAYS) out->stays_behind = out->stays_behind || any;
        if (p.verdict != STAYS && !any) out->first_cut = p.at;
        out->lacks_end = p.verdict == STAYS && !p.ends;
        out->later += p.verdict == LATER && p.begins;
        out->unreadable += p.verdict == UNREADABLE && p.begins;
    }
}

/* Copies the pieces that stay, whole lines, or those that go. */
static tdm_status copy(scan *s, bool stays, tdm_out_file *to) {
    piece p;
    start(s);
    for (;;) {
        TDM_TRY(next(s, &p));
        if (p.bytes == 0) return TDM_OK;
        if ((p.verdict == STAYS) == stays) TDM_TRY(tdm__out_write(to, p.text, p.bytes));
        if (stays && p.verdict == STAYS && !p.ends) TDM_TRY(tdm__out_write(to, "\n", 1));
    }
}

/* A line that a crash or a full disk cut off has no newline; it ends with the file. */
static tdm_status end_last_line(tdm_out_file *file) {
    char last = '\n';
    if (file->at > 0) TDM_TRY(tdm__file_read(file->fd, file->name, &last, 1, (uint64_t)file->at - 1, TDM_E_IO));
    return last == '\n' ? TDM_OK : tdm__out_write(file, "\n", 1);
}

static tdm_status save_cut(scan *s, tdm_out_file *file) {
    TDM_TRY(end_last_line(file));
    TDM_TRY(copy(s, false, file));
    TDM_TRY(end_last_line(file));
    if (file->ops->fsync(file->ops->user, file->fd) != 0)
        return tdm__file_fail("flush", file->folder, file->name, errno);
    return tdm__folder_sync(file->ops, file->folder);
}

static tdm_status add_to_cut(scan *s) {
    const tdm_metrics *m = s->metrics;
    tdm_out_file file = {.ops = m->ops, .folder = m->folder, .name = TDM_METRICS_CUT};
    TDM_TRY(tdm__file_keep(&file.fd, m->ops, m->folder, TDM_METRICS_CUT));
    off_t before = file.at = lseek(file.fd, 0, SEEK_END);
    tdm_status status = save_cut(s, &file);
    if (status != TDM_OK) (void)m->ops->truncate(m->ops->user, file.fd, before);
    m->ops->close(m->ops->user, file.fd);
    return status;
}

static tdm_status cut_off(const tdm_metrics *m, uint64_t at) {
    if (m->ops->truncate(m->ops->user, m->fd, (off_t)at) != 0)
        return tdm__file_fail("cut", m->folder, TDM_METRICS, errno);
    if (m->ops->fsync(m->ops->user, m->fd) != 0) return tdm__file_fail("flush", m->folder, TDM_METRICS, errno);
    return TDM_OK;
}

static tdm_status replace(scan *s, tdm_metrics *m) {
    char sibling[TDM_FILE_SIBLING];
    tdm_out_file file;
    TDM_TRY(tdm__out_open_beside(&file, sibling, m->ops, m->folder, TDM_METRICS));
    tdm_status status = copy(s, true, &file);
    if (status != TDM_OK) {
        tdm__out_discard(&file);
        return status;
    }
    TDM_TRY(tdm__out_replace(&file, TDM_METRICS));
    m->ops->close(m->ops->user, m->fd);
    return tdm__file_keep(&m->fd, m->ops, m->folder, TDM_METRICS);
}

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

static void report_cut(const tdm_metrics *m, int64_t step, const found *what) {
    char later[96] = "", unreadable[96] = "";
    if (what->later > 0)
        snprintf(later, sizeof(later), "%lld line%s of what comes after step %lld", (long long)what->later,
                 plural(what->later), (long long)step);
    if (what->unreadable > 0)
        snprintf(unreadable, sizeof(unreadable), "%lld line%s that cannot be read", (long long)what->unreadable,
                 plural(what->unreadable));
    TDM_WARN(m->host, "run", "%s%s%s moved from %s to %s/%s", later, later[0] && unreadable[0] ? " and " : "",
             unreadable, TDM_METRICS, m->folder->path, TDM_METRICS_CUT);
}

static tdm_status rewind_with(scan *s, tdm_metrics *metrics) {
    found what;
    TDM_TRY(look(s, &what));
    bool any = what.later + what.unreadable > 0;
    if (!any && !what.lacks_end) return TDM_OK;
    if (any) TDM_TRY(add_to_cut(s));
    TDM_TRY(what.stays_behind || what.lacks_end ? replace(s, metrics) : cut_off(metrics, what.first_cut));
    if (any) report_cut(metrics, s->step, &what);
    return TDM_OK;
}

tdm_status tdm__metrics_rewind(tdm_metrics *metrics, int64_t step, bool eval_due) {
    scan s = {.metrics = metrics, .step = step, .eval_due = eval_due};
    TDM_TRY(tdm__new(metrics->host, &s.window, TDM_METRICS_LINE, 1, TDM_METRICS));
    tdm_status status = rewind_with(&s, metrics);
    tdm__delete(metrics->host, s.window);
    return status;
}
