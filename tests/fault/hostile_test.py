#!/usr/bin/env python3
"""Texts that would drive the terminal, planted wherever a text comes from elsewhere: checkpoints, YAML, data files,
names of files, the command line, the environment. What the command prints and logs shows them and does nothing else:
nor do they begin a line of their own."""
import csv
import json
import os
import re
import shutil
import struct

import fault
from fault import OK, want

# C0, DEL, C1 as UTF-8, marks of the direction of writing, a line separator; then what must stay as it is.
CODES = "\x07\x1b[31m\x7f\u009b2J\u0085\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069"
TEXT = "a\nFORGED" + CODES + "\u4e2d\u6587"
RAW = os.fsencode("a\nFORGED\x1b]0;x\x07") + b"\x9b2J\xff\xc2" # no UTF-8: a file's name may be that
HASH = "\u202e\u009b31m\u2066\u200f\u2028".encode().ljust(32, b"0")
MARKS = "a\u202e\u2066\u2028\u200f\u4e2d\u6587"
NAME = TEXT.encode() + RAW + b"\nb"
FORGED = re.compile("^FORGED.*", re.MULTILINE)
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")

JOB = """tandem: 1
name: %(name)s
model: {input: 4, layers: [{linear: {name: %(layer)s, out: 3}}]}
data:
  train: %(train)s
train: {steps: 2, batch: {global: 4}}
checkpoint: {every: 1 steps}
log: {every: 1 steps}
%(more)s
"""
PICTURES = """tandem: 1
name: pictures
model: {input: [3, 16, 16], layers: [flatten, {linear: 10}]}
data:
  train: {format: image_folder}
  transform: [{resize: 16}, {center_crop: 16}, to_float]
train: {steps: 2, batch: {global: 4}}
"""
SYNTHETIC = "{format: synthetic, samples: 8, classes: 3}"


def clean(what, data):
    try:
        text = data.decode()
    except UnicodeDecodeError as why:
        raise fault.Failed("%s: no UTF-8: %s" % (what, why))
    found = HIDDEN.search(text)
    want(found is None, "%s: raw U+%04x in %r", what, ord(found.group()) if found else 0, text[-600:])
    found = FORGED.search(text)
    want(found is None, "%s: a line that is forged: %r", what, found and found.group())


def shown(box, *args, what=None, **more):
    """Runs the command; whatever its code, nothing raw comes out. What it printed."""
    job = box.start(*args, **more)
    code, _ = job.end(None, fault.RUN_SECONDS)
    what = "%s: %s" % (what or "", [os.fsdecode(a) for a in args])
    want(0 <= code < 100, "%s: status %d", what, code)
    both = b""
    for path in (job.out_path, job.err_path):
        with open(path, "rb") as f:
            data = f.read()
        clean(what, data)
        both += data
    want(both, "%s: nothing was printed", what)
    return both


def job_file(box, **more):
    settings = {"name": "good", "layer": "fc", "train": SYNTHETIC, "more": ""}
    settings.update(more)
    return box.write("hostile.yaml", JOB % settings)


def trained(box, **more):
    run_dir = box.new_dir()
    box.run(OK, "train", job_file(box, **more), "--run-dir", run_dir)
    return run_dir


def quoted(text):
    return json.dumps(text) # as YAML reads it too


# ---- checkpoints ----

def tensors(header):
    text = header if isinstance(header, bytes) else json.dumps(header, ensure_ascii=False).encode()
    return struct.pack("<Q", len(text)) + text + bytes(16)


