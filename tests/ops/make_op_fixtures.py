#!/usr/bin/env python3
"""Writes op_fixtures.h: what PyTorch computes for single ops and losses, forward and backward, in float32 on the CPU.

    make_op_fixtures.py > op_fixtures.h        (torch 2.x; one thread, so that sums are repeatable)

All numbers are the bits of float32. For an op they come in this order: inputs, parameters, float buffers, gradient of
the output (training only), output, and (training only) gradients of inputs, gradients of parameters, buffers
afterwards. For a loss: outputs of the model, float targets (unless they are labels), the mean, the gradient of the outputs.
"""
import pathlib
import re
import struct
import sys

import torch
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
torch.set_num_threads(1)

COUNTER = 3  # num_batches_tracked before

CONV = [
    ("out=4 kernel=3 padding=1", 2, (3, 6, 5), dict(kernel_size=3, padding=1)),
    ("out=4 kernel=[3,2] stride=[2,1] padding=[1,0]", 2, (2, 7, 6), dict(kernel_size=(3, 2), stride=(2, 1), padding=(1, 0))),
    ("out=6 kernel=3 padding=2 dilation=2 groups=2", 2, (4, 5, 6), dict(kernel_size=3, padding=2, dilation=2, groups=2)),
    ("out=6 kernel=3 stride=2 padding=1 groups=3 bias=false", 2, (3, 7, 7), dict(kernel_size=3, stride=2, padding=1, groups=3, bias=False)),
    ("out=5 kernel=1", 3, (4, 4, 3), dict(kernel_size=1)),
    ("out=8 kernel=3 padding=1", 2, (8, 5, 5), dict(kernel_size=3, padding=1)),
]
LINEAR = [
    ("out=5", 3, 7, {}),
    ("out=4 bias=false", 2, 9, dict(bias=False)),
    ("out=10", 8, 60, {}),
]
MAXPOOL = [
    ("kernel=2", 2, (3, 6, 4), dict(kernel_size=2)),
    ("kernel=3 stride=2 padding=1", 2, (2, 7, 6), dict(kernel_size=3, stride=2, padding=1)),
    ("kernel=[2,3] stride=[1,2] padding=[1,1]", 2, (2, 5, 6), dict(kernel_size=(2, 3), stride=(1, 2), padding=(1, 1))),
    ("kernel=3 stride=2 ceil_mode=true", 2, (2, 6, 7), dict(kernel_size=3, stride=2, ceil_mode=True)),
    ("kernel=2 padding=1 ceil_mode=true", 2, (2, 4, 5), dict(kernel_size=2, padding=1, ceil_mode=True)),
    ("kernel=3 stride=4 ceil_mode=true", 1, (2, 7, 9), dict(kernel_size=3, stride=4, ceil_mode=True)),
]
AVGPOOL = [
    ("kernel=2", 2, (3, 6, 4), dict(kernel_size=2)),
    ("kernel=3 stride=2 padding=1", 2, (2, 7, 6), dict(kernel_size=3, stride=2, padding=1)),
    ("kernel=3 stride=2 padding=1 count_include_pad=false", 2, (2, 7, 6), dict(kernel_size=3, stride=2, padding=1, count_include_pad=False)),
    ("kernel=3 stride=2 ceil_mode=true", 2, (2, 6, 7), dict(kernel_size=3, stride=2, ceil_mode=True)),
    ("kernel=3 stride=2 padding=1 ceil_mode=true", 2, (2, 6, 8), dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)),
    ("kernel=3 stride=2 padding=1 ceil_mode=true count_include_pad=false", 2, (2, 6, 8), dict(kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)),
]
ADAPTIVE = [
    ("out=1", 2, (3, 7, 7), 1),
    ("out=[2,3]", 2, (2, 7, 5), (2, 3)),
    ("out=[4,2]", 1, (2, 3, 5), (4, 2)),
]
NORM = [
    ("", 4, (3, 3, 2), {}),
    ("eps=1.0e-3 momentum=0.3", 3, (2, 4, 4), dict(eps=1e-3, momentum=0.3)),
    ("momentum=null", 3, (2, 2, 4), dict(momentum=None)),
    ("affine=false", 3, (2, 3, 3), dict(affine=False)),
    ("track_running_stats=false", 3, (2, 3, 3), dict(track_running_stats=False)),
]


class Add(nn.Module):
    def forward(self, *x):
        total = x[0]
        for other in x[1:]:
            total = total + other
        return total


