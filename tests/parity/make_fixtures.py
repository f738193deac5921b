#!/usr/bin/env python3
"""Trains every case in PyTorch and writes what came out: fixtures/NAME.json for parity_test.py.

    make_fixtures.py              writes all of them
    make_fixtures.py --bf16       writes those of train.precision: bf16 alone
    make_fixtures.py --networks   writes those of model.builtin alone
    make_fixtures.py --steps      writes those of steps.py alone
    make_fixtures.py --real-ddp   holds the ddp that torch_side.py plays against DistributedDataParallel over gloo

Needs torch (2.1 or later, for Adam's first moment). Each file: the job as tandem's YAML, the loss of each of 100 steps, how far
PyTorch is by then from itself (on its other CPU kernels, in float64, from weights that differ in their last bits), the
CRC-32 of each initial tensor, and loss and accuracy on another split at the end.
"""
import argparse
import base64
import json
import os
import sys
import tempfile

import torch

import cases
import torch_side
import torch_steps

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 42


def nine(value):
    return None if value is None else float("%.9g" % value)


def three(value):
    return float("%.3g" % value)


def fixture(case, mode, world, scatter, seed, run=None, steps=cases.STEPS):
    run = run or torch_side.reference(case, mode, world, scatter, seed)
    out = {"torch": torch.__version__, "yaml": cases.yaml_lines(case, mode, world, scatter, seed, steps),
           "losses": [nine(v) for v in run["losses"]], "self_divergence": [three(v) for v in run["self_divergence"]]}
    if "within" in cases.CASES[case]:
        out["within"] = cases.CASES[case]["within"]
    if "eval_loss" in run:
        out.update(eval_loss=nine(run["eval_loss"]), eval_self_divergence=three(run["eval_self_divergence"]),
                   accuracy=nine(run["accuracy"]))
    return dict(out, init_crc32=run["init_crc32"])


def dump(value):
    """JSON with one member a line, lists of numbers in one line, one text or step a line."""
    def member(v):
        if isinstance(v, list) and v and isinstance(v[0], (str, dict)):
            return "[\n  " + ",\n  ".join(json.dumps(s) for s in v) + "]"
        return json.dumps(v)
    return "{" + ",\n ".join("%s: %s" % (json.dumps(k), member(v)) for k, v in value.items()) + "}\n"


def write_all(names):
    os.makedirs(os.path.join(HERE, "fixtures"), exist_ok=True)
    for case, ways in cases.FIXTURES.items():
        for mode, world, scatter in ways:
            name = cases.name_of(case, mode, world, scatter)
            if names and name not in names:
                continue
            made = fixture(case, mode, world, scatter, SEED)
            with open(os.path.join(HERE, "fixtures", name + ".json"), "w") as f:
                f.write(dump(made))
            print("%-18s loss %.6f -> %.6f  from itself %.1e, eval %.1e" % (
                name, made["losses"][0], made["losses"][-1], max(made["self_divergence"]),
                made.get("eval_self_divergence", float("nan"))), flush=True)


def write_bf16():
    """Beside what they should be in bf16: how far PyTorch's autocast is from its own float."""
    os.makedirs(os.path.join(HERE, "fixtures", "bf16"), exist_ok=True)
    for case in cases.BF16:
        made = fixture(case, "single", 1, "", SEED, torch_side.reference_bf16(case, SEED), cases.BF16_STEPS)
        made["rounding"] = 2.0 ** -8
        made["accuracy"] = None  # of labels drawn at random, outputs of 8 bits are often equal
        with open(os.path.join(HERE, "fixtures", "bf16", case + ".json"), "w") as f:
            f.write(dump(made))
        print("%-18s loss %.6f -> %.6f  from float %.1e" % (
            case + " bf16", made["losses"][0], made["losses"][-1], max(made["self_divergence"])), flush=True)


def write_networks(names):
    """Short curves of large networks."""
    os.makedirs(os.path.join(HERE, "fixtures", "networks"), exist_ok=True)
    for case, ways in cases.NETWORKS.items():
        for way in ways:
            name, steps = cases.name_of(case, *way), cases.NETWORK_STEPS
            if names and name not in names:
                continue
            made = fixture(case, *way, SEED, torch_side.reference(case, *way, SEED, steps), steps)
            with open(os.path.join(HERE, "fixtures", "networks", name + ".json"), "w") as f:
                f.write(dump(made))
            print("%-18s loss %.6f -> %.6f  from itself %.1e" % (
                name, made["losses"][0], made["losses"][-1], max(made["self_divergence"])), flush=True)


def write_steps():
    """A state before every step, what float64 makes of it, and how far from that float32 gets in 33 ways."""
    os.makedirs(os.path.join(HERE, "fixtures", "steps"), exist_ok=True)
    for case, ways in cases.STEPWISE.items():
        for way in ways:
            made = torch_steps.Maker(case, *way, SEED, cases.STEPS_HELD).trajectory(nudges=32)
            held = [dict(before=text(s.before), loss=s.loss, after=text(s.after), own=[three(v) for v in s.own])
                    for s in made.steps]
            with open(os.path.join(HERE, "fixtures", "steps", cases.name_of(case, *way) + ".json"), "w") as f:
                f.write(dump({"torch": torch.__version__, "yaml": made.yaml, "tensors": made.tensors, "steps": held}))
            print("%-18s %d steps of %d bytes" % (cases.name_of(case, *way), len(held), len(made.steps[0].before)), flush=True)


def text(data):
    return base64.b64encode(data).decode()


def hold_against_real_ddp():
    worst = 0.0
    for n, (case, world) in enumerate([("mlp", 1), ("mlp", 3), ("bn_cnn", 2), ("residual", 2), ("smooth", 2)]):
        played = torch_side.train(case, "ddp", world, "", SEED, 30)["losses"]
        with tempfile.TemporaryDirectory() as folder:
            real = torch_side.real_ddp(case, world, SEED, 30, 29611 + n, folder)
        most = max(torch_side.relative(a, b) for a, b in zip(real, played))
        worst = max(worst, most)
        print("%-10s %d ranks: played and real ddp differ by at most %.1e" % (case, world, most), flush=True)
    return 0 if worst <= 1e-5 else 1


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--real-ddp", action="store_true")
    p.add_argument("--bf16", action="store_true")
    p.add_argument("--steps", action="store_true")
    p.add_argument("--networks", action="store_true")
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    if args.real_ddp:
        return hold_against_real_ddp()
    is_all = not (args.bf16 or args.steps or args.networks)
    if is_all:
        write_all(args.names)
    if args.bf16 or is_all:
        write_bf16()
    if args.steps or is_all:
        write_steps()
    if args.networks or is_all:
        write_networks(args.names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