def look_at(box, path, what):
    other = box.write("other.safetensors", tensors({TEXT: {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})[:-1] + b"?")
    for args in (("show", path), ("show", path, "--json"), ("verify", path), ("diff", path, path), ("diff", path, other), ("ls", path)):
        shown(box, "ckpt", *args, what=what)


def tensor_files(box):
    good = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    for escape in (True, False):
        dump = lambda value: json.dumps(value, ensure_ascii=escape).encode()
        for what, header in (("name", {TEXT: good}), ("two names", {TEXT: good, TEXT + "b": good}),
                             ("dtype", {"w": dict(good, dtype=TEXT)}), ("key", {"w": dict(good, **{TEXT: 1})}),
                             ("metadata", {"__metadata__": {TEXT: TEXT}, "w": good}),
                             ("metadata that is none", {"__metadata__": {TEXT: 1}, "w": good}),
                             ("unlike", {TEXT: good, "other": good}), ("offsets", {TEXT: dict(good, data_offsets=[0, 15])})):
            look_at(box, box.write("t.safetensors", tensors(dump(header))), what)
    look_at(box, box.write("t.safetensors", tensors(b'{"\x1b[31m\x9b": 1}')), "bare bytes")
    shown(box, "train", job_file(box), "model.init_from=" + box.path("t.safetensors"), "--run-dir", box.new_dir())


def edited(path, old, new):
    with open(path, "rb") as f:
        text = f.read()
    want(re.search(old, text), "%s: no %r", path, old)
    with open(path, "wb") as f:
        f.write(re.sub(old, lambda _: new, text, count=1))


def checkpoints(box):
    bare, escaped = json.dumps(TEXT, ensure_ascii=False).encode(), json.dumps(TEXT).encode()
    for name in ("MANIFEST.json", "state.json"):
        run_dir = trained(box)
        path = os.path.join(fault.checkpoint(run_dir, 2), name)
        with open(path, "rb") as f:
            good = f.read()
        words = sorted(set(re.findall(rb'"[^"\\]*"', good)))
        hashes = [word for word in words if len(word) == 34]
        if not box.options.long:
            words = words[::2]
        want(words and hashes, "%s has no texts", path)
        for word in hashes: # of a hash's length, so that it is looked at
            with open(path, "wb") as f:
                f.write(good.replace(word, b'"%s"' % HASH))
            shown(box, "ckpt", "verify", run_dir, what="%s %r" % (name, word))
            shown(box, "ckpt", "ls", run_dir, what="%s %r" % (name, word))
        for word in words:
            for to in (bare, escaped):
                with open(path, "wb") as f:
                    f.write(good.replace(word, to))
                shown(box, "ckpt", "show", fault.checkpoint(run_dir, 2), what="%s %r" % (name, word))
                shown(box, "ckpt", "verify", run_dir, what="%s %r" % (name, word))
            shown(box, "ckpt", "ls", run_dir, what="%s %r" % (name, word))
            shown(box, "ckpt", "ls", run_dir, "--json", what="%s %r" % (name, word))
        shown(box, "train", job_file(box), "--run-dir", run_dir)


# ---- settings ----

def settings(box):
    verbs = (("check",), ("check", "--format", "json"), ("show",), ("show", "--json"), ("plan",), ("plan", "--json"),
             ("data", "check"))
    jobs = {"name": {"name": quoted(TEXT)}, "layer": {"layer": quoted(TEXT)}, "key": {"more": quoted(TEXT) + ": 1"},
            "deep key": {"more": "optimizer: {%s: 1}" % quoted(TEXT)}, "value": {"more": "loss: " + quoted(TEXT)},
            "bare name": {"name": "'a\u202e\u2066\u2028b'"}, "bare key": {"more": "'k\u202e': 1"},
            "path": {"train": "{format: npy, x: %s, y: y.npy}" % quoted(TEXT)},
            "control": {"name": "'\x1b[31m'"}, "variable": {"name": '"${env:HOSTILE}"'},
            "no variable": {"name": '"${env:%s}"' % "a\u202e"}}
    for what, more in jobs.items():
        path = job_file(box, **more)
        for verb in verbs:
            words = verb[:1] + ((verb[1],) if verb[0] == "data" else ()) + (path,) + (() if verb[0] == "data" else verb[1:])
            shown(box, *words, what=what, env={"HOSTILE": TEXT})
        run_dir = box.new_dir()
        shown(box, "train", path, "--run-dir", run_dir, what=what, env={"HOSTILE": TEXT})
        shown(box, "train", path, "--print-config", what=what, env={"HOSTILE": TEXT})
    text = shown(box, "train", job_file(box, name=quoted(TEXT)), "run.dir=null")
    want("\u4e2d\u6587".encode() in text, "Chinese characters are gone: %r", text)


def words(box):
    job = job_file(box)
    for args in ((TEXT,), ("help", TEXT), ("train", "--" + TEXT), ("train", job, TEXT), ("train", job, "a=" + TEXT),
                 ("train", job, "name=" + TEXT, "run.dir=null"), ("explain", TEXT), ("check", job, "loss=" + TEXT),
                 ("ckpt", TEXT, "x"), ("ckpt", "ls", TEXT), ("train", job, "--mode", TEXT), ("compare", job, "--modes", TEXT),
                 ("train", job, "--steps", TEXT), ("check", job, "--format", TEXT), ("init", TEXT), ("bench", TEXT),
                 ("compare", job, "--tolerance", TEXT), ("data", TEXT, job), ("eval", job, "--weights", TEXT),
                 ("train", job, "--resume", TEXT), ("train", job, "parallel.init_method=" + TEXT), ("--color", TEXT)):
        shown(box, *args)
        shown(box, *[arg.encode().replace(TEXT.encode(), RAW) for arg in args])


# ---- files ----

def npy_file(key, descr="<f4"):
    header = "{'%s': '%s', 'fortran_order': False, 'shape': (8, 4), }" % (key, descr)
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(8 * 4 * 4)


def data_files(box):
    box.write("y.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", 60) + b"{'descr': '<i8', 'fortran_order': False, 'shape': (8,), }".ljust(59) + b"\n" + bytes(64))
    train = "{format: npy, x: x.npy, y: y.npy}"
    for what, content in (("key", npy_file(TEXT)), ("type", npy_file("descr", TEXT)), ("bytes", npy_file("descr").replace(b"descr", b"d\x1b\x9b\xff"))):
        box.write("x.npy", content)
        path = job_file(box, train=train)
        shown(box, "train", path, "--run-dir", box.new_dir(), what=what)
        shown(box, "data", "check", path, what=what)