def cases():
    """(op, attributes, rows, inputs, shape of one row, module, training)"""
    for attrs, rows, features, options in LINEAR:
        out = int(attrs.split()[0].split("=")[1])
        yield "linear", attrs, rows, 1, (features,), nn.Linear(features, out, **options), True
    for attrs, rows, shape, options in CONV:
        out = int(attrs.split()[0].split("=")[1])
        yield "conv2d", attrs, rows, 1, shape, nn.Conv2d(shape[0], out, **options), True
    yield "relu", "", 3, 1, (17,), nn.ReLU(), True
    yield "relu", "", 2, 1, (3, 4, 5), nn.ReLU(), True
    for attrs, rows, shape, options in MAXPOOL:
        yield "maxpool2d", attrs, rows, 1, shape, nn.MaxPool2d(**options), True
    for attrs, rows, shape, options in AVGPOOL:
        yield "avgpool2d", attrs, rows, 1, shape, nn.AvgPool2d(**options), True
    for attrs, rows, shape, out in ADAPTIVE:
        yield "adaptive_avgpool2d", attrs, rows, 1, shape, nn.AdaptiveAvgPool2d(out), True
    for attrs, rows, shape, options in NORM:
        for training in (True, False):
            yield "batchnorm2d", attrs, rows, 1, shape, nn.BatchNorm2d(shape[0], **options), training
    yield "dropout", "p=0.4", 2, 1, (19,), nn.Dropout(0.4), False
    yield "flatten", "", 2, 1, (3, 4, 5), nn.Flatten(), True
    yield "add", "", 2, 2, (3, 4, 5), Add(), True
    yield "add", "", 3, 3, (11,), Add(), True


# Of a loss: whether its targets are labels, and what computes it from the settings of a case.
LOSSES = {
    "cross_entropy": (True, F.cross_entropy),
    "mse": (False, F.mse_loss),
    "l1": (False, F.l1_loss),
    "smooth_l1": (False, F.smooth_l1_loss),
    "bce_with_logits": (False, lambda y, t, pos_weight=None: F.binary_cross_entropy_with_logits(
        y, t, pos_weight=torch.tensor(pos_weight) if pos_weight else None)),
}
ACTIVATIONS = [
    ("sigmoid", "", nn.Sigmoid()),
    ("tanh", "", nn.Tanh()),
    ("silu", "", nn.SiLU()),
    ("gelu", "", nn.GELU()),
    ("gelu", "approximate=tanh", nn.GELU(approximate="tanh")),
    ("hardswish", "", nn.Hardswish()),
    ("leaky_relu", "", nn.LeakyReLU()),
    ("leaky_relu", "negative_slope=0.3", nn.LeakyReLU(0.3)),
    ("identity", "", nn.Identity()),
]


def late_cases():
    """As cases(), but computed after the losses: what is before keeps its numbers, which differ in their last bits from
    one processor to another."""
    yield "relu6", "", 4, 1, (3, 4, 5), nn.ReLU6(), True
    # an odd number of zeros goes below and to the right
    yield ("conv2d", "out=3 kernel=[4,2] padding=same dilation=[1,3]", 2, 1, (2, 3, 5),
           nn.Conv2d(2, 3, (4, 2), padding="same", dilation=(1, 3)), True)
    yield ("conv2d", "out=4 kernel=3 padding=valid stride=2", 2, 1, (3, 6, 5),
           nn.Conv2d(3, 4, 3, padding="valid", stride=2), True)
    for op, attrs, module in ACTIVATIONS:
        yield op, attrs, 4, 1, (3, 4, 5), module, True


LOSS_CASES = [
    # loss, settings (keys of section `loss`), rows, outputs, scale of the outputs, labels that are ignored, and whether
    # the others are mixed (tandem/sys/label.h)
    ("cross_entropy", dict(label_smoothing=0.0, ignore_index=-100), 8, 10, 1.0, 0),
    ("cross_entropy", dict(label_smoothing=0.1, ignore_index=-100), 8, 10, 3.0, 0),
    ("cross_entropy", dict(label_smoothing=0.0, ignore_index=-100), 6, 10, 1.0, 2),
    ("cross_entropy", dict(label_smoothing=0.2, ignore_index=3), 8, 5, 1.0, 3),
    ("cross_entropy", dict(label_smoothing=0.0, ignore_index=-100), 5, 4, 400.0, 0),
    ("cross_entropy", dict(label_smoothing=1.0, ignore_index=-100), 4, 6, 1.0, 0),
    ("cross_entropy", dict(label_smoothing=0.0, ignore_index=-100), 2, 200, 2.0, 0),
    ("mse", {}, 3, 5, 1.0, 0),
    ("mse", {}, 7, 24, 10.0, 0),
    ("cross_entropy", dict(label_smoothing=0.0, ignore_index=-100), 8, 10, 1.0, 0, True),
    ("cross_entropy", dict(label_smoothing=0.1, ignore_index=-100), 7, 12, 3.0, 0, True),
    ("cross_entropy", dict(label_smoothing=0.2, ignore_index=3), 8, 6, 1.0, 2, True),
]

