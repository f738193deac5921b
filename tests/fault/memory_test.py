#!/usr/bin/env python3
"""The k-th request for memory of each process fails, and then all from the k-th on: status 6 with a text, or, where the
request was not needed, the same result as without a failure. --long takes every k, --trials N so many of each verb."""
import os
import re
import sys

import fault
from fault import MEMORY, OK, want

JOB = """tandem: 1
name: memory
seed: 3
model: {input: [1, 8, 8], layers: [{conv2d: {name: conv, out: 2, kernel: 3}}, relu, flatten, {linear: {name: fc, out: 3}}]}
data:
  train: {format: synthetic, samples: 24, classes: 3}
  eval: {format: synthetic, samples: 8, classes: 3, seed: 4}
train: {steps: 2, batch: {global: 8}}
checkpoint: {every: 1 steps}
parallel: {kernels: ref}
"""


def result(job, run_dir):
    """What must not differ: everything printed; of a training, what is no time: steps, losses, parameters."""
    text = job.out().replace(run_dir, "RUN") if run_dir else job.out()
    kept = re.findall(r"^  (?:params_xxh3|loss|accuracy|steps|largest|equal|not equal).*", text, re.M)
    return [" ".join(line.split()) for line in kept] or text


def trial(box, args, run_dir, env):
    job = box.start(*[a.replace("RUN", run_dir) for a in args], env=dict(env, LD_PRELOAD=os.environ["FAILING_MEMORY"]))
    code, _ = job.end(None, fault.RUN_SECONDS)
    return job, code


def sweep(box, *args, before=None):
    def prepared():
        run_dir = box.new_dir()
        if before:
            box.run(OK, *[a.replace("RUN", run_dir) for a in before])
        return run_dir

    count_file, run_dir = box.path("count"), prepared()
    job, code = trial(box, args, run_dir, {"FAIL_COUNT": count_file})
    want(code == OK, "status %d without a failure\n%s", code, job.tail())
    good = result(job, run_dir)
    with open(count_file) as f:
        count = int(f.read())
    ks = range(1, count + 1)
    trials = box.options.trials or (count if box.options.long else 24)
    if trials < count: # spread over all, from one seed: the same ones each time
        ks = sorted({1 + (i * count + count // 3) // trials for i in range(trials)})
    codes, faults = {}, []
    for variable in ("FAIL_AT", "FAIL_FROM"):
        for k in ks:
            run_dir = prepared()
            job, code = trial(box, args, run_dir, {variable: str(k)})
            codes[code] = codes.get(code, 0) + 1
            same = code == OK and result(job, run_dir) == good
            if not same and (code != MEMORY or not job.err().strip()):
                faults.append("%s=%d of %d: status %d\n%s" % (variable, k, count, code, job.tail(4)))
            box.clean_runs(*[run_dir] if os.path.isdir(run_dir) else [])
    box.note("%d requests; codes: %s", count, ", ".join("%d: %d times" % pair for pair in sorted(codes.items())))
    want(not faults, "%d wrong answers of %d\n%s", len(faults), 2 * len(ks), "\n".join(faults[:6]))


def check(box):
    sweep(box, "check", box.write("job.yaml", JOB))


def plan(box):
    sweep(box, "plan", box.write("job.yaml", JOB))


def train(box):
    sweep(box, "train", box.write("job.yaml", JOB), "--run-dir", "RUN")


def report(box):
    job = box.write("job.yaml", JOB)
    sweep(box, "report", "RUN", before=("train", job, "--run-dir", "RUN"))


if "FAILING_MEMORY" not in os.environ:
    print("$FAILING_MEMORY must name the library that is preloaded (tests/fault/failing_memory.c)")
    sys.exit(77)
fault.main(check, plan, train, report)