def in_folder(box, name):
    folder = os.path.join(os.fsencode(box.folder), b"run-" + name)
    os.mkdir(folder)
    yaml = os.path.join(folder, b"job.yaml")
    with open(yaml, "w") as f:
        f.write(JOB % {"name": "good", "layer": "fc", "train": SYNTHETIC, "more": ""})
    run_dir, none = os.path.join(folder, b"run"), os.path.join(folder, b"none")
    model, other = os.path.join(folder, b"m.safetensors"), os.path.join(folder, b"o.safetensors")
    os.makedirs(os.path.join(none, b"checkpoints"))
    for path, last in ((model, b"\0"), (other, b"?")):
        with open(path, "wb") as f:
            f.write(tensors({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})[:-1] + last)
    for args in (("check", yaml), ("show", yaml), ("show", yaml, "--origins"), ("train", yaml, "--print-config"),
                 ("train", yaml, "--run-dir", run_dir), ("train", yaml, "--run-dir", run_dir), ("ckpt", "ls", run_dir),
                 ("ckpt", "ls", run_dir, "--json"), ("ckpt", "show", run_dir), ("ckpt", "verify", run_dir),
                 ("ckpt", "diff", run_dir, run_dir), ("report", run_dir), ("eval", yaml, "--weights", run_dir),
                 ("predict", yaml, "--weights", run_dir, "--out", os.path.join(folder, b"p.npy")),
                 ("compare", yaml, "parallel.device_ids=[0, 1]", "--out", os.path.join(folder, b"c")),
                 ("train", yaml, "parallel.mode=ddp", "parallel.device_ids=[0, 1]", "--run-dir", run_dir + b"2"),
                 ("check", folder), ("check", yaml + b"x"), ("ckpt", "show", folder), ("report", folder), ("ckpt", "verify", run_dir), ("data", "make", os.path.join(folder, b"data"), "--samples", "3"),
                 ("ckpt", "diff", model, other), ("ckpt", "show", model), ("ckpt", "verify", model), ("ckpt", "ls", none)):
        shown(box, *args)
    for name in (b"run/logs/rank-0.log", b"run/report.html", b"c/report.html"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, "rb") as f:
                clean(name.decode(), f.read())
    return os.path.exists(os.path.join(folder, b"run/logs/rank-0.log"))


