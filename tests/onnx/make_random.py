#!/usr/bin/env python3
"""Draws networks at random as ONNX files. An import must be right or refused: what tandem reads gives what the real
onnxruntime gives. Needs onnx, onnxruntime and torch; `check` also the package tandem.

    python3 tests/onnx/make_random.py                      writes files/random_*.onnx and random.h, which random_test.c reads
    python3 tests/onnx/make_random.py check FIRST COUNT    draws other seeds and compares with tandem; keeps nothing
    python3 tests/onnx/make_random.py dynamo FIRST COUNT   the same with modules alone, by PyTorch's newer exporter

Even seeds draw nodes, as no exporter writes them: any attributes, axes and shapes that onnxruntime takes. Odd seeds draw
modules of PyTorch, which its exporter over TorchScript writes.
"""
import contextlib
import io
import pathlib
import random
import sys
import warnings

import numpy
import onnx
import onnxruntime
from onnx import helper

from make_nodes import formula, text

HERE = pathlib.Path(__file__).resolve().parent
ROWS = 2
KEPT = [7, 8, 10, 12, 21, 31, 35, 41, 89, 102, 164, 170, 206, 388, 630, 690] # together they have every node that is read
onnxruntime.set_default_logger_severity(4)


def outputs(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


# ---- nodes ----

class Net:
    """A graph that grows; of each value it is known what onnxruntime computes."""

    def __init__(self, draw, shape):
        self.draw, self.shape = draw, shape
        self.opset = draw.choice([11, 13, 17, 18, 20, 21])
        self.nodes, self.constants, self.count = [], [], 0
        self.x = formula(ROWS * int(numpy.prod(shape)), 99).reshape(ROWS, *shape)
        self.values = [("x", self.x)]

    def name(self):
        self.count += 1
        return "v%d" % self.count

    def constant(self, value, kind=numpy.float32):
        name = self.name()
        self.constants.append(onnx.numpy_helper.from_array(numpy.asarray(value, kind), name))
        return name

    def numbers(self, *shape):
        return self.constant(formula(int(numpy.prod(shape)), self.count).reshape(shape))

    def model(self, value):
        graph = helper.make_graph(
            self.nodes, "drawn", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", *self.shape])],
            [helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, None)], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def add(self, op, inputs, count=1, **attributes):
        out = [self.name() for _ in range(count)]
        self.nodes.append(helper.make_node(op, inputs, out, name=out[0], **attributes))
        return out

    def grow(self, op, inputs, count=1, **attributes):
        """The node and one of its outputs as a value; nothing if onnxruntime refuses."""
        before = len(self.nodes)
        out = self.draw.choice(self.add(op, inputs, count, **attributes))
        try:
            y = outputs(self.model(out), self.x)
        except Exception:
            y = None
        if y is None or y.dtype != numpy.float32 or y.ndim < 2 or y.size == 0 or y.size > 4000 or not numpy.isfinite(y).all():
            del self.nodes[before:]
            return False
        self.values.append((out, y))
        return True

    def axes(self, op, inputs, since, axes, **attributes):
        """Axes are an input in newer opsets, and an attribute before."""
        if self.opset >= since:
            return self.grow(op, [*inputs, self.constant(axes, numpy.int64)], **attributes)
        return self.grow(op, inputs, axes=axes, **attributes)


def some(draw, *choices):
    return draw.choice(choices)


def window(net, y, draw):
    axes = y.ndim - 2
    out = {"strides": [draw.randint(1, 2) for _ in range(axes)]}
    if draw.random() < 0.2:
        out["dilations"] = [draw.randint(1, 2) for _ in range(axes)]
    if draw.random() < 0.2:
        out["auto_pad"] = draw.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif draw.random() < 0.6:
        before = [draw.randint(0, 1) for _ in range(axes)]
        out["pads"] = before + (before if draw.random() < 0.7 else [draw.randint(0, 1) for _ in range(axes)])
    return out


def conv(net, name, y, draw):
    if y.ndim not in (3, 4):
        return False
    group = some(draw, 1, 1, y.shape[1])
    kernel = [draw.randint(1, 3) for _ in range(y.ndim - 2)]
    width = group * draw.randint(1, 3)
    inputs = [name, net.numbers(width, y.shape[1] // group, *kernel)] + ([net.numbers(width)] if draw.random() < 0.7 else [])
    return net.grow("Conv", inputs, group=group, **window(net, y, draw))


def pool(net, name, y, draw):
    if y.ndim not in (3, 4):
        return False
    op, more = some(draw, "MaxPool", "AveragePool"), {}
    if draw.random() < 0.4:
        more["ceil_mode"] = 1
    if op == "AveragePool" and draw.random() < 0.5:
        more["count_include_pad"] = 1
    kernel = [draw.randint(1, 3) for _ in range(y.ndim - 2)]
    if draw.random() < 0.3:
        more["strides"] = kernel
        return net.grow(op, [name], kernel_shape=kernel, **more)
    return net.grow(op, [name], kernel_shape=kernel, **window(net, y, draw), **more)


def reduce(net, name, y, draw):
    if draw.random() < 0.3:
        return net.grow(some(draw, "GlobalAveragePool", "GlobalMaxPool"), [name])
    axes = draw.sample(range(y.ndim), draw.randint(1, y.ndim - 1))
    axes = [a - y.ndim if draw.random() < 0.3 else a for a in axes]
    op = some(draw, "ReduceMean", "ReduceMean", "ReduceMax", "ReduceSum")
    return net.axes(op, [name], 13 if op == "ReduceSum" else 18, axes, keepdims=draw.randint(0, 1))


def activation(net, name, y, draw):
    op = some(draw, "Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Clip", "Gelu", "LogSoftmax", "Identity",
              "Dropout", "Swish", "Erf") if draw.random() < 0.9 else some(draw, "HardSigmoid", "Elu", "Softmax", "PRelu")
    if op == "LeakyRelu":
        return net.grow(op, [name], **some(draw, {}, {"alpha": 0.3}, {"alpha": -0.5}))
    if op == "Clip":
        low, high = some(draw, (0, 6), (0, 6), (0, None), (None, 6), (-1, 1), (0, 3))
        return net.grow(op, [name] + [net.constant(v) if v is not None else "" for v in (low, high)])
    if op == "Gelu":
        return net.grow(op, [name], **some(draw, {}, {"approximate": "tanh"}))
    if op in ("Softmax", "LogSoftmax"):
        return net.grow(op, [name], **some(draw, {}, {"axis": 1}, {"axis": -1}, {"axis": y.ndim - 1}))
    if op == "PRelu":
        return net.grow(op, [name, net.numbers(1)])
    if op == "Swish":
        return net.grow("Mul", [name, net.add("Sigmoid", [name])[0]])
    if op == "Erf":
        root = some(draw, 2**0.5, 2**0.5, 1.5)
        b = net.add("Add", [net.add("Erf", [net.add("Div", [name, net.constant(root)])[0]])[0], net.constant(1)])[0]
        return net.grow("Mul", [net.add("Mul", [name, b])[0], net.constant(0.5)])
    return net.grow(op, [name])


def arithmetic(net, name, y, draw):
    op, (other, z) = some(draw, "Add", "Add", "Mul", "Sub"), draw.choice(net.values)
    if draw.random() < 0.5:
        shape = [some(draw, 1, n) for n in y.shape[draw.randint(0, y.ndim - 1):]]
        other = net.numbers(*shape)
    both = [name, other] if draw.random() < 0.6 else [other, name]
    if op == "Add" and draw.random() < 0.15:
        return net.grow("Sum", both + [name])
    return net.grow(op, both)


def concat(net, name, y, draw):
    axis = draw.randrange(y.ndim)
    fits = [n for n, z in net.values if z.ndim == y.ndim and
            all(a == b for i, (a, b) in enumerate(zip(y.shape, z.shape)) if i != axis)]
    chosen = [draw.choice(fits) for _ in range(draw.randint(1, 2))] + [name]
    if draw.random() < 0.1:
        chosen.append(net.numbers(*y.shape))
    draw.shuffle(chosen)
    return net.grow("Concat", chosen, axis=axis - y.ndim if draw.random() < 0.2 else axis)


def cut(net, name, y, draw):
    axis = draw.randrange(1, y.ndim)
    how, size = some(draw, "Slice", "Split", "Gather"), y.shape[axis]
    if how == "Gather":
        return net.grow(how, [name, net.constant(some(draw, draw.randrange(size), -1, [draw.randrange(size)], [0, size - 1]),
                                                 numpy.int64)], axis=axis)
    if how == "Split":
        if draw.random() < 0.5 and net.opset < 18:
            return net.grow(how, [name], 2, axis=axis)
        at = draw.randint(0, size)
        if net.opset < 13:
            return net.grow(how, [name], 2, axis=axis, split=[at, size - at])
        return net.grow(how, [name, net.constant([at, size - at], numpy.int64)], 2, axis=axis)
    start, end = draw.randint(-size - 1, size), some(draw, draw.randint(-size - 1, size + 1), 2**62)
    if draw.random() < 0.15:
        axis = 0
    parts = [[start], [end], [some(draw, axis, axis - y.ndim)], [some(draw, 1, 1, 1, 2, -1)]]
    return net.grow(how, [name] + [net.constant(p, numpy.int64) for p in parts])


def shape_of(net, name, y, draw):
    how = some(draw, "Transpose", "Reshape", "Reshape", "Flatten", "Squeeze", "Unsqueeze")
    if how == "Transpose":
        perm = list(range(y.ndim))
        draw.shuffle(perm)
        return net.grow(how, [name], **({"perm": perm} if draw.random() < 0.9 else {}))
    if how == "Flatten":
        return net.grow(how, [name], axis=some(draw, 1, 1, draw.randint(-y.ndim, y.ndim)))
    if how == "Squeeze":
        ones = [i for i, n in enumerate(y.shape) if n == 1]
        return net.axes(how, [name], 13, draw.sample(ones, draw.randint(1, len(ones)))) if ones else False
    if how == "Unsqueeze":
        return y.ndim < 5 and net.axes(how, [name], 13, [draw.randint(-y.ndim - 1, y.ndim)])
    rest, size, dims = int(y.size // ROWS), None, []
    while rest > 1 and len(dims) < 2:
        size = draw.choice([n for n in range(1, rest + 1) if rest % n == 0])
        dims.append(size)
        rest //= size
    dims = [some(draw, ROWS, -1, 0, 0, -1), *dims, *([rest] if rest > 1 or not dims else [])]
    if draw.random() < 0.2:
        dims[draw.randrange(len(dims))] = some(draw, -1, 0)
    if draw.random() < 0.1:
        dims[0], dims[-1] = dims[-1], dims[0]
    return net.grow(how, [name, net.constant(dims, numpy.int64)], **({"allowzero": 1} if net.opset > 13 and draw.random() < 0.1 else {}))


def norm(net, name, y, draw):
    how, c = some(draw, "BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization"), y.shape[1]
    eps = {} if draw.random() < 0.5 else {"epsilon": 0.01}
    if how == "BatchNormalization":
        variance = net.constant(numpy.abs(formula(c, 3)) + 0.5)
        return net.grow(how, [name, net.numbers(c), net.numbers(c), net.numbers(c), variance], **eps)
    if how == "LayerNormalization":
        axis = draw.randint(-y.ndim, y.ndim - 1)
        shape = y.shape[axis:] if draw.random() < 0.8 else y.shape[-1:]
        return net.grow(how, [name, net.numbers(*shape)] + ([net.numbers(*shape)] if draw.random() < 0.7 else []), axis=axis, **eps)
    if how == "InstanceNormalization":
        return net.grow(how, [name, net.numbers(c), net.numbers(c)], **eps)
    groups = draw.choice([n for n in range(1, c + 1) if c % n == 0])
    width = c if net.opset >= 21 else groups
    return net.grow(how, [name, net.numbers(width), net.numbers(width)], num_groups=groups, **eps)


def product(net, name, y, draw):
    width, k = draw.randint(1, 4), y.shape[-1]
    if y.ndim == 2 and draw.random() < 0.6:
        turned = draw.randint(0, 1)
        bias = some(draw, None, (width,), (1, width), (1,), ())
        more = some(draw, {}, {}, {}, {"alpha": 0.5}, {"beta": 2.0})
        return net.grow("Gemm", [name, net.numbers(*((width, k) if turned else (k, width)))] +
                        ([net.numbers(*bias)] if bias is not None else []), transB=turned, **more)
    if not net.grow("MatMul", [name, net.numbers(k, width)]):
        return False
    if draw.random() < 0.6:
        last, z = net.values[-1]
        net.grow("Add", [last, net.numbers(*some(draw, (width,), (width,), (1,), (1, width), z.shape[1:]))])
    return True


def resize(net, name, y, draw):
    if y.ndim != 4:
        return False
    scale = [1.0, 1.0, *[some(draw, 1.0, 2.0, 2.0, 3.0, 1.5, 0.5) for _ in range(2)]]
    more = {"mode": some(draw, "nearest", "nearest", "linear", "linear", "cubic")}
    if draw.random() < 0.8:
        more["coordinate_transformation_mode"] = some(draw, "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    if more["mode"] == "nearest" and draw.random() < 0.7:
        more["nearest_mode"] = some(draw, "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    if draw.random() < 0.5:
        return net.grow("Resize", [name, "", net.constant(scale)], **more)
    sizes = [int(n * s) for n, s in zip(y.shape, scale)]
    return net.grow("Resize", [name, "", "", net.constant(sizes, numpy.int64)], **more)


def recurrent(net, name, y, draw):
    if y.ndim != 3:
        return False
    op, hidden = some(draw, "LSTM", "GRU", "RNN"), draw.randint(1, 3)
    gates = hidden * {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    steps = net.add("Transpose", [name], perm=[1, 0, 2])[0] if draw.random() < 0.9 else name
    width = y.shape[2]
    more = {"linear_before_reset": draw.randint(0, 1)} if op == "GRU" else {}
    if draw.random() < 0.15:
        more["direction"] = "reverse"
    if draw.random() < 0.1:
        more["clip"] = 0.1
    inputs = [steps, net.numbers(1, gates, width), net.numbers(1, gates, hidden)]
    if draw.random() < 0.7:
        inputs.append(net.numbers(1, 2 * gates))
    before = len(net.nodes)
    out = net.add(op, inputs, 2, hidden_size=hidden, **more)
    zero, one = net.constant([0], numpy.int64), net.constant([1], numpy.int64)
    if draw.random() < 0.5:
        good = net.grow("Squeeze", [out[1], zero] if net.opset >= 13 else [out[1]], **({} if net.opset >= 13 else {"axes": [0]}))
    else:
        rows = net.add("Squeeze", [out[0], one] if net.opset >= 13 else [out[0]], **({} if net.opset >= 13 else {"axes": [1]}))[0]
        good = net.grow("Transpose", [rows], perm=[1, 0, 2])
    if not good:
        del net.nodes[before:]
    return good


KINDS = [conv, conv, pool, pool, reduce, activation, activation, arithmetic, concat, cut, shape_of, shape_of, norm, product,
         product, resize, recurrent]


def draw_nodes(draw):
    net = Net(draw, some(draw, (3,), (6,), (4, 6), (2, 5), (1, 6, 6), (3, 5, 7), (2, 8, 8)))
    for _ in range(draw.randint(1, 5)):
        for _ in range(20):
            name, y = net.values[-1] if draw.random() < 0.8 else draw.choice(net.values)
            if draw.choice(KINDS)(net, name, y, draw):
                break
    name, y = net.values[-1]
    if y.ndim < 2 or y.shape[0] != ROWS:
        return None
    if y.ndim > 2:
        net.grow("Flatten", [name], axis=1)
        name, y = net.values[-1]
    if y.ndim != 2 or not net.grow("Gemm", [name, net.numbers(3, y.shape[1]), net.numbers(3)], transB=1):
        return None
    return net.model(net.values[-1][0]), net.x, net.values[-1][1]


# ---- modules ----

def draw_module(draw, shape):
    from torch import nn
    c, points = shape[0], shape[1:]
    d = len(points)
    act = [nn.ReLU(), nn.SiLU(), nn.GELU(), nn.Hardswish(), nn.Tanh(), nn.ReLU6(), nn.LeakyReLU(0.1), nn.Dropout(0.2),
           nn.GELU("tanh"), nn.Sigmoid(), nn.Hardtanh()]
    if d == 0:
        return draw.choice([nn.Linear(c, draw.randint(1, 5)), nn.LayerNorm(c), nn.BatchNorm1d(c), *act[:8]])
    if draw.random() < 0.3:
        return draw.choice(act)
    s = str(d) + "d"
    kernel, stride = draw.randint(1, 3), draw.randint(1, 2)
    pads = draw.randint(0, kernel // 2)
    group = draw.choice([1, c])
    make = [lambda: getattr(nn, "Conv" + s)(c, group * draw.randint(1, 3), kernel, stride, draw.choice([pads, "valid"]),
                                            1, group, bias=draw.random() < 0.7),
            lambda: getattr(nn, "MaxPool" + s)(kernel, stride, pads, ceil_mode=draw.random() < 0.4),
            lambda: getattr(nn, "AvgPool" + s)(kernel, stride, pads, draw.random() < 0.4, draw.random() < 0.5),
            lambda: getattr(nn, "AdaptiveAvgPool" + s)(draw.choice([1, 2, points[0]])),
            lambda: getattr(nn, "AdaptiveMaxPool" + s)(1),
            lambda: getattr(nn, "BatchNorm" + s)(c), lambda: getattr(nn, "InstanceNorm" + s)(c, affine=True),
            lambda: nn.GroupNorm(draw.choice([n for n in range(1, c + 1) if c % n == 0]), c), lambda: nn.LayerNorm(shape),
            lambda: nn.LayerNorm(shape[-1]), lambda: nn.Flatten(), lambda: nn.Flatten(2), lambda: nn.Linear(shape[-1], 3),
            lambda: nn.Upsample(scale_factor=2, mode=draw.choice(["nearest"] + (["bilinear"] if d == 2 else ["linear"]))),
            lambda: getattr(nn, "ConstantPad" + s)(1, 0.0)]
    return draw.choice(make)()


def draw_torch(draw, seed, dynamo=False):
    import torch
    torch.manual_seed(seed)
    shape = some(draw, (6,), (4, 6), (2, 8), (1, 6, 6), (3, 5, 7), (2, 8, 8))
    x = torch.from_numpy(formula(ROWS * int(numpy.prod(shape)), 99).reshape(ROWS, *shape))
    modules, y = [], x
    for _ in range(draw.randint(1, 6)):
        try:
            module = draw_module(draw, tuple(y.shape[1:])).eval()
            with torch.no_grad():
                z = module(y)
        except Exception:
            continue
        if z.shape[0] == ROWS and z.numel() < 4000:
            modules.append(module)
            y = z
    modules += [torch.nn.Flatten(), torch.nn.Linear(y[0].numel(), 3)]
    net = torch.nn.Sequential(*modules).eval()
    for module in net.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if "running" in name:
                buffer.uniform_(0.5, 1.5)
    file = io.BytesIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            if dynamo:
                shapes = ({0: torch.export.Dim("rows")},) if draw.random() < 0.8 else None
                model = torch.onnx.export(net, (x,), dynamo=True, dynamic_shapes=shapes, verbose=False).model_proto
                return model, x.numpy(), outputs(model, x.numpy())
            torch.onnx.export(net, (x,), file, input_names=["x"], dynamo=False, opset_version=some(draw, 11, 13, 17, 18),
                              dynamic_axes={"x": {0: "rows"}} if draw.random() < 0.8 else None,
                              **({"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
                                 if draw.random() < 0.3 else {}))
            model = onnx.load_from_string(file.getvalue())
            return model, x.numpy(), outputs(model, x.numpy())
        except Exception: # not every network can be exported, and not every export is one
            return None


def drawn(seed):
    """The file, its input and its outputs; None: this seed gives no network. Other versions draw others."""
    draw = random.Random(seed)
    return draw_torch(draw, seed) if seed % 2 else draw_nodes(draw)


# ---- what is done with them ----

def wobble(model, x, y):
    """How far onnxruntime's own outputs go when inputs move by one rounding: some networks make much of little."""
    signs = numpy.where(formula(x.size, 1).reshape(x.shape) < 0, -1, 1)
    return max(float(numpy.abs(outputs(model, (x * (1 + s * signs * 2.0**-23)).astype(numpy.float32)) - y).max()) for s in (-1, 1))


def check(first, count, dynamo):
    import tandem
    path, kinds, bad = "/dev/shm/drawn_%d.onnx" % first, {}, 0
    for seed in range(first, first + count):
        found = draw_torch(random.Random(seed), seed, True) if dynamo else drawn(seed)
        kind = "none"
        if found is not None:
            model, x, y = found
            onnx.save(model, path)
            try:
                got = predict(tandem, path, x)
                off = float(numpy.abs(got - y).max()) if got.shape == y.shape else float("inf")
                kind = "right" if off <= 1e-5 * max(1.0, float(numpy.abs(y).max())) else "WRONG"
                if kind == "WRONG" and off <= 4 * wobble(model, x, y):
                    kind = "right but for rounding"
                if kind == "WRONG":
                    bad += 1
                    print("seed %d: off by %g: %s" % (seed, off, " ".join(n.op_type for n in model.graph.node)))
            except tandem.Error as error:
                kind = "refused"
                print("seed %d: %s" % (seed, str(error).replace(path, "")), file=sys.stderr)
        kinds[kind] = kinds.get(kind, 0) + 1
    pathlib.Path(path).unlink(missing_ok=True)
    print(kinds)
    return 1 if bad else 0


def predict(tandem, path, x):
    with tandem.Run(tandem.onnx_job(path), {"parallel.device_ids": 0}, predicts=True, run_dir=None) as run:
        return run.predict(x.reshape(len(x), -1), ready=True).reshape(len(x), -1)


def write():
    rows = []
    for seed in KEPT:
        model, _, y = drawn(seed)
        onnx.save(model, HERE / "files" / ("random_%d.onnx" % seed))
        rows.append("    {%d, %d, {%s}},\n" % (seed, y.shape[1], ", ".join(map(text, y.ravel()))))
    (HERE / "random.h").write_text(
        "/* Written by make_random.py with onnxruntime %s: what it gives for two rows of files/random_*.onnx. */\n"
        "static const struct {\n    int seed, width;\n    float y[6];\n} networks[] = {\n%s};\n"
        "enum { DRAWN = sizeof networks / sizeof networks[0] };\n" % (onnxruntime.__version__, "".join(rows)))


if __name__ == "__main__":
    sys.exit(check(int(sys.argv[2]), int(sys.argv[3]), sys.argv[1] == "dynamo") if sys.argv[1:] else write())
