#!/usr/bin/env python3
"""A system call about the files of a run fails, and then all from it on: saving and loading checkpoints, the run folder,
metrics. The job says what failed and ends with a code of the table, or has no need of it; what is left is whole, and
the same command, given again, ends as if nothing had happened. --long takes every call, --trials N so many of each."""
import errno
import os
import random
import re
import sys

import fault
from fault import CHECK, CHECKPOINT, DATA, IO, MEMORY, OK, Failed, want

JOB = """tandem: 1
name: calls
seed: 3
model: {input: 6, layers: [{linear: {name: fc, out: 3}}]}
data:
  train: {format: synthetic, samples: 24, classes: 3}
  eval: {format: synthetic, samples: 8, classes: 3, seed: 4}
train: {steps: 3, batch: {global: 8}}
eval: {every: 1 steps}
log: {every: 1 steps}
checkpoint: {every: 1 steps, keep_last: 2}
parallel: {kernels: ref}
"""
ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE, errno.ENOMEM)


def training(box, *more):
    return ["train", box.write("job.yaml", JOB), "--run-dir", box.path("run-0"), *more]


def lasting(box):
    """What must be there in the end, whatever happened on the way: steps are saved once, and old ones may stay."""
    names = r"checkpoints/step-00000003/.*|metrics\.jsonl|config\..*"
    return {path: value for path, value in fault.contents(box.path("run-0")).items()
            if re.fullmatch(names, os.path.relpath(path, box.path("run-0")))}


def differing(came, good):
    return [path for path in sorted(set(came) | set(good)) if came.get(path) != good.get(path)]


def prepare(box, before, change):
    run_dir = box.path("run-0")
    box.clean_runs(*[run_dir] if os.path.isdir(run_dir) else [])
    for args in before:
        box.run(OK, *args)
    if change:
        change(run_dir)


def trial(box, args, env):
    job = box.start(*args, env=dict(env, LD_PRELOAD=os.environ["FAILING_CALLS"]))
    code, _ = job.end(None, fault.RUN_SECONDS)
    return job, code


def judge(box, job, code, error, args, good, codes, goes_on):
    """What is told and what is left; then the same command without a failure."""
    want(code in codes or (code == MEMORY and error == errno.ENOMEM), "code %d", code)
    want(code != OK or not job.errors(), "code 0, but an error is told")
    if code != OK:
        want(job.errors() or job.out().strip(), "code %d without a word", code)
    elif args[0] == "train":
        want("warning: " in job.err() or lasting(box) == good[1], "not told: %s", differing(lasting(box), good[1]))
    else:
        want("unreadable" in job.out() or job.out() == good[0], "another answer: %s", job.out())
    run_dir = box.path("run-0")
    box.verify(run_dir)
    if goes_on and not re.search(r"warning: .* is skipped: ", job.err()):
        want(not os.path.exists(os.path.join(run_dir, "metrics.jsonl.cut")), "lines were cut: the run began anew")
    folder = os.path.join(run_dir, "checkpoints")
    want(not os.path.isdir(folder) or not any(name.startswith("before-") for name in os.listdir(folder)), "moved away")
    if args[0] != "train":
        return
    box.run(OK, *args)
    came, wanted = lasting(box), dict(good[1])
    lines = os.path.join(run_dir, "metrics.jsonl")
    if re.search(r"warning: .*metrics\.jsonl(: .*training continues| could not be written)", job.err()):
        want(came[lines] == wanted[lines][:len(came[lines])], "told that lines are lost, but others are")
        del came[lines], wanted[lines]
    want(came == wanted, "given again: other files: %s", differing(came, wanted))
    want(not [top for top, _, names in os.walk(run_dir) if any(".tmp-" in name for name in names)], "names are left")


def sweep(box, place, args, before=(), change=None, codes=(OK, IO, CHECKPOINT), goes_on=False, few=24):
    where = {"CALL_UNDER": os.path.join(box.path("run-0"), place).rstrip("/")}
    count_file = box.path("count")
    prepare(box, before, change)
    job, code = trial(box, args, dict(where, CALL_COUNT=count_file))
    want(code == OK, "status %d without a failure\n%s", code, job.tail())
    good = job.out(), lasting(box)
    with open(count_file, "rb") as f:
        count = int.from_bytes(f.read(), "little")
    trials = box.options.trials or (10 ** 9 if box.options.long else few)
    drawn = random.Random("%s/%s/%s" % (box.options.seed, box.name, place))
    ks = [("CALL_AT", k, error) for k in range(1, count + 1) for error in (*ERRORS, errno.EINTR)]
    ks += [("CALL_FROM", k, error) for k in range(1, count + 1) for error in ERRORS]
    if trials < len(ks):
        ks = drawn.sample(ks, trials)
    elif box.options.trials:
        ks += [drawn.choice(ks) for _ in range(trials - len(ks))]
    seen, faults = {}, []
    for variable, k, error in ks:
        prepare(box, before, change)
        job, code = trial(box, args, dict(where, CALL_ERROR=str(error), **{variable: str(k)}))
        seen[code] = seen.get(code, 0) + 1
        try:
            judge(box, job, code, error, args, good, codes, goes_on)
        except Failed as why:
            faults.append("%s=%d of %d, %s: %s\n%s" % (variable, k, count, os.strerror(error), why, job.tail(5)))
    box.note("%s: %d calls, %d trials; codes: %s", place or "all", count, len(ks),
             ", ".join("%d: %d times" % pair for pair in sorted(seen.items())))
    want(not faults, "%d wrong of %d\n%s", len(faults), len(ks), "\n".join(faults[:8]))


def saving(box):
    sweep(box, "checkpoints", training(box))


def loading(box):
    begun = [training(box, "--steps", "2")]
    sweep(box, "checkpoints", training(box), before=begun, goes_on=True)
    sweep(box, "checkpoints", ["ckpt", "verify", box.path("run-0")], before=begun, codes=(OK, IO, CHECKPOINT, CHECK), few=8)
    sweep(box, "checkpoints", ["ckpt", "ls", box.path("run-0")], before=begun, codes=(OK, IO, CHECKPOINT), few=8)


def run_folder(box):
    sweep(box, "", training(box))
    sweep(box, "", training(box), before=[training(box, "--steps", "2")], goes_on=True)
    sweep(box, "", training(box, "--mode", "ddp", "parallel.device_ids=[0, 1]"), few=8)


def torn(run_dir):
    """A line that was altered, one of a step to come, and one that a crash cut off."""
    with open(os.path.join(run_dir, "metrics.jsonl"), "r+") as f:
        lines = f.read().splitlines(True)
        f.seek(0)
        f.write('{"kind":"tr\n' + "".join(lines) + '{"kind":"train","step":9}\n{"kind":"tra')


def metrics(box):
    sweep(box, "metrics.jsonl", training(box))
    sweep(box, "metrics.jsonl", training(box), before=[training(box, "--steps", "2")], change=torn)


if "FAILING_CALLS" not in os.environ:
    print("$FAILING_CALLS must name the library that is preloaded (tests/fault/failing_calls.c)")
    sys.exit(77)
fault.main(saving, loading, run_folder, metrics)
