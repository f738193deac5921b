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
]


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


if __name__ == "__main__":
    sys.exit(main())
