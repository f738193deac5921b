#!/usr/bin/env python3
"""Data and configurations that are wrong: refused before step 1, with what was wanted and what was found; nothing is
left behind. Under every mode, because who finds the fault differs."""
import gzip
import os
import shutil
import struct
import time

import fault
from fault import CONFIG, DATA, IO, NUMERIC, OK, USAGE, Failed, want

COUNT, CLASSES = 60, 4
MODES = (("ddp", 2), ("single", 1), ("dp", 2))

JOB = """tandem: 1
name: input
model: {input: %(input)s, layers: [flatten, {linear: 4}]}
data:
  train: %(train)s
  transform: [to_float]
optimizer: {type: sgd, lr: 0.01}
train: {steps: 4, batch: {global: 12}}
checkpoint: {every: 2 steps}
"""


def idx_files(box):
    pixels = bytes(box.random.randrange(256) for _ in range(COUNT * 64))
    return {"images": struct.pack(">IIII", 0x803, COUNT, 8, 8) + pixels,
            "labels": struct.pack(">II", 0x801, COUNT) + bytes(box.random.randrange(CLASSES) for _ in range(COUNT))}


def cifar_file(box):
    return b"".join(bytes([i % CLASSES]) + bytes(box.random.randrange(256) for _ in range(32)) * 96 for i in range(COUNT))


def npy(descr, shape, data, version=b"\x01\x00"):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header.encode() + data


def npy_files(box):
    floats = struct.pack("<%df" % (COUNT * 6), *(box.random.uniform(-1, 1) for _ in range(COUNT * 6)))
    labels = struct.pack("<%dq" % COUNT, *(i % CLASSES for i in range(COUNT)))
    return {"x": npy("<f4", (COUNT, 6), floats), "y": npy("<i8", (COUNT,), labels)}


def refused(box, yaml, code, patterns, what, modes=MODES):
    for mode, world in modes:
        run_dir = box.new_dir()
        devices = "parallel.device_ids=%s" % list(range(world))
        try:
            job = box.run(code, "train", yaml, "parallel.mode=" + mode, devices, "--run-dir", run_dir)
            job.one_error(*patterns)
            want("step 1/" not in job.err(), "a step was made")
            want(not os.path.exists(os.path.join(run_dir, "checkpoints")), "a checkpoint was made")
            job.nobody_left()
        except Failed as why:
            raise Failed("%s, %s: %s" % (what, mode, why))


def accepted(box, yaml, what):
    run_dir = box.new_dir()
    try:
        box.run(OK, "train", yaml, "--run-dir", run_dir)
    except Failed as why:
        raise Failed("%s: %s" % (what, why))


