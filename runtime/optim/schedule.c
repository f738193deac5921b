/* Learning-rate schedules in double, by the recursions of torch.optim.lr_scheduler (not their closed forms), so that
 * the values are PyTorch's to the bit. Warm-up is SequentialLR([LinearLR(warmup_factor, 1, warmup_steps), schedule]).
 */
#include "runtime/optim/schedule.h"

#include <math.h>

static const int64_t most_changes = 100000000; /* a resume that follows so many takes some seconds */

static double anneal(const tdm_schedule_section *section, double from, double to, double part) {
    if (section->anneal == TDM_ANNEAL_LINEAR) return (to - from) * part + from;
    return to + (from - to) / 2.0 * (cos(M_PI * part) + 1.0);
}

typedef struct phase {
    double end;                /* count at which it ends */
    double lr[2], momentum[2]; /* from, to */
} phase;

static double onecycle_top(const tdm_schedule *s) {
    return isnan(s->section->max_lr) ? s->base_lr : s->section->max_lr;
}

/* OneCycleLR; momentum runs against the learning rate. */
static void onecycle(tdm_schedule *s) {
    const tdm_schedule_section *section = s->section;
    double top = onecycle_top(s), first = top / section->div_factor, last = first / section->final_div_factor;
    double low = section->base_momentum, high = section->max_momentum, total = (double)s->total;
    const phase rise = {section->pct_start * total - 1.0, {first, top}, {high, low}};
    const phase two[] = {rise, {total - 1.0, {top, last}, {low, high}}};
    const phase three[] = {rise,
                           {2.0 * section->pct_start * total - 2.0, {top, first}, {low, high}},
                           {total - 1.0, {first, last}, {high, high}}};
    const phase *now = section->three_phase ? three : two, *final = section->three_phase ? &three[2] : &two[1];
    double at = (double)s->count, begin = 0;
    for (; now < final && at > now->end; now++) begin = now->end;
    double length = now->end - begin, part = length > 0 ? (at - begin) / length : 1.0;
    if (part > 1.0) part = 1.0; /* past the last step */
    s->lr = anneal(section, now->lr[0], now->lr[1], part);
    if (section->cycle_momentum) s->momentum = anneal(section, now->momentum[0], now->momentum[1], part);
}

static double multistep_factor(const tdm_schedule *s) {
    int hits = 0;
    for (int i = 0; i < s->section->milestones.count; i++) hits += s->section->milestones.item[i] == s->count;
    return pow(s->section->gamma, hits);
}

static void cosine(tdm_schedule *s) {
    double low = s->section->min_lr, span = (double)s->total, at = (double)s->count;
    if (s->total > 0 && (s->count - 1 - s->total) % (2 * s->total) == 0)
        s->lr += (s->base_lr - low) * (1.0 - cos(M_PI / span)) / 2.0;
    else
        s->lr = (1.0 + cos(M_PI * at / span)) / (1.0 + cos(M_PI * (at - 1.0) / span)) * (s->lr - low) + low;
}

/* CosineAnnealingWarmRestarts: a cycle begins at base_lr, and each is t_mult times as long as the one before. */
static void cosine_restarts(tdm_schedule *s) {
    double low = s->section->min_lr;
    int64_t length = s->section->t_0, at = s->count;
    if (s->section->t_mult == 1) at %= length;
    while (at >= length) {
        at -= length;
        if (__builtin_mul_overflow(length, s->section->t_mult, &length)) length = INT64_MAX;
    }
    s->lr = low + (s->base_lr - low) * (1.0 + cos(M_PI * (double)at / (double)length)) / 2.0;
}

static double linear_factor(double start, double end, int64_t total, int64_t at) {
    return 1.0 + (end - start) / ((double)total * start + (double)(at - 1) * (end - start));
}

/* The learning rate at the end of warm-up: the group's initial_lr, which OneCycleLR sets anew. */
static double initial_lr(const tdm_schedule *s) {
    return s->section->type == TDM_SCHEDULE_ONECYCLE ? onecycle_top(s) / s->section->div_factor : s->base_lr;
}

