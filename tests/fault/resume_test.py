#!/usr/bin/env python3
"""Damaged checkpoints are passed over by name, wrong ones refused by name, and numbers that are none end the run with
the last good checkpoint intact."""
import json
import os
import shutil

import fault
from fault import CHECKPOINT, NUMERIC, OK, Failed, want

FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "MANIFEST.json", "config.resolved.yaml")


def half_way(box):
    """A run of 24 of its 48 steps, to be copied for each trial."""
    run_dir = box.path("half")
    if not os.path.isdir(run_dir):
        box.run(OK, *box.arguments("ddp", 2, run_dir, "train.steps=24"))
        want(fault.steps_of(run_dir) == [16, 20, 24], "checkpoints %s", fault.steps_of(run_dir))
    copy = box.new_dir()
    shutil.copytree(run_dir, copy)
    return copy


def goes_on(box, run_dir, mode="ddp", world=2):
    job = box.run(OK, *box.arguments(mode, world, run_dir))
    want(fault.summary(run_dir)["params_xxh3"] == box.golden(mode, world)[0], "other bits than without damage")
    return job


def one_bit(box):
    """F59: any bit of any file of the newest. The file, and the tensor if it is in one, are named."""
    n = box.trials(8, 400)
    for _ in range(n):
        run_dir = half_way(box)
        name = box.random.choice(FILES)
        path = os.path.join(fault.checkpoint(run_dir, 24), name)
        bit = box.random.randrange(os.path.getsize(path) * 8)
        fault.flip_bit(path, bit)
        try:
            verify = box.run(fault.CHECK, "ckpt", "verify", run_dir)
            want(name in verify.out() + verify.err(), "ckpt verify does not name %s:\n%s", name, verify.tail())
            job = goes_on(box, run_dir)
            line = [line for line in job.err().splitlines() if "warning" in line]
            want(line and "step-00000024" in line[0] and name in line[0], "no warning that names %s:\n%s", name, job.tail(60))
            want("step 21/48" in job.err() and "step 20/48" not in job.err(), "it did not go on from step 20")
        except Failed as why:
            raise Failed("bit %d of %s: %s" % (bit, name, why))
        box.clean_runs(run_dir)
    box.note("one bit flipped: %d of %d noticed and passed over", n, n)


def any_bit(box):
    """Any bit of any file of checkpoints of every mode, with and without optimizer state: `ckpt verify` names the file,
    and after the bit is put right there is nothing to say."""
    n, named = box.trials(16, 20000), 0
    makings = [(mode, world, kind) for mode, world in (("single", 1), ("dp", 2), ("ddp", 2)) for kind in ("adam", "sgd")]
    for i, (mode, world, kind) in enumerate(makings):
        run_dir = box.path("bits-%s-%s" % (mode, kind)) # what is cleaned after each trial is not this
        plain = ("optimizer={type: sgd, lr: 0.01}",) if kind == "sgd" else ()
        box.run(OK, *box.arguments(mode, world, run_dir, "train.steps=4", *plain))
        step = fault.checkpoint(run_dir, 4)
        for _ in range(i, n, len(makings)):
            name = box.random.choice(FILES)
            path = os.path.join(step, name)
            bit = box.random.randrange(os.path.getsize(path) * 8)
            fault.flip_bit(path, bit)
            try:
                job = box.run((fault.CHECK, CHECKPOINT), "ckpt", "verify", step)
                named += name in job.out() + job.err()
                want("step-00000004" in job.out() + job.err(), "the folder is not named:\n%s", job.tail())
            except Failed as why:
                raise Failed("%s with %s: bit %d of %s: %s" % (mode, kind, bit, name, why))
            fault.flip_bit(path, bit)
            box.clean()
        box.run(OK, "ckpt", "verify", step)
        box.clean_runs(run_dir)
    box.note("one bit flipped in checkpoints of %d kinds: %d of %d found, %d by the file's own name", len(makings), n, n, named)


def a_tensor(box):
    """Damage in the data of a tensor names that tensor."""
    for name, tensor in (("model.safetensors", "fc2.weight"), ("optimizer.safetensors", "exp_avg_sq.fc1.bias")):
        run_dir = half_way(box)
        path = os.path.join(fault.checkpoint(run_dir, 24), name)
        with open(path, "rb") as f:
            length = int.from_bytes(f.read(8), "little")
            begin, end = json.loads(f.read(length))[tensor]["data_offsets"]
        fault.flip_bit(path, (8 + length + box.random.randrange(begin, end)) * 8 + box.random.randrange(8))
        job = goes_on(box, run_dir)
        job.told(r"warning.*step-00000024.*%s.*'?%s" % (name, tensor.replace(".", r"\.")))
        box.clean_runs(run_dir)


