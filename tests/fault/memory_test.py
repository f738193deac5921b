#!/usr/bin/env python3
"""The k-th request for memory of each process fails, and then all from the k-th on: status 6 with a text, or, where the
request was not needed, the same result as without a failure. With oneDNN's kernels a library may end the process, as
runtime/docs/modules.md says; such ends are counted, and another answer is a fault there too. --long takes every k,
--trials N so many of each test."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
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
PICTURES = """tandem: 1
name: pictures
seed: 3
model: {input: [3, 16, 16], layers: [{conv2d: {name: conv, out: 2, kernel: 3}}, relu, flatten, {linear: {name: fc, out: 10}}]}
data:
  train: {format: image_folder, path: digits, holdout: 0.25}
  eval: {format: image_folder, path: digits, holdout: 0.25}
  transform: [{random_resized_crop: {size: 16}}, {random_rotation: 10}, to_float, {normalize: {mean: [0.5], std: [0.5]}}]
train: {steps: 4, batch: {global: 4}, ema: {decay: 0.9}}
checkpoint: {every: 1 steps, keep_best: loss, keep_last: 2}
parallel: {kernels: ref}
"""
AUTO = JOB.replace("kernels: ref", "kernels: auto")
TWO = "parallel.device_ids=[0, 1]"


def result(job, run_dir):
    """What must not differ: what is printed, of a training without times, and the files."""
    text = job.out()
    kept = re.findall(r"^  (?:params_xxh3|loss|accuracy|steps|largest|equal|not equal)(?!, ms).*", text, re.M)
    return [" ".join(line.split()) for line in kept] or text, fault.contents(run_dir)


def difference(a, b):
    if a[0] != b[0]:
        return "other words: %s, without a failure %s" % (a[0], b[0])
    return "other files: %s" % [path for path in sorted(set(a[1]) | set(b[1])) if a[1].get(path, 0) != b[1].get(path, 0)]


def trial(box, args, env):
    job = box.start(*args, env=dict(env, LD_PRELOAD=os.environ["FAILING_MEMORY"]))
    code, _ = job.end(None, fault.RUN_SECONDS)
    return job, code


def wrong(box, job, code, run_dir, good):
    """What is wrong with an answer, or nothing."""
    if code == OK:
        words, files = result(job, run_dir)
        if "old checkpoints cannot be removed" in job.err(): # they stay, and it is told
            files = {path: of for path, of in files.items() if path in good[1] or "/checkpoints/step-" not in path}
        return "" if (words, files) == good else difference((words, files), good)
    if code != MEMORY or not job.err().strip():
        return "status %d" % code
    path = os.path.join(run_dir, "status.json")
    if os.path.exists(path):
        with open(path) as f:
            status = json.load(f)
        if status["state"] == "running":
            return "nobody runs, and status.json says %s" % status
    try:
        for folder in (run_dir, os.path.join(run_dir, "single"), os.path.join(run_dir, "dp")):
            box.verify(folder)
    except fault.Failed as why:
        return str(why)
    return ""


def ended_by_library(job, code):
    """One of the ends that runtime/docs/modules.md lists: where oneDNN or a library's start gets no memory."""
    return code in (128 + signal.SIGSEGV, 128 + signal.SIGABRT) or code == 127 and "memory" in job.err() \
        or code == 1 and "libgomp: Out of memory" in job.err()


def clean(box, run_dir):
    box.clean_runs(*[run_dir] if os.path.isdir(run_dir) else [])


