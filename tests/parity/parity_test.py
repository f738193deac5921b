#!/usr/bin/env python3
"""Loss curves, evaluation and initial weights of the tandem command against PyTorch's, as fixtures/*.json hold them.

    parity_test.py --tandem PATH [--kernels auto|ref] [--device cpu|cuda] [--bf16] [NAME ...]
    parity_test.py --networks [--steps N] ...      networks of model.builtin; the same bits in dp and ddp
    parity_test.py --self-test      the comparison itself must notice a loss that is a little wrong

Needs no PyTorch. The rule, for step i: the relative difference of the loss is at most max(1e-5 in the first 10 steps,
1e-4 after, 3 x the largest distance of PyTorch from itself so far: on its other CPU kernels, in float64, from weights
that differ in their last bits); and no loss is off by more than the fixture's `within`. A long curve cannot tell more; steps.py holds each step tightly. With --bf16 against PyTorch's autocast,
whose distance from itself is that from its own float32, and at least one rounding to bfloat16, 2^-8.
"""
import argparse
import glob
import json
import os
import sys
import tempfile

import tandem_side
from tandem_side import Failed, Verdict

HERE = os.path.dirname(os.path.abspath(__file__))


def load(names, folder="."):
    paths = sorted(glob.glob(os.path.join(HERE, "fixtures", folder, "*.json")))
    out = {}
    for path in paths:
        name = os.path.splitext(os.path.basename(path))[0]
        if not names or name in names:
            with open(path) as f:
                out[name] = json.load(f)
    if not out:
        raise SystemExit("parity_test: no fixture of this name")
    return out


def check(tandem, fixture, kernels, device, precision, steps=None):
    """(verdict, faults, hash of the parameters) of one fixture, or of its first steps. Replicas may share a GPU: there need not be several."""
    extra = ["parallel.kernels=" + kernels, "parallel.device=" + device, "train.precision=" + precision]
    if device == "cuda":
        extra += ["parallel.device_ids=" + str([0] * devices_of(fixture)), "parallel.allow_shared_device=true"]
    if steps is not None:
        extra += ["train.steps=%d" % steps]
        fixture = dict(fixture, **{k: fixture[k][:steps] for k in ("losses", "self_divergence")})
    with tempfile.TemporaryDirectory(prefix="parity-") as folder:
        out = tandem_side.run(tandem, fixture["yaml"], folder, extra)
        losses, evaluation = tandem_side.metrics(out)
        with open(os.path.join(out, "summary.json")) as f:
            params = json.load(f)["params_xxh3"]
    verdict = Verdict(fixture, losses)
    faults = [verdict.text] if verdict.text else []
    fault = tandem_side.eval_fault(fixture, evaluation, verdict.limit[-1])
    return verdict, faults + ([fault] if fault else []), params


def lacks_pictures(tandem, fixture):
    return any("image_folder" in line for line in fixture["yaml"]) and not tandem_side.has(tandem, "image")


def devices_of(fixture):
    """As many as the job names."""
    ids = [line for line in fixture["yaml"] if "device_ids" in line]
    return len(ids[0].split("device_ids: [")[1].split("]")[0].split(",")) if ids else 1


def check_initial(tandem, fixture):
    with tempfile.TemporaryDirectory(prefix="parity-") as folder:
        came = tandem_side.initial_crc32(tandem, fixture["yaml"], folder)
    want = {k: v for k, v in fixture["init_crc32"].items() if ".running_" not in k}
    if want.keys() != came.keys():
        return ["initial weights: tensors %s wanted, %s came" % (sorted(want), sorted(came))]
    return ["initial weights: %s has CRC-32 %s, PyTorch's has %s" % (k, came[k], want[k]) for k in want if want[k] != came[k]]


def not_the_same(params):
    """Faults of networks whose dp and ddp do not end with the same parameters."""
    return ["%s: dp ends with the parameters %s, ddp with %s" % (name, both, params[name.replace("-dp-", "-ddp-")])
            for name, both in params.items() if params.get(name.replace("-dp-", "-ddp-"), both) != both]