def lengths(box):
    """F60: cut off, extended, empty, missing, no file at all."""
    def cut(path):
        os.truncate(path, box.random.randrange(os.path.getsize(path)))

    def extend(path):
        with open(path, "ab") as f:
            f.write(bytes(box.random.randrange(1, 100)))

    def missing(path):
        os.unlink(path)

    def folder(path):
        os.unlink(path)
        os.mkdir(path)

    def fifo(path):
        os.unlink(path)
        os.mkfifo(path)

    def loop(path):
        os.unlink(path)
        os.symlink(path, path)

    ways = (cut, extend, missing, folder, fifo, loop)
    pairs = [(name, way) for name in FILES for way in ways]
    for name, way in pairs if box.options.long else box.random.sample(pairs, 8):
        run_dir = half_way(box)
        way(os.path.join(fault.checkpoint(run_dir, 24), name))
        try:
            job = goes_on(box, run_dir)
            job.told(r"warning.*step-00000024.*%s" % name)
            want("step 20/48" not in job.err() and "step 21/48" in job.err(), "it did not go on from step 20")
        except Failed as why:
            raise Failed("%s, %s: %s" % (name, way.__name__, why))
        box.clean_runs(run_dir)


def strange_folders(box):
    """What else may lie there: an empty one, a file, a newer temporary one, a wrong hint, a symbolic link."""
    run_dir = half_way(box)
    top = os.path.join(run_dir, "checkpoints")
    os.mkdir(os.path.join(top, "step-00000028"))
    with open(os.path.join(top, "step-00000031"), "w") as f:
        f.write("x")
    shutil.copytree(fault.checkpoint(run_dir, 24), os.path.join(top, ".step-00000036.tmp-999999-0"))
    shutil.copytree(fault.checkpoint(run_dir, 20), os.path.join(top, "step-00000040")) # says it is of step 20
    os.symlink("step-00000099", os.path.join(top, "step-00000043"))
    with open(os.path.join(top, "latest"), "w") as f:
        f.write("../../../etc\n")
    job = goes_on(box, run_dir)
    want("step 25/48" in job.err() and "step 24/48" not in job.err(), "it did not go on from step 24:\n%s", job.tail(60))
    want({31, 43} <= set(fault.steps_of(run_dir)), "a file or a link that is not ours was removed")
    job.told(r"step-00000028 is skipped", r"step-00000040 is skipped.*folder's name.*checkpoint in it, step-00000020")


def all_damaged(box):
    """Every checkpoint damaged: 8, and not a step from the start as if there had been none."""
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        run_dir = half_way(box)
        for step in fault.steps_of(run_dir):
            path = os.path.join(fault.checkpoint(run_dir, step), "model.safetensors")
            fault.flip_bit(path, os.path.getsize(path) * 8 - 5)
        job = box.run(CHECKPOINT, *box.arguments(mode, world, run_dir))
        job.one_error(r"checkpoints")
        want("step 1/48" not in job.err(), "it began anew")
        box.clean_runs(run_dir)


def of_another_job(box):
    """A checkpoint that does not fit: 8, and the names of what does not."""
    cases = ((("model.layers=[{linear: {name: fc1, out: 97}}, relu, {dropout: 0.25}, {linear: {name: fc2, out: 4}}]",),
              r"fc1\.(weight|bias)"),
             (("model.layers=[{linear: {name: fc9, out: 96}}, relu, {dropout: 0.25}, {linear: {name: fc2, out: 4}}]",),
              r"fc9\.(weight|bias)|fc1\.(weight|bias)"),
             (("model.layers=[{linear: {name: fc1, out: 96}}, relu, {linear: {name: fc1b, out: 96}}, relu, {linear: {name: fc2, out: 4}}]",),
              r"fc1b\.(weight|bias)"),
             (("model.layers=[{linear: {name: fc1, out: 4}}]",), r"fc1\.(weight|bias)|fc2"),
             (("optimizer={type: sgd, lr: 0.1}",), r"adam.*sgd"),
             (("optimizer={type: adamw, lr: 0.001}",), r"adam.*adamw"))
    for args, pattern in cases:
        for mode, world in box.some(("single", 1), ("ddp", 2)):
            run_dir = half_way(box)
            before = fault.steps_of(run_dir)
            try:
                job = box.run(CHECKPOINT, *box.arguments(mode, world, run_dir, *args))
                job.one_error(pattern)
                want(fault.steps_of(run_dir) == before, "checkpoints changed")
                box.verify(run_dir)
            except Failed as why:
                raise Failed("%s, %s: %s" % (args[0], mode, why))
            box.clean_runs(run_dir)


