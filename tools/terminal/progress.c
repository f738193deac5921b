/* progress.c - see progress.h.
 *
 *   epoch 3/10  47%|####    | 184/391 [00:21<00:24, 8.5 step/s, 1088 samples/s, loss 1.204, mean 1.310, lr 1.0e-03]
 *
 * Redrawn at most every 0.1 s. Rates are smoothed over steps (EMA 0.3), as tqdm does. `mean` is the running mean of the
 * steps' losses: an EMA with decay 0.98 and bias correction, so that it begins with the first loss. A narrow terminal
 * shows less. */
#include "tools/terminal/progress.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "tools/terminal/log.h"
#include "tools/terminal/term.h"

enum { BAR_MIN = 10, BAR_MAX = 40 }; /* columns */
static const double redraw_seconds = 0.1, line_seconds = 30, smoothing = 0.3, loss_decay = 0.98;

double progress_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The bar counts the steps of an epoch, or of the whole run for jobs that count steps. */
static bool by_epoch(const progress *p) {
    return p->epochs != TDM_INT_NULL && p->steps_per_epoch > 0;
}

/* The span of the last step: `done` of `total` steps. */
static void position(const progress *p, const tdm_event *event, int64_t *done, int64_t *total) {
    *done = by_epoch(p) ? (event->step - 1) % p->steps_per_epoch + 1 : event->step;
    *total = by_epoch(p) ? p->steps_per_epoch : event->steps_total;
}

void progress_start(progress *p, const tdm_job *job, const tdm_run_state *state, bool quiet) {
    double now = progress_now();
    bool terminal = term_is_terminal(stderr);
    *p = (progress){.every = job->log.every,
                    .epochs = job->train.epochs,
                    .steps_per_epoch = state->steps_per_epoch,
                    .first_step = state->step,
                    .span = -1,
                    .started = now,
                    .shown = now,
                    .last_step_at = now};
    p->bar = job->log.progress == TDM_PROGRESS_ALWAYS || (job->log.progress == TDM_PROGRESS_AUTO && terminal);
    p->silent = quiet;
}

static void smooth(double *average, double value) {
    *average = *average > 0 ? smoothing * value + (1 - smoothing) * *average : value;
}

/* EMA with bias correction: loss_weight is 1 - decay^n. A step without labels that count has no loss. */
static void average_loss(progress *p, double loss) {
    if (!isfinite(loss)) return;
    p->loss_sum = loss_decay * p->loss_sum + (1 - loss_decay) * loss;
    p->loss_weight = loss_decay * p->loss_weight + (1 - loss_decay);
}

static void draw_bar(char *out, size_t bytes, double part, int width) {
    int filled = (int)(part * width);
    size_t used = 0;
    for (int i = 0; i < width && used + 1 < bytes; i++) out[used++] = i < filled ? '#' : ' ';
    out[used] = 0;
}

static char *label(const progress *p) {
    if (!by_epoch(p)) return text_copy("step");
    return text_format("epoch %lld/%lld", (long long)p->span + 1, (long long)p->epochs);
}

/* The text in the brackets, without the parts that do not fit. *room becomes the columns left for the bar. */
static char *bar_details(const progress *p, const tdm_event *event, int *room) {
    enum { STEPS, SAMPLES, LOSS, MEAN, LR, DETAILS };
    static const int drop_order[] = {LR, SAMPLES, STEPS, MEAN, LOSS};
    char loss[32], mean[32], rate[32];
    char *part[DETAILS] = {
        text_format(", %.3g step/s", p->step_rate), text_format(", %s samples/s", text_number(rate, p->sample_rate)),
        text_format(", loss %s", text_number(loss, event->loss)),
        text_format(", mean %s", text_number(mean, p->loss_sum / p->loss_weight)), text_format(", lr %.1e", event->lr)};
    for (int i = 0; i < DETAILS; i++) *room -= tdm_text_columns(part[i]);
    for (int i = 0; i < DETAILS && *room < BAR_MIN; i++) {
        *room += tdm_text_columns(part[drop_order[i]]);
        part[drop_order[i]][0] = 0;
    }
    char *out = text_format("%s%s%s%s%s", part[STEPS], part[SAMPLES], part[LOSS], part[MEAN], part[LR]);
    for (int i = 0; i < DETAILS; i++) free(part[i]);
    return out;
}

