#!/usr/bin/env python3
"""Every step on its own: from PyTorch's state before step k (weights, buffers, moments) one step of tandem against one
of PyTorch's, with float64 as the judge.

    steps.py --driver PATH [--kernels auto|ref] [NAME ...]      from fixtures/steps/*.json; needs no PyTorch
    steps.py --self-test                                        the comparison itself must notice what is a little wrong

A curve of many steps is chaotic: one relu that falls to the other side decides it. A single step is not, so it is held
tightly. For the loss: within 1e-6 of float64's. For each tensor behind the step: its distance from float64's (the root
of the sum of squares) is at most 3 times the largest of 1e-6 of what that tensor is made of, one rounding of its
numbers, and the distance of PyTorch's own float32 steps from float64's: on its other CPU kernels, and from weights that
differ in their last bits, which is where ties fall to the other side.
"""
import argparse
import array
import base64
import glob
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

import tandem_side

HERE = os.path.dirname(os.path.abspath(__file__))
LOSS = 1e-6
FACTOR = 3


class Step:
    """The state before a step; what float64 makes of it (loss, tensors rounded to float32) and, for each tensor, how far
    from that PyTorch's own float32 gets."""

    def __init__(self, before, loss, after, own):
        self.before, self.loss, self.after, self.own = before, loss, after, own


class Trajectory:
    def __init__(self, yaml, tensors, steps):
        self.yaml = yaml        # lines
        self.tensors = tensors  # [name, bytes, "f32" or "i64"], as each_step.c has them
        self.steps = steps


def distance(a, b):
    return math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(array.array("f", a), array.array("f", b))))


def parts_of(tensors, data):
    at = 0
    for name, count, dtype in tensors:
        yield name, dtype, data[at:at + count]
        at += count


def take_steps(driver, yaml, states, extra=()):
    """What the driver makes of the states: [(loss, state behind the step)]."""
    with tempfile.TemporaryDirectory(prefix="steps-") as folder:
        paths = [os.path.join(folder, name) for name in ("job.yaml", "states", "results")]
        with open(paths[0], "w") as f:
            f.write("\n".join(yaml) + "\n")
        with open(paths[1], "wb") as f:
            f.write(b"".join(states))
        done = subprocess.run([driver, *paths, *extra], stderr=subprocess.PIPE, text=True, timeout=600)
        if done.returncode != 0:
            raise tandem_side.Failed("each_step ended with %d: %s" % (done.returncode, done.stderr.strip()[-1000:]))
        with open(paths[2], "rb") as f:
            data = f.read()
    size = 8 + len(states[0])
    if len(data) != size * len(states):
        raise tandem_side.Failed("each_step left %d bytes, not %d" % (len(data), size * len(states)))
    return [(struct.unpack("<d", data[i:i + 8])[0], data[i + 8:i + size]) for i in range(0, len(data), size)]


class Report:
    """The largest distance of any tensor in units of what is allowed (1 is the limit), of the loss, and the faults."""

    def __init__(self):
        self.most = self.loss = 0.0
        self.faults = []

    def compare(self, trajectory, k, came, distance=distance):
        step, (loss, after) = trajectory.steps[k], came
        off = abs(loss - step.loss) / abs(step.loss)
        self.loss = max(self.loss, off)
        if not off <= LOSS:
            self.faults.append("step %d: loss %.9g, float64's is %.9g: off by %.1e" % (k + 1, loss, step.loss, off))
        both = zip(parts_of(trajectory.tensors, after), parts_of(trajectory.tensors, step.after), step.own)
        for (name, dtype, got), (_, _, want), own in both:
            if dtype == "i64":
                if got != want:
                    self.faults.append("step %d: %s differs" % (k + 1, name))
                continue
            units = distance(got, want) / (FACTOR * own)
            self.most = max(self.most, units)
            if not units <= 1:
                self.faults.append("step %d: %s is %.1e from float64's, %.1e allowed" % (
                    k + 1, name, units * FACTOR * own, FACTOR * own))


def load(path):
    with open(path) as f:
        made = json.load(f)
    steps = [Step(base64.b64decode(s["before"]), s["loss"], base64.b64decode(s["after"]), s["own"]) for s in made["steps"]]
    return Trajectory(made["yaml"], made["tensors"], steps)


def fixtures(names):
    paths = sorted(glob.glob(os.path.join(HERE, "fixtures", "steps", "*.json")))
    out = {os.path.splitext(os.path.basename(p))[0]: p for p in paths}
    chosen = {name: load(path) for name, path in out.items() if not names or name in names}
    if not chosen:
        raise SystemExit("steps: no fixture of this name")
    return chosen


def check(driver, trajectory, kernels="auto"):
    report = Report()
    came = take_steps(driver, trajectory.yaml, [s.before for s in trajectory.steps], ["parallel.kernels=" + kernels])
    for k, result in enumerate(came):
        report.compare(trajectory, k, result)
    return report


def check_all(driver, kernels, names):
    bad = 0
    print("%-22s %6s %12s %22s" % ("fixture", "steps", "loss off by", "tensors, of what is allowed"))
    for name, trajectory in fixtures(names).items():
        report = check(driver, trajectory, kernels)
        print("%-22s %6d %12.1e %22.2f" % (name, len(trajectory.steps), report.loss, report.most), flush=True)
        for fault in report.faults[:5]:
            print("FAILED %s: %s" % (name, fault), flush=True)
        bad += bool(report.faults)
    print("steps: %d fixtures off" % bad if bad else "steps: all hold")
    return 1 if bad else 0


def changed(trajectory, step, index, by):
    """The state that float64 left, with the first number of one tensor moved by that many allowed distances."""
    out = []
    for i, (name, dtype, data) in enumerate(parts_of(trajectory.tensors, step.after)):
        if i == index:
            numbers = array.array("f", data)
            numbers[0] += by * FACTOR * step.own[index]
            data = numbers.tobytes()
        out.append(data)
    return b"".join(out)


def self_test():
    for name, trajectory in fixtures([]).items():
        for k in (0, len(trajectory.steps) - 1):
            step = trajectory.steps[k]
            report = Report()
            report.compare(trajectory, k, (step.loss, step.after))
            assert not report.faults and report.most == 0, name
            report.compare(trajectory, k, (step.loss * (1 + 1.1 * LOSS), step.after))
            assert len(report.faults) == 1, name
            for i, (tensor, _, dtype) in enumerate(trajectory.tensors):
                if dtype == "i64":
                    continue
                for by, wrong in ((0.7, 0), (1.4, 1)):
                    report = Report()
                    report.compare(trajectory, k, (step.loss, changed(trajectory, step, i, by)))
                    assert len(report.faults) == wrong, (name, k, tensor, by)
        report = Report()
        report.compare(trajectory, 0, (math.nan, trajectory.steps[0].after))
        assert report.faults, name
    print("steps self-test: the comparison notices what it should")
    return 0


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--driver", default=os.environ.get("EACH_STEP", "each_step"))
    p.add_argument("--kernels", choices=["auto", "ref"], default="auto")
    p.add_argument("--self-test", action="store_true")
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    return self_test() if args.self_test else check_all(args.driver, args.kernels, args.names)


if __name__ == "__main__":
    sys.exit(main())
