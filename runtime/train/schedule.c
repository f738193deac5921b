/* Learning-rate schedules in double, by the recursions of torch.optim.lr_scheduler (not their closed forms), so that
 * the values are PyTorch's to the bit. Warm-up is SequentialLR([LinearLR(warmup_factor, 1, warmup_steps), schedule]).
 */
#include <math.h>

#include "runtime/train/train.h"

static double anneal(const tdm_schedule_section *section, double from, double to, double part) {
    if (section->anneal == 1) return (to - from) * part + from;
    return to + (from - to) / 2.0 * (cos(M_PI * part) + 1.0);
}

/* OneCycleLR with two phases; momentum runs 0.95 -> 0.85 -> 0.95 against the learning rate. */
static void onecycle(tdm_schedule *s) {
    const tdm_schedule_section *section = s->section;
    double top = isnan(section->max_lr) ? s->base_lr : section->max_lr;
    double first = top / section->div_factor, last = first / section->final_div_factor;
    double middle = section->pct_start * (double)s->total - 1.0, end = (double)s->total - 1.0;
    double at = (double)s->count;
    if (at <= middle || end <= middle) {
        double part = middle > 0 ? at / middle : 1.0;
        s->lr = anneal(section, first, top, part);
        if (s->base_momentum > 0) s->momentum = anneal(section, 0.95, 0.85, part);
        return;
    }
    double part = at >= end ? 1.0 : (at - middle) / (end - middle);
    s->lr = anneal(section, top, last, part);
    if (s->base_momentum > 0) s->momentum = anneal(section, 0.85, 0.95, part);
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

static double linear_factor(double start, double end, int64_t total, int64_t at) {
    if (at > total) return 1.0;
    return 1.0 + (end - start) / ((double)total * start + (double)(at - 1) * (end - start));
}

/* The value at count 0, as the constructors of the schedulers set it. */
static void begin(tdm_schedule *s) {
    s->count = 0;
    s->lr = s->base_lr;
    if (s->section->type == TDM_SCHEDULE_ONECYCLE) onecycle(s);
    if (s->section->type == TDM_SCHEDULE_LINEAR) s->lr = s->base_lr * s->section->start_factor;
}

static void advance(tdm_schedule *s) {
    const tdm_schedule_section *section = s->section;
    s->count++;
    switch (section->type) {
    case TDM_SCHEDULE_STEP:
        if (s->count % section->step_size == 0) s->lr *= section->gamma;
        break;
    case TDM_SCHEDULE_MULTISTEP:
        s->lr *= multistep_factor(s);
        break;
    case TDM_SCHEDULE_COSINE:
        cosine(s);
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

void tdm__schedule_init(tdm_schedule *schedule, const tdm_schedule_section *section, double lr, double momentum,
                        int64_t steps_total, int64_t steps_per_epoch) {
    *schedule = (tdm_schedule){.section = section, .base_lr = lr, .base_momentum = momentum, .momentum = momentum};
    int64_t span = steps_total - section->warmup_steps;
    if (section->per == TDM_SCHEDULE_PER_EPOCH && steps_per_epoch > 0)
        span = (span + steps_per_epoch - 1) / steps_per_epoch;
    schedule->total = section->total != TDM_INT_NULL ? section->total : span > 0 ? span : 1;
    begin(schedule);
    if (section->warmup_steps > 0) schedule->lr = lr * section->warmup_factor;
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
    if (section->per == TDM_SCHEDULE_PER_STEP || epoch_ended) advance(schedule);
}
