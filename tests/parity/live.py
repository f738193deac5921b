#!/usr/bin/env python3
"""Trains cases side by side, right now, in PyTorch and in tandem, and prints how far they are apart.

    live.py --tandem PATH --driver PATH [--first-seed S] [--seeds N] [CASE ...]      e.g. live.py --seeds 10 mlp cnn

Every step by itself, tightly, as steps.py says; and the curve of 100 steps, with its initial weights and evaluation, as
parity_test.py says. What does not hold is looked at again: PyTorch is asked 64 times more how far last bits take it, so
that a tie that only tandem met is no fault. Seeds are the same in every run unless others are asked for.
Exit 0 when all hold, 1 when one does not, 77 with `skipped: no torch` without PyTorch.
"""
import argparse
import os
import sys
import tempfile

import tandem_side

try:
    import torch
    import torch_side
    import torch_steps
except ImportError:
    print("skipped: no torch for this Python; install torch for it to compare with PyTorch itself")
    sys.exit(77)

import cases

USUAL = ["toy", "mlp", "cnn", "bn_cnn", "convs", "smooth"]
STEPWISE_WAYS = [("single", 1, ""), ("dp", 2, "strided"), ("dp", 3, "chunk")]
CURVE_WAYS = [("single", 1, ""), ("ddp", 2, "")]
MORE_NUDGES = 64


def curve(tandem, case, way, seed):
    """(the verdict, what is wrong with it, the initial weights or the evaluation)"""
    reference = torch_side.reference(case, *way, seed)
    lines = cases.yaml_lines(case, *way, seed)
    with tempfile.TemporaryDirectory(prefix="parity-") as folder:
        losses, evaluation = tandem_side.metrics(tandem_side.run(tandem, lines, folder))
    with tempfile.TemporaryDirectory(prefix="parity-") as folder:
        initial = tandem_side.initial_crc32(tandem, lines, folder)
    verdict, faults = judged(reference, losses, evaluation)
    if faults:
        torch_side.widen(reference, case, *way, seed, MORE_NUDGES)
        verdict, faults = judged(reference, losses, evaluation)
    if initial != {k: v for k, v in reference["init_crc32"].items() if ".running_" not in k}:
        faults.append("initial weights differ")
    return verdict, faults


def judged(reference, losses, evaluation):
    verdict = tandem_side.Verdict(reference, losses)
    faults = [verdict.text, tandem_side.eval_fault(reference, evaluation, verdict.limit[-1])]
    return verdict, [f for f in faults if f]


def hold_steps(args, case, seed):
    bad = 0
    for way in STEPWISE_WAYS:
        report, again = torch_steps.check(args.driver, torch_steps.Maker(case, *way, seed))
        print("%-18s %6d   each step: loss %.1e, tensors %.2f of what is allowed%s" % (
            cases.name_of(case, *way), seed, report.loss, report.most, ", %d looked at again" % again if again else ""), flush=True)
        bad += tell(report.faults)
    return bad


def hold_curves(args, case, seed):
    bad = 0
    for way in CURVE_WAYS:
        verdict, faults = curve(args.tandem, case, way, seed)
        print("%-18s %6d   curve: %.1e in steps 1-10, %.1e in all; PyTorch from itself %.1e" % (
            cases.name_of(case, *way), seed, verdict.early, verdict.most, verdict.own), flush=True)
        bad += tell(faults)
    return bad


def tell(faults):
    for fault in faults[:5]:
        print("FAILED: " + fault, flush=True)
    return bool(faults)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--tandem", default=os.environ.get("TANDEM", "tandem"))
    p.add_argument("--driver", default=os.environ.get("EACH_STEP", "each_step"))
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("--first-seed", type=int, default=42)
    p.add_argument("cases", nargs="*", metavar="CASE")
    args = p.parse_args()
    unknown = [c for c in args.cases if c not in cases.CASES]
    if unknown:
        p.error("no case %s; there are %s" % (", ".join(unknown), ", ".join(cases.CASES)))
    print("PyTorch %s; seeds from %d" % (torch.__version__, args.first_seed))
    bad = 0
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for case in args.cases or USUAL:
            bad += hold_steps(args, case, seed) + hold_curves(args, case, seed)
    print("parity: %d runs off" % bad if bad else "parity: all runs hold")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
