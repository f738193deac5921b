#!/usr/bin/env python3
"""Compares the TensorBoard files of a run directory, read by TensorBoard itself, with metrics.jsonl.

Needs the package tensorboard. Usage: tensorboard_oracle.py RUN-DIR
"""
import json
import os
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

KEYS = {"train": ("loss", "lr", "samples_per_s", "grad_norm"), "eval": ("loss", "accuracy", "top5")}
ROUNDED = {"samples_per_s": 0.06}  # metrics.jsonl has one digit behind the point


def narrow(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def wanted(path):
    out = {}
    with open(path) as lines:
        for row in map(json.loads, lines):
            for key in KEYS[row["kind"]]:
                if row.get(key) is not None:
                    out.setdefault("%s/%s" % (row["kind"], key), []).append((row["step"], row[key]))
    return out


def main(run_dir):
    found = EventAccumulator(os.path.join(run_dir, "tensorboard"), size_guidance={"scalars": 0})
    found.Reload()
    want = wanted(os.path.join(run_dir, "metrics.jsonl"))
    assert sorted(found.Tags()["scalars"]) == sorted(want), (found.Tags()["scalars"], sorted(want))
    points = 0
    for tag, rows in want.items():
        came = [(event.step, event.value) for event in found.Scalars(tag)]
        assert [step for step, _ in came] == [step for step, _ in rows], (tag, came, rows)
        slack = ROUNDED.get(tag.split("/")[1], 0)
        for (step, value), (_, number) in zip(came, rows):
            assert value == narrow(number) or abs(value - number) <= slack, (tag, step, value, number)
            points += 1
    print("%d points of %d curves are equal" % (points, len(want)))


if __name__ == "__main__":
    main(*sys.argv[1:])