/* The value at count 0, as the constructors of the schedulers set it. */
static void begin(tdm_schedule *s) {
    s->count = 0;
    s->lr = s->base_lr;
    if (s->section->type == TDM_SCHEDULE_ONECYCLE) onecycle(s);
    if (s->section->type == TDM_SCHEDULE_LINEAR) s->lr = s->base_lr * s->section->start_factor;
}

static int64_t next_milestone(const tdm_schedule *s) {
    const tdm_ints *milestones = &s->section->milestones;
    int64_t next = INT64_MAX;
    for (int i = 0; i < milestones->count; i++) {
        if (milestones->item[i] > s->count && milestones->item[i] < next) next = milestones->item[i];
    }
    return next;
}

/* The next count up to `last` at which the learning rate changes; INT64_MAX: none. */
static int64_t next_change(const tdm_schedule *s, int64_t last) {
    const tdm_schedule_section *section = s->section;
    switch (section->type) {
    case TDM_SCHEDULE_STEP:
        if (s->lr * section->gamma == s->lr) return INT64_MAX; /* it is 0 by now and stays 0 */
        return (s->count / section->step_size + 1) * section->step_size;
    case TDM_SCHEDULE_MULTISTEP:
        return next_milestone(s);
    case TDM_SCHEDULE_COSINE:
        return s->count + 1;
    case TDM_SCHEDULE_EXPONENTIAL:
        return s->lr * section->gamma == s->lr ? INT64_MAX : s->count + 1;
    case TDM_SCHEDULE_ONECYCLE:
    case TDM_SCHEDULE_COSINE_RESTARTS:
        return last;
    case TDM_SCHEDULE_LINEAR:
        return s->count < s->total ? s->count + 1 : INT64_MAX;
    default:
        return INT64_MAX;
    }
}

static void change(tdm_schedule *s) {
    const tdm_schedule_section *section = s->section;
    switch (section->type) {
    case TDM_SCHEDULE_STEP:
    case TDM_SCHEDULE_EXPONENTIAL:
        s->lr *= section->gamma;
        break;
    case TDM_SCHEDULE_MULTISTEP:
        s->lr *= multistep_factor(s);
        break;
    case TDM_SCHEDULE_COSINE:
        cosine(s);
        break;
    case TDM_SCHEDULE_COSINE_RESTARTS:
        cosine_restarts(s);
        break;
    case TDM_SCHEDULE_ONECYCLE:
        onecycle(s);
        break;
    case TDM_SCHEDULE_LINEAR:
        s->lr *= linear_factor(section->start_factor, section->end_factor, s->total, s->count);
        break;
    default:
        break;
    }
}

/* Follows the main schedule up to `count` calls of its step. */
static void advance(tdm_schedule *s, int64_t count) {
    while (s->count < count) {
        int64_t next = next_change(s, count);
        s->count = next < count ? next : count;
        if (next <= count) change(s);
    }
}

void tdm__schedule_init(tdm_schedule *schedule, const tdm_schedule_section *section, double lr, double momentum,
                        int64_t steps_total, int64_t steps_per_epoch) {
    *schedule = (tdm_schedule){.section = section, .base_lr = lr, .base_momentum = momentum, .momentum = momentum};
    int64_t span = steps_total - section->warmup_steps;
    if (section->per == TDM_SCHEDULE_PER_EPOCH && steps_per_epoch > 0)
        span = (span + steps_per_epoch - 1) / steps_per_epoch;
    schedule->total = section->total != TDM_INT_NULL ? section->total : span > 0 ? span : 1;
    begin(schedule);
    if (section->warmup_steps > 0) schedule->lr = initial_lr(schedule) * section->warmup_factor;
}

void tdm__schedule_step(tdm_schedule *schedule, bool epoch_ended) {
    const tdm_schedule_section *section = schedule->section;
    if (schedule->warmup < section->warmup_steps) {
        schedule->warmup++;
        if (schedule->warmup == section->warmup_steps)
            begin(schedule);
        else
            schedule->lr *= linear_factor(section->warmup_factor, 1.0, section->warmup_steps, schedule->warmup);
        return;
    }
    if (section->per == TDM_SCHEDULE_PER_STEP || epoch_ended) advance(schedule, schedule->count + 1);
}

