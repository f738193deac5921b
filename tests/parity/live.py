#!/usr/bin/env python3
"""Trains cases side by side, right now, in PyTorch and in tandem, with fresh seeds, and prints how far they are apart.

    live.py --tandem PATH [--seeds N] [--first-seed S] [CASE ...]      e.g. live.py mlp cnn

Exit 0 when all hold (the rule of parity_test.py), 1 when one does not, 77 with `skipped: no torch` without PyTorch.
"""
import argparse
import os
import sys
import tempfile
import time

import tandem_side

try:
    import torch
    import torch_side
except ImportError:
    print("skipped: no torch")
    sys.exit(77)

import cases

# chaotic and slow ones stay out unless named: nothing here may fail by chance
USUAL = ["toy", "mlp", "cnn", "bn_cnn", "convs", "smooth"]
WAYS = [("single", 1, ""), ("dp", 2, "strided"), ("dp", 3, "chunk"), ("ddp", 2, "")]


def one(tandem, case, way, seed):
    """(the verdict, what is wrong with the initial weights or the evaluation)"""
    reference = torch_side.reference(case, *way, seed)
    lines = cases.yaml_lines(case, *way, seed)
    with tempfile.TemporaryDirectory(prefix="parity-") as folder:
        losses, evaluation = tandem_side.metrics(tandem_side.run(tandem, lines, folder))
    with tempfile.TemporaryDirectory(prefix="parity-") as folder:
        initial = tandem_side.initial_crc32(tandem, lines, folder)
    verdict = tandem_side.Verdict(reference, losses)
    faults = [verdict.text] if verdict.text else []
    if initial != {k: v for k, v in reference["init_crc32"].items() if ".running_" not in k}:
        faults.append("initial weights differ")
    fault = tandem_side.eval_fault(reference, evaluation, verdict.limit[-1])
    return verdict, faults + ([fault] if fault else [])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--tandem", default=os.environ.get("TANDEM", "tandem"))
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("--first-seed", type=int, default=int(time.time()) % 1000000)
    p.add_argument("cases", nargs="*", metavar="CASE")
    args = p.parse_args()
    unknown = [c for c in args.cases if c not in cases.CASES]
    if unknown:
        p.error("no case %s; there are %s" % (", ".join(unknown), ", ".join(cases.CASES)))
    print("PyTorch %s; seeds from %d" % (torch.__version__, args.first_seed))
    print("%-12s %-7s %-6s %-9s %8s %12s %10s %10s" % ("case", "mode", "world", "scatter", "seed", "steps 1-10", "all", "PyTorch's"))
    bad = 0
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for case in args.cases or USUAL:
            for way in WAYS:
                verdict, faults = one(args.tandem, case, way, seed)
                print("%-12s %-7s %-6d %-9s %8d %12.1e %10.1e %10.1e" % (
                    case, *way, seed, verdict.early, verdict.most, verdict.own), flush=True)
                for fault in faults:
                    print("FAILED: " + fault, flush=True)
                bad += bool(faults)
    print("parity: %d runs off" % bad if bad else "parity: all runs hold")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
