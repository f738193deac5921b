"""Runs the tandem command on a job and reads what it leaves; and the rule of how close is close enough. Plain Python."""
import json
import math
import os
import subprocess
import zlib

import pictures

FIRST_STEPS = 10


class Failed(Exception):
    pass


def run(tandem, yaml_lines, folder, extra=()):
    """Trains the job in folder; the run's directory. More words follow `tandem train JOB`."""
    job, out = os.path.join(folder, "job.yaml"), os.path.join(folder, "run")
    with open(job, "w") as f:
        f.write("\n".join(yaml_lines) + "\n")
    if any("image_folder" in line for line in yaml_lines):
        pictures.make(os.path.join(folder, "pictures"))
    done = subprocess.run([tandem, "train", job, "--run-dir", out, *extra], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, timeout=600)
    if done.returncode != 0:
        raise Failed("tandem ended with %d: %s" % (done.returncode, done.stderr.strip()[-1000:]))
    return out


def has(tandem, module):
    """Can the command use the module here?"""
    done = subprocess.run([tandem, "doctor", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return json.loads(done.stdout)["modules"][module].startswith("usable")


def has_fast_bf16():
    """Does the processor multiply bf16 faster than floats? As tdm__has_fast_bf16 says."""
    with open("/proc/cpuinfo") as f:
        text = f.read()
    flags = next((line.split() for line in text.splitlines() if line.startswith("flags")), [])
    return {"amx_bf16", "amx_tile"} <= set(flags) or "avx512_bf16" in flags and "AuthenticAMD" in text


def metrics(run_dir):
    """(loss of each step, the last evaluation's line or None)"""
    with open(os.path.join(run_dir, "metrics.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    train = [line for line in lines if line["kind"] == "train"]
    if [line["step"] for line in train] != list(range(1, len(train) + 1)):
        raise Failed("metrics.jsonl does not hold steps 1, 2, ... in order")
    evals = [line for line in lines if line["kind"] == "eval"]
    return [line["loss"] for line in train], evals[-1] if evals else None


def tensors(path):
    """{name: bytes} of the float32 tensors of a .safetensors file."""
    with open(path, "rb") as f:
        data = f.read()
    body = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:body])
    header.pop("__metadata__", None)
    return {name: data[body + e["data_offsets"][0]:body + e["data_offsets"][1]] for name, e in header.items()
            if e["dtype"] == "F32"}


def initial_crc32(tandem, yaml_lines, folder):
    """{name: CRC-32} of the initial tensors: what a checkpoint holds after one step with a learning rate of 0.
    Batch norm's running statistics do move in that step and are left out."""
    lines = [line for line in yaml_lines if not line.startswith("schedule:")]
    out = run(tandem, lines, folder, ["--steps", "1", "optimizer.lr=0", "optimizer.groups=[]", "data.eval=null"])
    name = os.path.join(out, "checkpoints", "step-00000001", "model.safetensors")
    return {k: "%08x" % zlib.crc32(v) for k, v in tensors(name).items() if ".running_" not in k}


def limits(self_divergence, rounding=0.0):
    """Step by step the largest relative difference that passes: no further from PyTorch than PyTorch is from itself, or
    than one rounding of the outputs."""
    out, most = [], 0.0
    for i, own in enumerate(self_divergence):
        most = max(most, own)
        out.append(max(rounding, 1e-5 if i < FIRST_STEPS else 1e-4, 3 * most))
    return out


def relative(want, got):
    return abs(want - got) / max(abs(want), 1e-6)


class Verdict:
    """losses against a reference: the largest differences, and the first step that is too far off, or None."""

    def __init__(self, reference, losses):
        want = reference["losses"]
        if len(want) != len(losses):
            raise Failed("%d steps wanted, %d came" % (len(want), len(losses)))
        self.off = [relative(a, b) for a, b in zip(want, losses)]
        self.limit = [min(most, reference.get("within", math.inf) / abs(loss))
                      for most, loss in zip(limits(reference["self_divergence"], reference.get("rounding", 0.0)), want)]
        self.early, self.most = max(self.off[:FIRST_STEPS]), max(self.off)
        self.own = max(reference["self_divergence"])
        bad = [i for i, (a, b) in enumerate(zip(self.off, self.limit)) if not a <= b]
        self.bad = bad[0] if bad else None
        self.text = "" if self.bad is None else "step %d: loss %.9g wanted, %.9g came: off by %.1e, %.1e allowed" % (
            self.bad + 1, want[self.bad], losses[self.bad], self.off[self.bad], self.limit[self.bad])


def eval_fault(reference, line, limit):
    """What is wrong with the evaluation at the end, or None. One sample may fall to the other side of a tie."""
    if "eval_loss" not in reference:
        return None
    if line is None:
        return "no evaluation in metrics.jsonl"
    allowed = max(limit, 3 * reference["eval_self_divergence"])
    off = relative(reference["eval_loss"], line["loss"])
    if not off <= allowed:
        return "evaluation: loss %.9g wanted, %.9g came: off by %.1e, %.1e allowed" % (
            reference["eval_loss"], line["loss"], off, allowed)
    want = reference["accuracy"]
    if want is not None and not abs(want - line["accuracy"]) <= 1.001 / 200:
        return "evaluation: accuracy %g wanted, %g came" % (want, line["accuracy"])
    return None