# After the late ops, for the same reason.
LATE_LOSS_CASES = [
    ("l1", {}, 5, 7, 1.0, 0),
    ("smooth_l1", dict(beta=1.0), 5, 7, 2.0, 0),
    ("smooth_l1", dict(beta=0.25), 3, 40, 1.0, 0),
    ("bce_with_logits", {}, 5, 7, 4.0, 0),
    ("bce_with_logits", dict(pos_weight=[2.5]), 5, 7, 2.0, 0),
    ("bce_with_logits", dict(pos_weight=[0.5, 1.0, 3.0, 8.0]), 6, 4, 30.0, 0),
]

words = []


def put(*tensors):
    for t in tensors:
        words.extend(struct.unpack(f"<{t.numel()}I", t.detach().contiguous().numpy().tobytes()))


def float_buffers(module):
    return [b for b in module.buffers() if b.dtype == torch.float32]


def op_row(op, attrs, rows, inputs, shape, module, training):
    first = len(words)
    x = [torch.randn(rows, *shape).requires_grad_() for _ in range(inputs)]
    if op == "maxpool2d":  # equal values, so that the rule for ties is seen
        x = [(t.detach() * 2).round().requires_grad_() for t in x]
    if op in ("relu6", "hardswish", "gelu", "silu", "sigmoid", "tanh"):  # some where they are flat
        x = [(t.detach() * 4).requires_grad_() for t in x]
    if op == "batchnorm2d":
        with torch.no_grad():
            for p in module.parameters():
                p.normal_()
            for name, b in module.named_buffers():
                if name == "running_mean":
                    b.normal_()
                elif name == "running_var":
                    b.uniform_(0.5, 2.0)
                else:
                    b.fill_(COUNTER)
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
    dims = ", ".join(str(d) for d in shape)
    text = f'"{attrs}"' if attrs else "NULL"
    return (f'    {{"{op}", {{.attrs = {text}, .rows = {rows}, .input = {{{len(shape)}, {{{dims}}}}}, '
            f'.inputs = {inputs}}}, {"true" if training else "false"}, {first}, {len(words) - first}}},')


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


def mixed_loss(y, p, counted, label_smoothing):
    """The mean over the rows that count: targets that are probabilities know no ignore_index."""
    return F.cross_entropy(y[counted], p[counted], label_smoothing=label_smoothing)


def as_c(value):
    return f"{{{len(value)}, {{{', '.join(map(repr, value))}}}}}" if isinstance(value, list) else repr(value)


def loss_row(name, settings, rows, width, scale, ignored, mixed=False):
    has_labels, compute = LOSSES[name]
    first = len(words)
    y = (torch.randn(rows, width) * scale).requires_grad_()
    put(y)
    labels = [0] * rows
    if has_labels:
        ignore = settings.get("ignore_index", -100)
        target = torch.randint(0, width, (rows,))
        if ignore >= 0:
            target[target == ignore] = 0
        target[rows - ignored:] = ignore if ignored else target[rows - ignored:]
        if mixed:
            packed, p = mix(target, width, ignore)
            compute = lambda y, target, **settings: mixed_loss(y, p, target != ignore, settings["label_smoothing"])
        labels = (packed if mixed else target).tolist()
    else:
        target = torch.randn(rows, width)
        put(target)
    loss = compute(y, target, **settings)
    loss.backward()
    put(loss, y.grad)
    section = ", ".join(f".{key} = {as_c(value)}" for key, value in settings.items())
    return (f'    {{"{name}", {{{section or 0}}}, {rows}, {width}, {{{", ".join(map(str, labels))}}}, '
            f'{first}, {len(words) - first}}},')


def check_losses():
    """Every loss of ops/losses.def must be here: what to compute is not guessed."""
    listed = re.findall(r"^TDM_LOSS\((\w+)\)", (ROOT / "ops/losses.def").read_text(), re.M)
    cases = [case[0] for case in LOSS_CASES + LATE_LOSS_CASES]
    for name in listed + cases:
        if name not in LOSSES or name not in cases:
            sys.exit(f"make_op_fixtures.py: {name} needs a line in LOSSES, and one for each case in LOSS_CASES")


def main():
    check_losses()
    torch.manual_seed(20)
    ops = [op_row(*case) for case in cases()]
    losses = [loss_row(*loss) for loss in LOSS_CASES]
    ops += [op_row(*case) for case in late_cases()]
    losses += [loss_row(*loss) for loss in LATE_LOSS_CASES]
    print(f"/* Made by make_op_fixtures.py with torch {torch.__version__}; see there for the order. Do not edit. */")
    print("/* clang-format off */")
    print("static const op_fixture op_fixtures[] = {")
    print("\n".join(ops))
    print("};\n\nstatic const loss_fixture loss_fixtures[] = {")
    print("\n".join(losses))
    print("};\n\nstatic const uint32_t fixture_words[] = {")
    for i in range(0, len(words), 10):
        print("    " + " ".join(f"0x{w:08x}," for w in words[i:i + 10]))
    print("};")


if __name__ == "__main__":
    sys.exit(main())
