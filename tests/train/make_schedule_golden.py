#!/usr/bin/env python3
"""Writes schedule_golden.h: the learning rates (and momenta) of torch.optim.lr_scheduler, as hexadecimal doubles.

    python3 make_schedule_golden.py > schedule_golden.h
Needs torch (made with 2.13.0)."""
import sys
import warnings

import torch
from torch.optim import SGD
from torch.optim import lr_scheduler as S

warnings.filterwarnings("ignore")


CYCLES = ".cycle_momentum = true, .base_momentum = 0.85, .max_momentum = 0.95"


def opt(lr, momentum=0.9):
    return SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr, momentum=momentum)


def warm(o, n, f, main):
    return S.SequentialLR(o, [S.LinearLR(o, f, 1.0, n), main(o)], [n])


CASES = [
    # name, lr, steps, fields of tdm_schedule_section, scheduler
    ("step", 0.1, 25, ".type = TDM_SCHEDULE_STEP, .step_size = 7, .gamma = 0.3", lambda o: S.StepLR(o, 7, 0.3)),
    ("multistep", 0.1, 25, ".type = TDM_SCHEDULE_MULTISTEP, .gamma = 0.1, .milestones = {3, {4, 9, 9}}",
     lambda o: S.MultiStepLR(o, [4, 9, 9], 0.1)),
    ("cosine", 0.1, 40, ".type = TDM_SCHEDULE_COSINE, .total = 17, .min_lr = 1e-3", lambda o: S.CosineAnnealingLR(o, 17, 1e-3)),
    ("linear", 0.1, 20, ".type = TDM_SCHEDULE_LINEAR, .total = 6, .start_factor = 0.25, .end_factor = 0.9",
     lambda o: S.LinearLR(o, 0.25, 0.9, 6)),
    ("onecycle_cos", 0.1, 30, ".type = TDM_SCHEDULE_ONECYCLE, .total = 31, .max_lr = 0.2, .pct_start = 0.3, .div_factor = 25, .final_div_factor = 1e4, " + CYCLES,
     lambda o: S.OneCycleLR(o, 0.2, 31)),
    ("onecycle_linear", 0.1, 20, ".type = TDM_SCHEDULE_ONECYCLE, .total = 21, .max_lr = 0.05, .pct_start = 0.4, .div_factor = 10, .final_div_factor = 100, .anneal = 1, " + CYCLES,
     lambda o: S.OneCycleLR(o, 0.05, 21, pct_start=0.4, div_factor=10, final_div_factor=100, anneal_strategy="linear")),
    ("warmup_cosine", 0.1, 12, ".type = TDM_SCHEDULE_COSINE, .total = 9, .min_lr = 0, .warmup_steps = 3, .warmup_factor = 0.1",
     lambda o: warm(o, 3, 0.1, lambda o: S.CosineAnnealingLR(o, 9))),
    ("warmup_step", 0.05, 15, ".type = TDM_SCHEDULE_STEP, .step_size = 4, .gamma = 0.5, .warmup_steps = 5, .warmup_factor = 0.2",
     lambda o: warm(o, 5, 0.2, lambda o: S.StepLR(o, 4, 0.5))),
    ("warmup_multistep", 0.05, 15, ".type = TDM_SCHEDULE_MULTISTEP, .gamma = 0.5, .milestones = {2, {3, 7}}, .warmup_steps = 4, .warmup_factor = 0.3",
     lambda o: warm(o, 4, 0.3, lambda o: S.MultiStepLR(o, [3, 7], 0.5))),
    ("warmup_linear", 0.05, 15, ".type = TDM_SCHEDULE_LINEAR, .total = 6, .start_factor = 0.5, .end_factor = 0.1, .warmup_steps = 4, .warmup_factor = 0.3",
     lambda o: warm(o, 4, 0.3, lambda o: S.LinearLR(o, 0.5, 0.1, 6))),
    ("warmup_onecycle", 0.1, 25, ".type = TDM_SCHEDULE_ONECYCLE, .total = 20, .max_lr = 0.2, .pct_start = 0.3, .div_factor = 25, .final_div_factor = 1e4, .warmup_steps = 5, .warmup_factor = 0.1, " + CYCLES,
     lambda o: warm(o, 5, 0.1, lambda o: S.OneCycleLR(o, 0.2, 20))),
    ("onecycle_three_phase", 0.1, 30, ".type = TDM_SCHEDULE_ONECYCLE, .total = 30, .max_lr = 0.2, .pct_start = 0.35, .div_factor = 20, .final_div_factor = 50, .three_phase = true, .cycle_momentum = true, .base_momentum = 0.7, .max_momentum = 0.9",
     lambda o: S.OneCycleLR(o, 0.2, 30, pct_start=0.35, div_factor=20, final_div_factor=50, three_phase=True, base_momentum=0.7, max_momentum=0.9)),
    ("onecycle_keeps_momentum", 0.1, 12, ".type = TDM_SCHEDULE_ONECYCLE, .total = 12, .max_lr = 0.2, .pct_start = 0.3, .div_factor = 25, .final_div_factor = 1e4",
     lambda o: S.OneCycleLR(o, 0.2, 12, cycle_momentum=False)),
    ("onecycle_from_no_momentum", 0.1, 12, ".type = TDM_SCHEDULE_ONECYCLE, .total = 12, .max_lr = 0.2, .pct_start = 0.3, .div_factor = 25, .final_div_factor = 1e4, " + CYCLES,
     lambda o: S.OneCycleLR(o, 0.2, 12), 0.0),
    ("exponential", 0.1, 20, ".type = TDM_SCHEDULE_EXPONENTIAL, .gamma = 0.93", lambda o: S.ExponentialLR(o, 0.93)),
    ("warmup_exponential", 0.05, 15, ".type = TDM_SCHEDULE_EXPONENTIAL, .gamma = 0.9, .warmup_steps = 4, .warmup_factor = 0.3",
     lambda o: warm(o, 4, 0.3, lambda o: S.ExponentialLR(o, 0.9))),
    ("restarts", 0.1, 30, ".type = TDM_SCHEDULE_COSINE_RESTARTS, .t_0 = 7, .t_mult = 1, .min_lr = 1e-3",
     lambda o: S.CosineAnnealingWarmRestarts(o, 7, eta_min=1e-3)),
    ("growing_restarts", 0.1, 60, ".type = TDM_SCHEDULE_COSINE_RESTARTS, .t_0 = 3, .t_mult = 2",
     lambda o: S.CosineAnnealingWarmRestarts(o, 3, 2)),
    ("warmup_restarts", 0.1, 40, ".type = TDM_SCHEDULE_COSINE_RESTARTS, .t_0 = 4, .t_mult = 3, .min_lr = 1e-4, .warmup_steps = 5, .warmup_factor = 0.1",
     lambda o: warm(o, 5, 0.1, lambda o: S.CosineAnnealingWarmRestarts(o, 4, 3, 1e-4))),
]

