"""What the tests of the Python package share: the package, staged from the build, a small job, and its samples."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["TANDEM_BUILD"])
PLACE = tempfile.TemporaryDirectory(prefix="tandem-python-")
WORK = pathlib.Path(PLACE.name)
for variable in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TANDEM_LIBRARY"):
    os.environ.pop(variable, None)

subprocess.run([sys.executable, "-B", ROOT / "tools/wheel", "--bare", "--build", BUILD, "--stage", WORK / "package"],
               check=True)
sys.path.insert(0, str(WORK / "package"))

import numpy as np  # noqa: E402
import tandem  # noqa: E402

JOB = {"tandem": 1, "name": "points", "seed": 3,
       "model": {"input": [2], "layers": [{"linear": {"name": "fc1", "out": 16}}, "relu",
                                          {"linear": {"name": "fc2", "out": 2}}]},
       "loss": "cross_entropy", "optimizer": {"type": "adam", "lr": 0.01},
       "train": {"steps": 40, "batch": {"global": 16}}, "parallel": {"mode": "single", "kernels": "ref"}}
_random = np.random.default_rng(0)
X = _random.uniform(-1, 1, (256, 2)).astype(np.float32)
Y = (X[:, 0] * X[:, 1] > 0).astype(np.int64)


class Points:
    """The same samples, one at a time. `at`: what happens when a sample is asked for."""

    def __init__(self, at=lambda index: None):
        self.at = at

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        self.at(index)
        return X[index], int(Y[index])


def job(**parallel):
    return {**JOB, "parallel": {**JOB["parallel"], **parallel}}


def run(overrides=None, *, job=JOB, train=(X, Y), **options):
    return tandem.Run(job, overrides, train=train, eval=(X, Y), run_dir=options.pop("run_dir", None), **options)


def trained(overrides=None, *, job=JOB, train=(X, Y), **options):
    """The hash of the parameters."""
    return tandem.train(job, overrides, train=train, run_dir=options.pop("run_dir", None), **options).params_xxh3


def python(code, **environment):
    """Runs a program of its own; (exit status, what it printed)."""
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PYTHONPATH": str(WORK / "package"), **environment})
    return done.returncode, done.stdout + done.stderr


class Case(unittest.TestCase):
    def refuses(self, kind, words, function, *arguments, **named):
        """It raises `kind`, and the message has the words."""
        with self.assertRaises(kind) as caught:
            function(*arguments, **named)
        self.assertIn(words, str(caught.exception))
        return caught.exception