def by_path(box):
    """--resume PATH takes what it is told, or says why not; it does not look for another."""
    run_dir = half_way(box)
    other = box.new_dir()
    job = box.run(OK, *box.arguments("ddp", 2, other, "--resume", fault.checkpoint(run_dir, 20)))
    want(fault.summary(other)["params_xxh3"] == box.golden("ddp", 2)[0], "other bits from step 20")
    path = os.path.join(fault.checkpoint(run_dir, 24), "optimizer.safetensors")
    fault.flip_bit(path, os.path.getsize(path) * 8 - 9)
    job = box.run(CHECKPOINT, *box.arguments("ddp", 2, box.new_dir(), "--resume", fault.checkpoint(run_dir, 24)))
    job.one_error(r"step-00000024/optimizer\.safetensors", r"fc\d\.")
    for wrong in (box.path("nowhere"), box.yaml, "/dev/zero", "/proc/self/mem", box.folder):
        job = box.run(CHECKPOINT, *box.arguments("ddp", 2, box.new_dir(), "--resume", wrong))
        job.one_error(wrong)


def given_up(box):
    """--resume never, or from further back: what the earlier run had saved later is never gone on from again."""
    for wish, kept in (("never", []), ("step-00000020", [16, 20])):
        run_dir = half_way(box)
        path = wish if wish == "never" else os.path.join(run_dir, "checkpoints", wish)
        last = 8 if wish == "never" else 22
        job = box.run(OK, *box.arguments("ddp", 2, run_dir, "seed=7", "train.steps=%d" % last, "--resume", path))
        later = "" if wish == "never" else ", of steps after 20,"
        job.told(r"warning.*\d checkpoints? of an earlier run%s (is|are) now in .*checkpoints/before-" % later)
        want(fault.steps_of(run_dir) == (kept + ([4] if wish == "never" else []) + [last])[-3:], "checkpoints %s",
             fault.steps_of(run_dir))
        job = goes_on(box, run_dir)
        want("step %d/48" % (last + 1) in job.err() and "step %d/48" % last not in job.err(), "it did not go on from step %d",
             last)
        box.clean_runs(run_dir)


def other_modes(box):
    """A checkpoint of ddp goes on in single and dp with the bits of that mode's own run on as many devices."""
    for mode in ("ddp", "dp"):
        run_dir = half_way(box)
        more = ("parallel.dp.scatter=strided",)
        box.run(OK, *box.arguments(mode, 2, run_dir, *more))
        want(fault.summary(run_dir)["params_xxh3"] == box.golden("ddp", 2)[0], "dp and ddp differ after a resume")
        box.clean_runs(run_dir)


def not_finite(box):
    """F50: the loss of a step is no number: 9, the step is named, and the checkpoint before it is whole."""
    more = ("optimizer={type: sgd, lr: 1e-3}", "checkpoint.every=1 steps")
    for mode, world in box.some(("single", 1), ("dp", 2), ("ddp", 2)):
        run_dir = box.new_dir()
        box.run(OK, *box.arguments(mode, world, run_dir, *more, "train.steps=24"))
        job = box.run(NUMERIC, *box.arguments(mode, world, run_dir, *more, "optimizer.lr=1e6"))
        line = job.one_error(r"the loss of step \d+ is (nan|infinite)")
        step = int(line.split("the loss of step ")[1].split()[0])
        want(24 < step < 40, "step %d", step)
        want(fault.steps_of(run_dir)[-1] == step - 1, "the newest checkpoint is of step %d", fault.steps_of(run_dir)[-1])
        want(fault.metrics(run_dir)[-1]["step"] == step - 1, "metrics do not end with the last good step")
        box.verify(run_dir)
        with open(os.path.join(run_dir, "status.json")) as f:
            status = json.load(f)
        want(status["exit_code"] == NUMERIC and status["state"] == "failed", "status.json: %s", status)
        # the same again ends at the same step: nothing of the bad step was kept
        job = box.run(NUMERIC, *box.arguments(mode, world, run_dir, *more, "optimizer.lr=1e6"))
        job.one_error(r"the loss of step %d is" % step)
        box.clean_runs(run_dir)


if __name__ == "__main__":
    fault.main(one_bit, any_bit, a_tensor, lengths, strange_folders, all_damaged, of_another_job, by_path, given_up, other_modes, not_finite,
               kernels="ref")