def sweep(box, *args, before=None, library=False):
    run_dir = box.path("run-0")

    def prepare():
        clean(box, run_dir)
        if before:
            box.run(OK, *before)

    prepare()
    count_file = box.path("count")
    if os.path.exists(count_file): # of the sweep before: the file keeps the largest number
        os.unlink(count_file)
    job, code = trial(box, args, {"FAIL_COUNT": count_file})
    want(code == OK, "status %d without a failure\n%s", code, job.tail())
    good = result(job, run_dir)
    with open(count_file, "rb") as f:
        count = int.from_bytes(f.read(), "little")
    if library: # behind these oneDNN makes code, in ten thousands of requests that are all alike
        count = min(count, 4000)
    trials = box.options.trials or (2 * count if box.options.long else 24)
    ks = range(1, count + 1)
    if trials < 2 * count: # spread over all, from one seed: the same ones each time
        ks = sorted({1 + (2 * i * count + box.options.seed * count // 3) // trials % count for i in range(trials // 2)})
    codes, faults = {}, []
    for variable in ("FAIL_AT", "FAIL_FROM"):
        for k in ks:
            prepare()
            job, code = trial(box, args, {variable: str(k)})
            codes[code] = codes.get(code, 0) + 1
            why = wrong(box, job, code, run_dir, good)
            if why and not (library and ended_by_library(job, code)):
                faults.append("%s=%d of %d: %s\n%s" % (variable, k, count, why, job.tail(4)))
    box.note("%d requests; codes: %s", count, ", ".join("%d: %d times" % pair for pair in sorted(codes.items())))
    want(not faults, "%d wrong answers of %d\n%s", len(faults), 2 * len(ks), "\n".join(faults[:6]))


def check(box):
    sweep(box, "check", box.write("job.yaml", JOB))


def plan(box):
    sweep(box, "plan", box.write("job.yaml", JOB))


def training(box, *more):
    return ["train", box.write("job.yaml", JOB), "--run-dir", box.path("run-0"), *more]


def train(box):
    sweep(box, *training(box))


def plan_auto(box):
    sweep(box, "plan", box.write("job.yaml", AUTO), library=True)


def train_auto(box):
    sweep(box, "train", box.write("job.yaml", AUTO), "--run-dir", box.path("run-0"), library=True)


def addresses(box):
    """Too few addresses for a module of kernels, or for oneDNN at work: no other kernels are taken in their place."""
    job = box.write("job.yaml", AUTO)
    for mode, more in (("single", ()), ("ddp", (TWO,))):
        args = ("train", job, "--run-dir", box.path("run-0"), "--mode", mode, *more)
        good = result(box.run(OK, *args), box.path("run-0"))
        codes = []
        for size in range(30, 430, 10 if box.options.long else 50):
            def little(size=size):
                resource.setrlimit(resource.RLIMIT_AS, (size << 20, size << 20))

            clean(box, box.path("run-0"))
            limited = box.start(*args, limits=little)
            code, _ = limited.end(None, fault.RUN_SECONDS)
            codes.append(code)
            why = wrong(box, limited, code, box.path("run-0"), good)
            want(not why or ended_by_library(limited, code), "%s, %d MiB: %s\n%s", mode, size, why, limited.tail(4))
        box.note("%s: %s", mode, codes)
        clean(box, box.path("run-0"))


def unusable_kernels(box):
    """A module that is there but cannot be loaded is told, for without it bits may be others; an absent one is not."""
    folder = os.path.dirname(os.path.dirname(box.tandem))
    for name in ("bin", "lib"):
        shutil.copytree(os.path.join(folder, name), box.path("copy", name), symlinks=True)
    module = box.path("copy", "lib", "tandem", "libtandem-dnnl.so")
    job = box.write("job.yaml", AUTO)

    def told(*args):
        done = subprocess.run([box.path("copy", "bin", "tandem"), *args], capture_output=True, text=True, check=False,
                              env=fault.environment("", {"TANDEM_MODULE_PATH": ""}))
        want(done.returncode == OK, "status %d: %s", done.returncode, done.stderr)
        clean(box, box.path("run-0"))
        return (done.stdout + done.stderr).splitlines()

    os.makedirs(os.path.dirname(module), exist_ok=True)
    with open(module, "w") as f:
        f.write("no shared object")
    commands = {"note: ": ("plan", job), "warning: ": ("train", job, "--run-dir", box.path("run-0"))}
    for word, args in commands.items():
        lines = [line for line in told(*args) if "file too short" in line]
        want(len(lines) == 1 and word in lines[0], "%s: %s", args[0], lines)
    os.unlink(module)
    for args in commands.values():
        lines = [line for line in told(*args) if "libtandem-dnnl" in line]
        want(not lines, "%s: %s", args[0], lines)


def train_dp(box):
    sweep(box, *training(box, TWO, "--mode", "dp"))


def train_ddp(box):
    sweep(box, *training(box, TWO, "--mode", "ddp"))


def resume(box):
    sweep(box, *training(box, "--steps", "3"), before=training(box))


def report(box):
    sweep(box, "report", box.path("run-0"), before=training(box))


def page(box):
    """Every request: a page is whole, to the byte, or is not written."""
    run_dir = box.path("run-0")
    path, count_file = os.path.join(run_dir, "report.html"), box.path("count")
    box.run(OK, *training(box))
    trial(box, ["report", run_dir], {"FAIL_COUNT": count_file})
    with open(path, "rb") as f:
        good = f.read()
    with open(count_file, "rb") as f:
        count = int.from_bytes(f.read(), "little")
    for k in range(1, count + 1):
        job, code = trial(box, ["report", run_dir], {"FAIL_AT": str(k)})
        want(code in (OK, MEMORY), "FAIL_AT=%d of %d: status %d\n%s", k, count, code, job.tail())
        with open(path, "rb") as f:
            want(f.read() == good, "FAIL_AT=%d of %d: another page, with status %d", k, count, code)
    box.note("%d requests", count)
    box.clean_runs(run_dir)


def checkpoints(box):
    for verb in (["ls"], ["show"], ["verify"], ["diff", box.path("run-0")]):
        sweep(box, "ckpt", *verb, box.path("run-0"), before=training(box))


def inference(box):
    for args in (["predict", box.path("run-0")], ["eval", box.path("run-0")], ["data", "check", box.write("job.yaml", JOB)]):
        sweep(box, *args, before=training(box))


def compare(box):
    sweep(box, "compare", box.write("job.yaml", JOB), TWO, "--modes", "single,dp", "--out", box.path("run-0"))


def pictures(box):
    """Short memory in a decoder, or where a folder is listed, is not a bad picture, nor an empty folder."""
    fault.make_digits(box)
    job, run_dir = box.write("pictures.yaml", PICTURES), box.path("run-0")
    before = ["train", job, "--run-dir", run_dir]
    sweep(box, *before)
    sweep(box, *before, TWO, "--mode", "ddp")
    sweep(box, "data", "check", job, "--sheet", os.path.join(run_dir, "sheet.png"), before=before)
    sweep(box, "report", run_dir, before=before)
    sweep(box, "predict", run_dir, box.path("digits", "one"), "--out", os.path.join(run_dir, "rows.csv"), before=before)
    sweep(box, "init", "--task", "images", "--data", box.path("digits"), "--out", os.path.join(run_dir, "my.yaml"), before=before)


def convert(box):
    run_dir = box.path("run-0")
    box.run(OK, *training(box))
    box.run(OK, "ckpt", "convert", run_dir, box.path("one.pt"))
    sweep(box, "ckpt", "convert", run_dir, os.path.join(run_dir, "two.pt"), before=training(box))
    sweep(box, "ckpt", "convert", box.path("one.pt"), os.path.join(run_dir, "one.safetensors"), before=training(box))
    sweep(box, *training(box, "model.weights=" + box.path("one.pt")))
    deflated = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../ckpt/torch/deflated.pt")
    sweep(box, "ckpt", "convert", deflated, os.path.join(run_dir, "deflated.safetensors"), before=training(box))


if "FAILING_MEMORY" not in os.environ:
    print("$FAILING_MEMORY must name the library that is preloaded (tests/fault/failing_memory.c)")
    sys.exit(77)
fault.main(check, plan, plan_auto, train, train_auto, addresses, unusable_kernels, train_dp, train_ddp, resume, report, page, checkpoints, inference, compare,
           pictures, convert)