def file_names(box):
    in_folder(box, NAME) # YAML, and so run.dir, refuses control characters and what is no UTF-8
    want(in_folder(box, MARKS.encode()), "no log")


def class_folders(box, name, broken):
    folder = os.path.join(os.fsencode(box.new_dir()), b"pictures")
    shutil.copytree(os.fsencode(box.path("digits")), folder)
    os.rename(os.path.join(folder, b"one"), os.path.join(folder, name))
    inside = os.path.join(folder, name)
    os.rename(os.path.join(inside, min(os.listdir(inside))), os.path.join(inside, name + b".png"))
    if broken:
        with open(os.path.join(inside, name + b".png"), "wb") as f:
            f.write(b"\x89PNG\r\n\x1a\nno picture")
    return folder


def pictures(box):
    """Names of classes and of files, in what is shown of them; files that are written have them as they are."""
    fault.make_digits(box)
    for name in (TEXT.encode(), MARKS.encode()):
        for broken in (False, True):
            folder, run_dir = class_folders(box, name, broken), box.new_dir()
            yaml = box.write("pictures.yaml", PICTURES)
            more = ("data.train.path=" + json.dumps(os.fsdecode(os.path.dirname(folder)) + "/pictures"),)
            for args in (("data", "check", yaml, *more), ("train", yaml, *more, "--run-dir", run_dir), ("eval", run_dir),
                         ("train", yaml, *more, "--run-dir", run_dir + "s", "data.train.on_bad_sample=skip"),
                         ("predict", run_dir + "s"), ("predict", run_dir + "s", folder), ("report", run_dir + "s"),
                         ("init", "--task", "images", "--data", folder)):
                shown(box, *args)
            with open(os.path.join(run_dir + "s", "report.html"), "rb") as f:
                clean("report.html", f.read())
            rows, lines = os.path.join(run_dir + "s", "rows.csv"), os.path.join(run_dir + "s", "rows.jsonl")
            code = fault.DATA if broken else OK
            box.run(code, "predict", run_dir + "s", folder, "--out", rows)
            box.run(code, "predict", run_dir + "s", folder, "--out", lines)
            with open(rows, newline="") as f:
                table = list(csv.reader(f))
            want(os.fsdecode(name) in table[0] and {os.path.basename(os.path.dirname(row[0])) for row in table[1:]} == set(table[0][3:]),
                 "other names in rows.csv: %r", table[:2])
            with open(lines) as f:
                want(len([json.loads(line) for line in f]) == len(table) - 1, "rows.jsonl has other rows")
    raw = os.path.join(os.fsencode(box.new_dir()), RAW + b".png") # no UTF-8, which JSON must be
    os.makedirs(os.path.dirname(raw))
    shutil.copy(box.path("digits", "two", min(os.listdir(box.path("digits", "two")))), raw)
    shown(box, "predict", run_dir + "s", raw)
    box.run(OK, "predict", run_dir + "s", raw, "--out", lines + "2.jsonl")
    with open(lines + "2.jsonl") as f:
        want(json.load(f)["file"].endswith("\\xff\\xc2.png"), "the name of a file is gone")


# ---- the environment ----

def variables(box):
    job = job_file(box)
    for value in box.some(TEXT.encode(), RAW):
        for names in (("TANDEM_MODULE_PATH",), ("TANDEM_LOG",), ("TANDEM_CUDA_LIBRARIES",), ("RANK", "WORLD_SIZE"),
                      ("TANDEM_RANK", "TANDEM_WORLD"), ("MASTER_PORT",), ("TANDEM_PARENT",), ("COLUMNS",),
                      ("CUDA_VISIBLE_DEVICES",), ("NCCL_COMM_BLOCKING",)):
            env = {name: value for name in names}
            shown(box, "train", job, "--run-dir", box.new_dir(), what=names, env=env)
            shown(box, "doctor", what=names, env=env)
        env = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": value, "MASTER_PORT": value}
        shown(box, "train", job, "--run-dir", box.new_dir(), what="ranks", env=env)
    shown(box, "help", "env", env={"TANDEM_LOG": TEXT})


fault.main(tensor_files, checkpoints, settings, words, data_files, file_names, pictures, variables)