def cases_of(name, good, header, sized=True):
    """(what, content or None for no file, pattern): ways in which a file can be wrong, with the numbers to be told."""
    size = len(good)
    out = [("missing", None, "no such file"),
           ("empty", b"", "0|ends|short|empty"),
           ("header cut", good[:header - 1], str(header - 1)),
           ("one byte short", good[:-1], "%d|%d" % (size - 1, size)),
           ("half", good[:size // 2], "%d|%d" % (size // 2, size)),
           ("text", b"<!DOCTYPE html>\n" * 50, "")]
    if sized:
        out.append(("one byte long", good + b"x", "%d|%d" % (size + 1, size)))
        out.append(("twice", good + good, "%d|%d" % (2 * size, size)))
    return out


def try_files(box, yaml, files, cases):
    accepted(box, yaml, "the good files")
    for name, what, content, pattern in cases:
        path = box.path(name)
        os.unlink(path)
        if content is not None:
            box.write(name, content)
        modes = MODES if box.options.long else [box.random.choice(MODES)]
        where = r"label of sample \d+" if "label too" in what or "negative label" in what else os.path.basename(name)
        refused(box, yaml, DATA, (where, pattern), "%s %s" % (name, what), modes)
        if content is not None:
            os.unlink(path)
        box.write(name, files[name])
    box.note("%d wrong files refused", len(cases))


def write_all(box, files):
    for name, content in files.items():
        box.write(name, content)


def idx(box):
    good = idx_files(box)
    files = {"t-images": good["images"], "t-labels": good["labels"]}
    write_all(box, files)
    yaml = box.write("idx.yaml", JOB % {"input": "[1, 8, 8]", "train": "{format: idx, images: t-images, labels: t-labels}"})
    cases = []
    for name, header in (("t-images", 16), ("t-labels", 8)):
        cases += [(name, what, content, pattern) for what, content, pattern in cases_of(name, files[name], header)]
    images, labels = good["images"], good["labels"]
    cases += [("t-images", "labels' magic", labels, "rows, columns.*labels"),
              ("t-labels", "images' magic", images, "dimension"),
              ("t-images", "other rows", struct.pack(">IIII", 0x803, COUNT, 9, 8) + bytes(COUNT * 72), "9.*8|8.*9"),
              ("t-images", "too many", struct.pack(">IIII", 0x803, 2**31 - 1, 8, 8) + images[16:], "2147483647|bytes"),
              ("t-images", "overflow", struct.pack(">IIII", 0x803, 2**32 - 1, 2**32 - 1, 2**32 - 1) + images[16:], "4294967295|overflow"),
              ("t-images", "none", struct.pack(">IIII", 0x803, 0, 8, 8), "0"),
              ("t-labels", "fewer labels", struct.pack(">II", 0x801, COUNT - 1) + labels[8:-1], "%d" % (COUNT - 1)),
              ("t-labels", "a label too large", labels[:-1] + b"\x04", "4")]
    try_files(box, yaml, files, cases)


def idx_gz(box):
    good = idx_files(box)
    files = {"t-images.gz": gzip.compress(good["images"], mtime=0), "t-labels.gz": gzip.compress(good["labels"], mtime=0)}
    write_all(box, files)
    yaml = box.write("gz.yaml", JOB % {"input": "[1, 8, 8]",
                                       "train": "{format: idx, images: t-images.gz, labels: t-labels.gz}"})
    packed = files["t-images.gz"]
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 4
    bomb = gzip.compress(struct.pack(">IIII", 0x803, COUNT, 8, 8) + bytes(50 << 20), mtime=0)
    cases = [("t-images.gz", what, content, "") for what, content in (
        ("missing", None), ("empty", b""), ("cut", packed[:len(packed) // 2]), ("checksum cut", packed[:-3]),
        ("a bit flipped", bytes(flipped)), ("bomb", bomb), ("text", b"<html>" * 30),
        ("packed and short", gzip.compress(good["images"][:-1], mtime=0)),
        ("packed and long", gzip.compress(good["images"] + b"x", mtime=0)))]
    try_files(box, yaml, files, cases)


def cifar10(box):
    files = {"batch.bin": cifar_file(box)}
    write_all(box, files)
    yaml = box.write("cifar.yaml", JOB % {"input": "[3, 32, 32]", "train": "{format: cifar10, files: [batch.bin]}"})
    good = files["batch.bin"]
    cases = [("batch.bin", what, content, pattern) for what, content, pattern in (
        ("missing", None, "no such file"), ("empty", b"", "0"), ("one byte short", good[:-1], "%d|3073" % (len(good) - 1)),
        ("one byte long", good + b"x", "%d|3073" % (len(good) + 1)), ("a label too large", b"\x04" + good[1:], "4"),
        ("CIFAR-100's rows", good[:3074 * 20], "3073|%d" % (3074 * 20)))]
    try_files(box, yaml, files, cases)


def npy_data(box):
    good = npy_files(box)
    files = {"x.npy": good["x"], "y.npy": good["y"]}
    write_all(box, files)
    yaml = box.write("npy.yaml", JOB.replace("[to_float]", "[]") % {"input": "6", "train": "{format: npy, x: x.npy, y: y.npy}"})
    body = good["x"][-COUNT * 24:]
    cases = [("x.npy", what, content, pattern) for what, content, pattern in cases_of("x.npy", good["x"], 12)]
    cases += [("x.npy", "objects", npy("|O", (COUNT, 6), body), "Python objects"),
              ("x.npy", "other width", npy("<f4", (COUNT, 7), bytes(COUNT * 28)), "7|6"),
              ("x.npy", "overflow", npy("<f4", (2**62, 2**62), body), ""),
              ("x.npy", "negative", npy("<f4", (-1, 6), body), ""),
              ("x.npy", "version 9", npy("<f4", (COUNT, 6), body, b"\x09\x00"), "9"),
              ("y.npy", "fewer", npy("<i8", (COUNT - 1,), good["y"][-COUNT * 8:-8]), "%d" % (COUNT - 1)),
              ("y.npy", "a label too large", good["y"][:-8] + struct.pack("<q", 4), "4"),
              ("y.npy", "a negative label", good["y"][:-8] + struct.pack("<q", -1), "-1")]
    try_files(box, yaml, files, cases)


def strange_files(box):
    """Not data at all: a folder, a FIFO, a device. Nothing is waited for."""
    write_all(box, {"t-labels": idx_files(box)["labels"]})
    os.makedirs(box.path("folder"), exist_ok=True)
    os.mkfifo(box.path("fifo"))
    for path in (box.path("folder"), box.path("fifo"), "/dev/zero", "/dev/null", "/proc/self/mem"):
        yaml = box.write("strange.yaml", JOB % {"input": "[1, 8, 8]",
                                                "train": "{format: idx, images: %s, labels: t-labels}" % path})
        refused(box, yaml, DATA, (path,), path)


def vanishing(box):
    """The files go away, or lose their ends, while the job reads them."""
    files = idx_files(box)
    for how in ("unlink", "truncate"):
        write_all(box, {"v-images": files["images"], "v-labels": files["labels"]})
        yaml = box.write("v.yaml", JOB.replace("steps: 4", "steps: 100000").replace("every: 2 steps", "every: 20000 steps") % {
            "input": "[1, 8, 8]", "train": "{format: idx, images: v-images, labels: v-labels}"})
        run_dir = box.new_dir()
        job = box.start("train", yaml, "parallel.mode=ddp", "parallel.device_ids=[0, 1]", "--run-dir", run_dir,
                        "train.batch.global=12", "log.every=100 steps")
        job.writes(2)
        if how == "unlink":
            os.unlink(box.path("v-images"))
            os.unlink(box.path("v-labels"))
        else:
            os.truncate(box.path("v-images"), 100)
        job.has_ended(0.3)
        job.send(job.pid, 15)
        code, _ = job.end((fault.STOPPED, DATA, IO))
        if code != fault.STOPPED:
            job.one_error(r"v-images")
        job.nobody_left()
        box.clean_runs(run_dir)


FAULTS = [("optimizer.lrr=1", r"lrr", r"lr"), ("optimizer.lr=fast", r"fast", r"number"), ("train.steps=0", r"train\.steps", r"0"),
          ("train.steps=-5", r"-5", r"train\.steps"), ("parallel.device_ids=[0, 0]", r"device_ids", r""),
          ("parallel.mode=dpp", r"dpp", r"ddp|dp"), ("model.layers=[{linear: 4}, {conv2d: 3}]", r"conv2d", r""),
          ("model.layers=[{linar: 4}]", r"linar", r"linear"), ("loss=no_such_loss", r"no_such_loss", r""), ("seed=1.5", r"1\.5", r"integer"),
          ("train.batch.global=25", r"25", r"2"), ("data.train.format=idx", r"images", r""),
          ("checkpoint.every=often", r"often", r""), ("parallel.ddp.timeout=-1s", r"-1s", r"timeout"), ("model.input=[]", r"input", r"")]


def configurations(box):
    """Faults of the configuration: 3, before anything is made, and fast."""
    slowest = 0.0
    for assignment, *patterns in FAULTS:
        run_dir = box.new_dir()
        start = time.monotonic()
        job = box.start(*box.arguments("ddp", 2, run_dir, assignment))
        job.end(CONFIG)
        slowest = max(slowest, time.monotonic() - start)
        try:
            want(job.errors(), "no error is told")
            job.told(*patterns)
            want(not os.path.exists(run_dir), "the run directory was made")
        except Failed as why:
            raise Failed("%s: %s\n%s" % (assignment, why, job.tail()))
        box.clean()
    box.note("faults of the configuration: %d told with 3, the slowest in %.0f ms", len(FAULTS), slowest * 1000)


def usage(box):
    for args, pattern in ((("trian", box.yaml), "train"), (("train",), "CONFIG"), (("train", box.yaml, box.yaml), ""),
                          (("train", box.yaml, "--steps"), "--steps"), (("train", box.yaml, "--steps", "x"), "--steps"),
                          (("train", box.yaml, "--stepz", "4"), "--steps"), (("train", box.yaml, "optimizer.lr"), "optimizer.lr"),
                          (("train", box.yaml, "--mode", "ddp", "--bogus"), "--bogus"), (("ckpt",), ""), (("ckpt", "eat", "x"), "eat"),
                          ((), "usage")):
        job = box.run(USAGE, *args)
        job.told(pattern)
    for missing in (box.path("no.yaml"), box.folder, "/dev/null"):
        job = box.start("train", missing)
        job.end((CONFIG, USAGE, IO))
        want(job.errors(), "no error for %s", missing)


def weights_without_end(box):
    """The verdict on what a run ends with is the same with a folder and without, and it is told as rank 0's."""
    far = ("model.layers=[{linear: 4}]", "optimizer={type: sgd, lr: 1e6, weight_decay: 1e6}", "train.steps=4", "eval=null",
           "data.eval=null")
    for mode, world in MODES:
        place = ("parallel.mode=" + mode, "parallel.device_ids=%s" % list(range(world)))
        front = r"error: (\[rank 0\]|rank 0:) " if mode == "ddp" else "error: "
        for folder, what in ((box.new_dir(), "the checkpoint of step 4 is not saved"), ("null", "after step 4")):
            job = box.run(NUMERIC, "train", box.yaml, *place, *far, "run.dir=" + folder)
            job.one_error(front + what + r": tensor '[\w.]+' is not finite")
            want(not job.out(), "results are told:\n%s", job.out())


if __name__ == "__main__":
    fault.main(idx, idx_gz, cifar10, npy_data, strange_files, vanishing, configurations, usage,
               weights_without_end)