static void show_bar(progress *p, const tdm_event *event, int64_t done, int64_t total, double now) {
    char spent[32], left[32], blocks[BAR_MAX + 1];
    double elapsed = now - p->span_started;
    double per_step = elapsed / (double)(event->step - p->span_base);
    FREED char *name = label(p);
    FREED char *head = text_format("%s %3d%%|", name, (int)(100 * done / total));
    FREED char *count = text_format("| %lld/%lld", (long long)done, (long long)total);
    FREED char *times =
        text_format("%s<%s", text_time(spent, elapsed), text_time(left, per_step * (double)(total - done)));
    int bracket = tdm_text_columns(times) + 3; /* with " [" and "]" */
    int room = term_width(stderr) - 1 - tdm_text_columns(head) - tdm_text_columns(count) - bracket;
    FREED char *details = bar_details(p, event, &room);
    FREED char *brackets = room < 0 ? text_copy("") : text_format(" [%s%s]", times, details);
    if (room < 0) room += bracket; /* leave out the whole bracket rather than show a part of it */
    if (room > BAR_MAX) room = BAR_MAX;
    draw_bar(blocks, sizeof blocks, (double)done / (double)total, room < 0 ? 0 : room);
    FREED char *whole = text_format("%s%s%s%s", head, blocks, count, brackets);
    term_bar(whole);
    p->shown = now;
}

static char *plain_line(const progress *p, const tdm_event *event, int64_t done, int64_t total, double now) {
    char spent[32], left[32], loss[32], rate[32];
    double run = now - p->started;
    double per_step = run / (double)(event->step - p->first_step);
    FREED char *name = label(p);
    return text_format("%s%s %lld/%lld  %d%%  loss %s  lr %.3g  %s samples/s  elapsed %s  left %s", name,
                       by_epoch(p) ? "  step" : "", (long long)done, (long long)total, (int)(100 * done / total),
                       text_number(loss, event->loss), event->lr, text_number(rate, (double)p->samples / run),
                       text_time(spent, run), text_time(left, per_step * (double)(event->steps_total - event->step)));
}

static bool line_is_due(const progress *p, const tdm_event *event, int64_t done, int64_t total, double now) {
    if (event->step == event->steps_total || now - p->shown >= line_seconds) return true;
    double amount = p->every.amount;
    switch (p->every.kind) {
    case TDM_INTERVAL_STEPS:
        return amount >= 1 && event->step % (int64_t)amount == 0;
    case TDM_INTERVAL_EPOCHS:
        return done == total;
    case TDM_INTERVAL_SECONDS:
        return now - p->shown >= amount;
    default:
        return false;
    }
}

static void count_step(progress *p, const tdm_event *event, double now) {
    int64_t span = by_epoch(p) ? (event->step - 1) / p->steps_per_epoch : 0;
    if (span != p->span) {
        p->span = span;
        p->span_base = event->step - 1;
        p->span_started = p->last_step_at;
    }
    double seconds = now - p->last_step_at;
    if (seconds > 0) {
        smooth(&p->step_rate, 1 / seconds);
        smooth(&p->sample_rate, (double)event->samples / seconds);
    }
    average_loss(p, event->loss);
    p->last_step_at = now;
    p->samples += event->samples;
}

static void on_step(progress *p, const tdm_event *event) {
    double now = progress_now();
    int64_t done, total;
    count_step(p, event, now);
    position(p, event, &done, &total);
    if (line_is_due(p, event, done, total, now)) {
        FREED char *line = plain_line(p, event, done, total, now);
        log_note("%s", line);
        if (!p->bar && !p->silent) term_line("%s", line);
        if (!p->bar) p->shown = now;
    }
    if (p->silent || !p->bar) return;
    if (now - p->shown >= redraw_seconds || done == total) show_bar(p, event, done, total, now);
    if (event->step == event->steps_total) term_bar_end(true);
}

static char *percent(const char *name, double fraction) {
    return isfinite(fraction) ? text_format(", %s %.2f %%", name, 100 * fraction) : text_copy("");
}

static void on_eval(const progress *p, const tdm_event *event) {
    char loss[32];
    FREED char *accuracy = percent("accuracy", event->accuracy), *top5 = percent("top-5", event->top5);
    FREED char *name = by_epoch(p) ? text_format("epoch %.4g/%lld", (double)event->step / (double)p->steps_per_epoch,
                                                 (long long)p->epochs)
                                   : text_format("step %lld", (long long)event->step);
    log_note("%s  eval loss %s%s%s", name, text_number(loss, event->loss), accuracy, top5);
    if (!p->silent) term_line("%s  eval: loss %s%s%s", name, text_number(loss, event->loss), accuracy, top5);
}

void progress_event(progress *p, const tdm_event *event) {
    if (event->kind == TDM_EVENT_STEP) on_step(p, event);
    if (event->kind == TDM_EVENT_EVAL) on_eval(p, event);
    if (event->kind == TDM_EVENT_CHECKPOINT) log_note("checkpoint %s", event->path);
}

void progress_end(progress *p) {
    if (p->bar && !p->silent) term_bar_end(false);
}
