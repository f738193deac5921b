#!/usr/bin/env python3
"""Writes fixtures/NAME.h: what PyTorch computes for an op or a loss, forward and backward, in float32 on the CPU.

    make_op_fixtures.py [NAME...]        (torch 2.x; one thread, so that sums are repeatable; no name: all)

fixtures/NAME.py has the cases, a list CASES of dicts. Of an op: attrs, rows, inputs (1), shape of one row, other (the
shape of every input but the first, if they differ), module, training (True). What is tried instead of normal numbers
and first weights: change_input(x) and change_module(module). Of a loss: LOSS, HAS_LABELS where targets are labels,
TARGET(rows, width) where floats are not normal, and in a case rows, width, scale of the outputs (1), settings (keys of section `loss`), ignored (labels that are), and
mixed: whether the others are mixed (tandem/sys/label.h). Each file is drawn from a seed of its own, a hash of the name,
so a new one changes no other.

All numbers are the bits of float32. For an op they come in this order: inputs, parameters, float buffers, gradient of
the output (training only), output, and (training only) gradients of inputs, gradients of parameters, buffers
afterwards. For a loss: outputs of the model, float targets (unless they are labels), the mean, the gradient of the outputs.
"""
import pathlib
import runpy
import struct
import sys
import zlib

import torch
from torch.nn import functional as F

FOLDER = pathlib.Path(__file__).resolve().parent / "fixtures"
torch.set_num_threads(1)

words = []


def put(*tensors):
    for t in tensors:
        words.extend(struct.unpack(f"<{t.numel()}I", t.detach().contiguous().numpy().tobytes()))


def float_buffers(module):
    return [b for b in module.buffers() if b.dtype == torch.float32]


def shape_text(shape):
    return f"{{{len(shape)}, {{{', '.join(map(str, shape))}}}}}"


def op_row(about, rows, shape, module, attrs="", inputs=1, other=None, training=True):
    first = len(words)
    change = about.get("change_input", lambda x: x)
    shapes = [shape] + [other or shape] * (inputs - 1)
    x = [change(torch.randn(rows, *s)).requires_grad_() for s in shapes]
    with torch.no_grad():
        about.get("change_module", lambda module: None)(module)
    module.train(training)
    put(*x, *module.parameters(), *float_buffers(module))
    y = module(*x)
    dy = torch.randn_like(y)
    if training:
        y.backward(dy)
        put(dy)
    put(y)
    if training:
        put(*[t.grad for t in x], *[p.grad for p in module.parameters()], *float_buffers(module))
    text = f'"{attrs}"' if attrs else "NULL"
    return (f'    {{{{.attrs = {text}, .rows = {rows}, .input = {shape_text(shape)}, '
            f'{f".other = {shape_text(other)}, " if other else ""}.inputs = {inputs}}}, {"true" if training else "false"}, {first}, {len(words) - first}}},')


def mix(first, width, ignore):
    """Labels of samples mixed with the one before, and the probabilities that CrossEntropyLoss takes for them."""
    weight = torch.randint(1, 1 << 22, first.shape)
    second = first.roll(1)
    p = torch.zeros(len(first), width)
    packed = first.clone()
    for n in range(len(first)):
        if ignore in (first[n], second[n]):
            second[n] = first[n]
        if first[n] == ignore:
            continue
        w = weight[n].item() / (1 << 22)
        p[n, first[n]] += 1 - w
        p[n, second[n]] += w
        if second[n] != first[n]:
            packed[n] = 1 << 62 | first[n].item() << 42 | second[n].item() << 22 | weight[n].item()
    return packed, p


def mixed_loss(y, p, target, settings):
    """The mean over the rows that count: targets that are probabilities know no ignore_index. With weights PyTorch's mean
    is over the rows; here it is over the weights of the labels, as in a batch of a loss that stands alone."""
    counted, weight = target != settings["ignore_index"], settings.get("weight")
    weight = torch.tensor(weight) if weight else None
    loss = F.cross_entropy(y[counted], p[counted], weight=weight, label_smoothing=settings["label_smoothing"])
    return loss if weight is None else loss * counted.sum() / (p[counted] @ weight).sum()


def as_c(value):
    return f"{{{len(value)}, (const double[]){{{', '.join(map(repr, value))}}}}}" if isinstance(value, list) else repr(value)


def loss_row(about, rows, width, scale=1.0, settings={}, ignored=0, mixed=False):
    first = len(words)
    compute = about["LOSS"]
    y = (torch.randn(rows, width) * scale).requires_grad_()
    put(y)
    labels = [0] * rows
    if about.get("HAS_LABELS"):
        ignore = settings.get("ignore_index", -100)
        target = torch.randint(0, width, (rows,))
        if ignore >= 0:
            target[target == ignore] = 0
        target[rows - ignored:] = ignore if ignored else target[rows - ignored:]
        if mixed:
            packed, p = mix(target, width, ignore)
            compute = lambda y, target, **settings: mixed_loss(y, p, target, settings)
        labels = (packed if mixed else target).tolist()
    else:
        target = about.get("TARGET", torch.randn)(rows, width)
        put(target)
    loss = compute(y, target, **settings)
    loss.backward()
    put(loss, y.grad)
    section = ", ".join(f".{key} = {as_c(value)}" for key, value in settings.items())
    return (f'    {{{{{section or 0}}}, {rows}, {width}, {{{", ".join(map(str, labels))}}}, '
            f'{first}, {len(words) - first}}},')


def write(name):
    words.clear()
    torch.manual_seed(zlib.crc32(name.encode()))
    about = runpy.run_path(str(FOLDER / f"{name}.py"))
    kind, row = ("loss", loss_row) if "LOSS" in about else ("op", op_row)
    rows = [row(about, **case) for case in about["CASES"]]
    lines = [f"/* Made by make_op_fixtures.py with torch {torch.__version__}; see there for the order. Do not edit. */",
             "/* clang-format off */", f"static const {kind}_fixture {name}_fixtures[] = {{", *rows, "};", "",
             f"static const uint32_t {name}_words[] = {{"]
    lines += ["    " + " ".join(f"0x{w:08x}," for w in words[i:i + 10]) for i in range(0, len(words), 10)]
    lines += ["};", "", f"static const fixture_list {name}_list = {{",
              f'    "{name}", .{kind} = {name}_fixtures, .count = {len(rows)}, .words = {name}_words}};']
    (FOLDER / f"{name}.h").write_text("\n".join(lines) + "\n")


def main():
    known = sorted(path.stem for path in FOLDER.glob("*.py"))
    for name in sys.argv[1:]:
        if name not in known:
            sys.exit(f"make_op_fixtures.py: {name} has no cases: write tests/ops/fixtures/{name}.py first")
    for name in sys.argv[1:] or known:
        write(name)


if __name__ == "__main__":
    sys.exit(main())
