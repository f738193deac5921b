/* ReduceLROnPlateau, operation for operation that of torch/optim/lr_scheduler.py, so that the values are PyTorch's to
 * the bit. */
#include "runtime/optim/plateau.h"

#include <math.h>

static bool falls(const tdm_schedule_section *section) {
    if (section->mode == TDM_PLATEAU_AUTO) return section->metric == TDM_METRIC_LOSS;
    return section->mode == TDM_PLATEAU_MIN;
}

void tdm__plateau_init(tdm_plateau *plateau, const tdm_schedule_section *section) {
    *plateau = (tdm_plateau){.best = falls(section) ? INFINITY : -INFINITY};
}

static bool is_better(const tdm_schedule_section *section, double metric, double best) {
    const bool is_relative = section->threshold_mode == TDM_THRESHOLD_REL;
    if (falls(section))
        return is_relative ? metric < best * (1.0 - section->threshold) : metric < best - section->threshold;
    return is_relative ? metric > best * (section->threshold + 1.0) : metric > best + section->threshold;
}

bool tdm__plateau_step(tdm_plateau *plateau, const tdm_schedule_section *section, double metric) {
    plateau->bad++;
    if (is_better(section, metric, plateau->best)) {
        plateau->best = metric;
        plateau->bad = 0;
    }
    if (plateau->cooldown > 0) {
        plateau->cooldown--;
        plateau->bad = 0;
    }
    if (plateau->bad <= section->patience) return false;
    plateau->cooldown = section->cooldown;
    plateau->bad = 0;
    plateau->reductions++;
    return true;
}

double tdm__plateau_reduced(const tdm_schedule_section *section, double lr) {
    const double reduced = lr * section->factor, low = section->min_lr;
    const double next = reduced > low ? reduced : low;
    return lr - next > section->eps ? next : lr;
}