def test_all(tandem, kernels, device, precision, names, folder, steps):
    bad, params = 0, {}
    fixtures = load(names, folder)
    print("%-18s %-8s %10s %10s %10s" % ("fixture", "kernels", "steps 1-10", "all", "PyTorch's"))
    for name, fixture in fixtures.items():
        if lacks_pictures(tandem, fixture):
            print("%-18s skipped: no module image" % name)
            continue
        try:
            verdict, faults, params[name] = check(tandem, fixture, kernels, device, precision, steps)
            if kernels == "auto" and device == "cpu" and precision == "f32" and ("-single-1" in name or "-ddp-2" in name):
                faults += check_initial(tandem, fixture)
            print("%-18s %-8s %10.1e %10.1e %10.1e" % (name, kernels if device == "cpu" else device, verdict.early, verdict.most, verdict.own), flush=True)
        except Failed as e:
            faults = [str(e)]
        for fault in faults:
            print("FAILED %s: %s" % (name, fault), flush=True)
        bad += bool(faults)
    for fault in not_the_same(params) if folder == "networks" else []:
        print("FAILED " + fault, flush=True)
        bad += 1
    print("parity: %d of %d fixtures off" % (bad, len(fixtures)) if bad else "parity: all fixtures hold")
    return 1 if bad else 0


def self_test():
    """Every fixture against itself, and against itself with one number made worse."""
    assert not_the_same({"a-dp-2": "1", "a-ddp-2": "1", "b-dp-2": "3"}) == []
    assert len(not_the_same({"a-dp-2": "1", "a-ddp-2": "2"})) == 1
    for name, fixture in load([]).items():
        losses = list(fixture["losses"])
        assert Verdict(fixture, losses).bad is None, name
        for step in (0, 9, 10, len(losses) - 1):
            allowed = Verdict(fixture, losses).limit[step]
            near, far = list(losses), list(losses)
            near[step] *= 1 + 0.9 * allowed
            far[step] *= 1 + 1.1 * allowed
            assert Verdict(fixture, near).bad is None, name
            assert Verdict(fixture, far).bad == step, name
        lost = list(losses)
        lost[5] = float("nan")
        assert Verdict(fixture, lost).bad == 5, name
        try:
            Verdict(fixture, losses[:-1])
            raise AssertionError("a missing step was not noticed")
        except Failed:
            pass
        if "eval_loss" not in fixture:
            continue
        good = {"loss": fixture["eval_loss"], "accuracy": fixture["accuracy"]}
        assert tandem_side.eval_fault(fixture, good, 1e-4) is None, name
        good["loss"] *= 1 + 3.5 * max(1e-4, fixture["eval_self_divergence"])
        assert tandem_side.eval_fault(fixture, good, 1e-4) is not None, name
    assert tandem_side.limits([0.0] * 11)[9:] == [1e-5, 1e-4]
    assert Verdict({"losses": [2.0], "self_divergence": [1.0], "within": 1e-3}, [2.002]).bad == 0
    print("parity self-test: the comparison notices what it should")
    return 0


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--tandem", default=os.environ.get("TANDEM", "tandem"))
    p.add_argument("--kernels", choices=["auto", "ref"], default="auto")
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--bf16", action="store_true")
    p.add_argument("--networks", action="store_true")
    p.add_argument("--steps", type=int, help="only the first")
    p.add_argument("--self-test", action="store_true")
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    if args.bf16 and args.device == "cpu" and args.kernels != "ref" and not tandem_side.has_fast_bf16():
        print("skipped: no fast bf16 here")
        return 77
    if args.device == "cuda" and not tandem_side.has(args.tandem, "cuda"):
        print("skipped: no CUDA device here")
        return 77
    folder = "bf16" if args.bf16 else "networks" if args.networks else "."
    return self_test() if args.self_test else test_all(
        args.tandem, args.kernels, args.device, "bf16" if args.bf16 else "f32", args.names, folder, args.steps)


if __name__ == "__main__":
    sys.exit(main())