PLATEAUS = [
    # name, fields of tdm_schedule_section, arguments of the scheduler
    ("min_rel", ".factor = 0.3, .patience = 2, .threshold = 1e-2", dict(factor=0.3, patience=2, threshold=1e-2)),
    ("min_abs", ".factor = 0.5, .patience = 1, .threshold = 0.05, .threshold_mode = TDM_THRESHOLD_ABS, .cooldown = 3",
     dict(factor=0.5, patience=1, threshold=0.05, threshold_mode="abs", cooldown=3)),
    ("max_rel", ".mode = TDM_PLATEAU_MAX, .factor = 0.1, .patience = 0, .threshold = 1e-4, .min_lr = 1e-3, .cooldown = 1",
     dict(mode="max", factor=0.1, patience=0, min_lr=1e-3, cooldown=1)),
    ("max_abs", ".mode = TDM_PLATEAU_MAX, .factor = 0.7, .patience = 3, .threshold = 0.1, .threshold_mode = TDM_THRESHOLD_ABS",
     dict(mode="max", factor=0.7, patience=3, threshold=0.1, threshold_mode="abs")),
    ("eps", ".factor = 0.5, .patience = 0, .threshold = 1e-4, .eps = 1e-2", dict(factor=0.5, patience=0, eps=1e-2)),
]
MEASURED = 40


def metric(i):
    """Falls, with noise, then stays: (i * 7919) % 101 is the noise."""
    return 1.0 / (1 + min(i, 12)) + ((i * 7919) % 101) / 1000.0 if i != 17 else float("nan")


def print_plateaus():
    print("static const double plateau_metric[] = {%s};" % ", ".join(
        float(metric(i)).hex() if i != 17 else "NAN" for i in range(MEASURED)))
    rows = []
    for name, fields, arguments in PLATEAUS:
        o = opt(0.1)
        o.add_param_group(dict(params=[torch.nn.Parameter(torch.zeros(1))], lr=0.013))
        s = S.ReduceLROnPlateau(o, **arguments)
        lrs = [[], []]
        for i in range(MEASURED):
            s.step(metric(i))
            for k in range(2):
                lrs[k].append(o.param_groups[k]["lr"])
        for k in range(2):
            print("static const double plateau_%s_%d[] = {%s};" % (name, k, ", ".join(float(v).hex() for v in lrs[k])))
        eps = "" if ".eps" in fields else ", .eps = 1e-8"
        rows.append('    {"%s", {.type = TDM_SCHEDULE_PLATEAU, .metric = TDM_METRIC_LOSS, %s%s}, {plateau_%s_0, plateau_%s_1}},' % (
            name, fields, eps, name, name))
    print("static const struct {\n    const char *name;\n    tdm_schedule_section section;\n    const double *want[2];\n} plateau_golden[] = {")
    print("\n".join(rows))
    print("};")


def main():
    print("/* Made by make_schedule_golden.py with torch %s. */" % torch.__version__)
    rows = []
    for name, lr, steps, fields, make, *momentum in CASES:
        momentum = momentum[0] if momentum else 0.9
        o = opt(lr, momentum)
        s = make(o)
        lrs, moms = [], []
        for _ in range(steps):
            lrs.append(o.param_groups[0]["lr"])
            moms.append(o.param_groups[0]["momentum"])
            o.step()
            s.step()
        for kind, values in (("lr", lrs), ("momentum", moms)):
            print("static const double %s_%s[] = {%s};" % (name, kind, ", ".join(float(v).hex() for v in values)))
        rows.append('    {"%s", %r, %r, %d, {%s}, %s_lr, %s_momentum},' % (name, lr, momentum, steps, fields, name, name))
    print("static const struct {\n    const char *name;\n    double lr, momentum;\n    int steps;\n    tdm_schedule_section section;\n"
          "    const double *want_lr, *want_momentum;\n} schedule_golden[] = {")
    print("\n".join(rows))
    print("};")
    print_plateaus()


if __name__ == "__main__":
    sys.exit(main())