/* How often the main schedule's step is called within `steps` steps of training. */
static int64_t calls_within(const tdm_schedule *s, int64_t steps, int64_t steps_per_epoch) {
    int64_t warmup = s->section->warmup_steps;
    if (steps <= warmup) return 0;
    if (s->section->per == TDM_SCHEDULE_PER_STEP) return steps - warmup;
    return steps / steps_per_epoch - warmup / steps_per_epoch;
}

void tdm__schedule_seek(tdm_schedule *schedule, int64_t steps, int64_t steps_per_epoch) {
    const tdm_schedule_section *section = schedule->section;
    int64_t warmup = section->warmup_steps;
    for (int64_t i = 0; i < warmup && i < steps; i++) tdm__schedule_step(schedule, false);
    advance(schedule, calls_within(schedule, steps, steps_per_epoch));
}

static int64_t changes_within(const tdm_schedule *s, int64_t calls) {
    switch (s->section->type) {
    case TDM_SCHEDULE_STEP:
        return s->section->gamma == 1 ? 0 : calls / s->section->step_size;
    case TDM_SCHEDULE_EXPONENTIAL:
        return s->section->gamma == 1 ? 0 : calls;
    case TDM_SCHEDULE_COSINE:
        return calls;
    case TDM_SCHEDULE_LINEAR:
        return calls < s->total ? calls : s->total;
    default:
        return 0; /* a few, or in one go */
    }
}

const char *tdm__schedule_fault(const tdm_schedule *schedule, int64_t steps, int64_t steps_per_epoch) {
    int64_t warmup = schedule->section->warmup_steps < steps ? schedule->section->warmup_steps : steps;
    int64_t changes = warmup + changes_within(schedule, calls_within(schedule, steps, steps_per_epoch));
    return changes > most_changes
               ? "the schedule changes the learning rate more than 100,000,000 times, and a resume "
                 "follows all of them; set schedule.per: epoch, fewer warmup_steps, or train for less"
               : NULL;
}

void tdm__schedules_init(tdm_schedules *schedules, const tdm_job *job, double momentum, int64_t steps_total,
                         int64_t steps_per_epoch) {
    const tdm_optimizer_section *optimizer = &job->optimizer;
    schedules->count = optimizer->groups.count;
    tdm__plateau_init(&schedules->plateau, &job->schedule);
    tdm__schedule_init(&schedules->own, &job->schedule, optimizer->lr, momentum, steps_total, steps_per_epoch);
    for (int i = 0; i < schedules->count; i++) {
        const double lr = optimizer->groups.item[i].lr;
        tdm__schedule_init(&schedules->group[i], &job->schedule, isnan(lr) ? optimizer->lr : lr, momentum, steps_total,
                           steps_per_epoch);
    }
}

void tdm__schedules_step(tdm_schedules *schedules, bool epoch_ended) {
    tdm__schedule_step(&schedules->own, epoch_ended);
    for (int i = 0; i < schedules->count; i++) tdm__schedule_step(&schedules->group[i], epoch_ended);
}

static void reduce(tdm_schedules *schedules) {
    const tdm_schedule_section *section = schedules->own.section;
    schedules->own.lr = tdm__plateau_reduced(section, schedules->own.lr);
    for (int i = 0; i < schedules->count; i++)
        schedules->group[i].lr = tdm__plateau_reduced(section, schedules->group[i].lr);
}

void tdm__schedules_measured(tdm_schedules *schedules, double metric) {
    const tdm_schedule_section *section = schedules->own.section;
    if (section->type != TDM_SCHEDULE_PLATEAU || schedules->own.warmup < section->warmup_steps) return;
    if (tdm__plateau_step(&schedules->plateau, section, metric)) reduce(schedules);
}

void tdm__schedules_seek(tdm_schedules *schedules, int64_t steps, int64_t steps_per_epoch, const tdm_plateau *plateau) {
    tdm__schedule_seek(&schedules->own, steps, steps_per_epoch);
    for (int i = 0; i < schedules->count; i++) tdm__schedule_seek(&schedules->group[i], steps, steps_per_epoch);
    if (schedules->own.section->type != TDM_SCHEDULE_PLATEAU) return;
    schedules->plateau = *plateau;
    if (schedules->own.warmup < schedules->own.section->warmup_steps) return;
    for (int64_t i = 0; i < plateau->reductions; i++) reduce(schedules);
}
