#!/usr/bin/env python3
"""Writes average_golden.h: parameters after each of some steps, and torch's averages of them.

The averages are those of torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn, bit for bit.
Usage: make_average_golden.py > average_golden.h
"""
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

COUNT, STEPS, DECAYS = 37, 8, (0.999, 0.9, 0.25, 0.0)


def row(values):
    return "{" + ", ".join(float(v).hex() + "f" for v in values.tolist()) + "}"


def main():
    torch.manual_seed(3)
    model = torch.nn.Module()
    model.p = torch.nn.Parameter(torch.randn(COUNT))
    trained = [torch.randn(COUNT) * 10.0 ** (i % 5 - 2) for i in range(STEPS)]
    print(f"/* Written by make_average_golden.py with torch {torch.__version__.split('+')[0]}. */")
    print(f"enum {{ GOLDEN_COUNT = {COUNT}, GOLDEN_STEPS = {STEPS}, GOLDEN_DECAYS = {len(DECAYS)} }};")
    print("static const double golden_decay[GOLDEN_DECAYS] = {" + ", ".join(map(str, DECAYS)) + "};")
    print("static const float golden_p[GOLDEN_STEPS][GOLDEN_COUNT] = {")
    for p in trained:
        print("    " + row(p) + ",")
    print("};\nstatic const float golden_average[GOLDEN_DECAYS][GOLDEN_STEPS][GOLDEN_COUNT] = {")
    for decay in DECAYS:
        average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
        print("    {")
        for p in trained:
            with torch.no_grad():
                model.p.copy_(p)
            average.update_parameters(model)
            print("        " + row(average.module.p.detach()) + ",")
        print("    },")
    print("};")


if __name__ == "__main__":
    main()
