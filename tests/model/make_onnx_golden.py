#!/usr/bin/env python3
"""Compares the ONNX files of onnx_test.c with the real onnxruntime, and writes onnx_golden.h: the hashes of the files that it
computes as tandem does.

    python3 tests/model/make_onnx_golden.py build/release/tests/model_onnx

Prints the largest difference of each model, relative to its largest output. Above 1e-5 nothing is written. Needs numpy,
onnx and onnxruntime.
"""
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

TOLERANCE = 1e-5


def difference(folder, name, rows):
    path = folder / (name + ".onnx")
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x, wanted = (numpy.fromfile(folder / (name + end), numpy.float32) for end in (".x", ".y"))
    x, given = x.reshape(rows, -1), {}
    for value in session.get_inputs():  # a sample is the numbers of all inputs, one after the other
        count = math.prod(value.shape[1:])
        given[value.name], x = x[:, :count].reshape(rows, *value.shape[1:]), x[:, count:]
    assert x.size == 0, name
    got = session.run(None, given)[0]
    alone = session.run(None, {input_: part[:1] for input_, part in given.items()})[0]
    wanted = wanted.reshape(got.shape)
    scale = abs(wanted).max()
    return max(abs(got - wanted).max(), abs(alone - wanted[:1]).max()) / scale


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lines, worst = [], 0
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        done = subprocess.run([sys.argv[1], "write", made], check=True, stdout=subprocess.PIPE, text=True)
        for line in done.stdout.splitlines():
            name, rows, digest = line.split()
            off = difference(folder, name, int(rows))
            worst = max(worst, off)
            print("%-12s %.1e" % (name, off))
            lines.append('    {"%s", "%s"},\n' % (name, digest))
    if worst > TOLERANCE:
        sys.exit("onnx_golden.h stays as it is: the differences may be %g at most" % TOLERANCE)
    (pathlib.Path(__file__).parent / "onnx_golden.h").write_text(
        "/* Written by make_onnx_golden.py with onnxruntime %s and onnx %s: the files of onnx_test.c whose outputs are "
        "tandem's. */\nstatic const struct {\n    const char *name, *hash;\n} golden[] = {\n%s};\n"
        % (onnxruntime.__version__, onnx.__version__, "".join(lines)))


if __name__ == "__main__":
    main()
