#!/usr/bin/env python3
"""Writes files/*.onnx, networks as PyTorch's exporters write them and some nodes that they do not write, and outputs.h:
what the real onnxruntime computes with them. Needs torch, onnx, onnxscript and onnxruntime.

    python3 tests/onnx/make_files.py

ts: the exporter over TorchScript; dynamo: the one over torch.export, whose files lose here what no reader needs, such as
traces. Their numbers are drawn anew only with another version of torch.
"""
import contextlib
import io
import pathlib
import warnings

import numpy
import onnx
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).resolve().parent
ROWS = 2


class Residual(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.down = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.down(x))


class Resnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.layer1 = nn.Sequential(Residual(4, 4, 1), Residual(4, 6, 2))
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        x = self.pool(self.layer1(F.relu(self.conv1(x))))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.ModuleList([nn.Linear(6, 6) for _ in range(9)])
        self.a = [nn.ReLU(), nn.ReLU6(), nn.Sigmoid(), nn.Tanh(), nn.SiLU(), nn.GELU(), nn.GELU(approximate="tanh"),
                  nn.Hardswish(), nn.LeakyReLU(0.2)]

    def forward(self, x):
        for linear, activation in zip(self.f, self.a):
            x = activation(linear(x))
        return F.log_softmax(x, 1)


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(2, 8, 3)
        self.gn = nn.GroupNorm(2, 8)
        self.each = nn.InstanceNorm2d(8, affine=True)
        self.ln = nn.LayerNorm([8, 4, 4])
        self.gn2 = nn.GroupNorm(4, 8, affine=False)
        self.ln2 = nn.LayerNorm(128)
        self.fc = nn.Linear(128, 3)
        for norm in self.gn, self.each, self.ln, self.ln2:
            nn.init.normal_(norm.weight, 1, 0.2)
            nn.init.normal_(norm.bias, 0, 0.2)

    def forward(self, x):
        x = self.gn2(self.ln(self.each(self.gn(self.c(x)))))
        return self.fc(self.ln2(x.view(x.size(0), -1)))


class Series(nn.Module):
    def __init__(self, kind, how, layers):
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 3, padding=1)
        self.bn = nn.BatchNorm1d(4)
        self.rnn = getattr(nn, kind)(4, 5, layers, batch_first=True)
        self.fc = nn.Linear(5, 2)
        self.how = how

    def forward(self, x):
        y, state = self.rnn(F.relu(self.bn(self.conv(x))).transpose(1, 2))
        if self.how == "state":
            state = state[0] if isinstance(state, tuple) else state
            return self.fc(state[-1])
        return self.fc(y[:, -1] if self.how == "last" else y)


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(7, 6)
        self.lin = nn.Linear(6, 4)
        self.gru = nn.GRU(4, 3, batch_first=True)
        self.out = nn.Linear(3, 2)

    def forward(self, x):
        return self.out(self.gru(F.gelu(self.lin(self.emb(x))))[1][-1])


class Sizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(1, 4, 3, padding=1)
        self.b = nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.c = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = F.relu(self.a(x))
        b = F.interpolate(F.relu(self.b(F.avg_pool2d(a, 2))), scale_factor=2, mode="bilinear")
        c = F.interpolate(self.c(torch.cat([a, b], 1)), scale_factor=2)
        c = F.interpolate(c, size=(12, 10), mode="bilinear", align_corners=True)
        return c[:, 1:2].mean([2, 3])


class Views(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(1, 4, 3, 2)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        x = F.adaptive_avg_pool2d(F.max_pool2d(self.c(x), 2, ceil_mode=True), (3, 1))
        return self.fc(F.adaptive_max_pool2d(x, 1).squeeze(-1).squeeze(-1))


class Fresh(nn.Module):
    """Norms as they are before training."""

    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(1, 4, 3)
        self.gn = nn.GroupNorm(2, 4)
        self.each = nn.InstanceNorm2d(4, affine=True)
        self.each2 = nn.InstanceNorm2d(4)
        self.fc = nn.Linear(36, 3)

    def forward(self, x):
        return self.fc(torch.flatten(self.each2(F.relu(self.each(F.relu(self.gn(self.c(x)))))), 1))


def plain():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding="same"), nn.ReLU(), nn.Dropout(0.3), nn.MaxPool2d(2, ceil_mode=True),
                         nn.Flatten(), nn.Linear(80, 4), nn.ReLU(), nn.Linear(4, 3, bias=False))


FILES = {  # file: network, shape of a sample, exporter, opset, is the batch open?
    "resnet_ts": (Resnet, (3, 12, 12), "ts", 17, True),
    "resnet_dynamo": (Resnet, (3, 12, 12), "dynamo", 20, True),
    "activations_ts": (Activations, (6,), "ts", 17, False),
    "activations_dynamo": (Activations, (6,), "dynamo", 20, False),
    "norms_ts13": (Norms, (2, 6, 6), "ts", 13, True),
    "norms_ts": (Norms, (2, 6, 6), "ts", 17, False),
    "norms_dynamo": (Norms, (2, 6, 6), "dynamo", 21, True),
    "lstm_ts": (lambda: Series("LSTM", "last", 2), (3, 7), "ts", 17, True),
    "lstm_dynamo": (lambda: Series("LSTM", "last", 2), (3, 7), "dynamo", 20, True),
    "lstm_all_ts": (lambda: Series("LSTM", "all", 1), (3, 7), "ts", 17, False),
    "gru_state_ts": (lambda: Series("GRU", "state", 2), (3, 7), "ts", 17, False),
    "gru_state_dynamo": (lambda: Series("GRU", "state", 2), (3, 7), "dynamo", 20, False),
    "tokens_ts": (Tokens, (5,), "ts", 17, True),
    "sizes_ts": (Sizes, (1, 6, 8), "ts", 17, True),
    "sizes_dynamo": (Sizes, (1, 6, 8), "dynamo", 20, True),
    "views_ts": (Views, (1, 13, 13), "ts", 17, True),
    "views_dynamo": (Views, (1, 13, 13), "dynamo", 20, False),
    "fresh_ts": (Fresh, (1, 5, 5), "ts", 17, True),
    "plain_ts11": (plain, (1, 9, 8), "ts", 11, True),
    "plain_beside": (plain, (1, 9, 8), "dynamo", 20, True), # its weights are in another file, as by default
}


# Nodes that no exporter of PyTorch writes: from x to y, shape of a sample, rows (None: open), other inputs.
NODE = onnx.helper.make_node
MADE = {
    "pads_same": ([NODE("AveragePool", ["x"], ["p"], kernel_shape=[3, 3], strides=[2, 1], auto_pad="SAME_UPPER"),
                   NODE("Flatten", ["p"], ["f"]), NODE("Gemm", ["f", "w"], ["y"])], (1, 5, 3), None, {"w": (9, 3)}),
}
REFUSED = {
    "mean_uneven": ([NODE("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1],
                          count_include_pad=1)], (1, 7, 7), None, {}),
    "mean_uneven_ceil": ([NODE("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0],
                               count_include_pad=1, ceil_mode=1)], (1, 6, 6), None, {}),
    "bias_of_steps": ([NODE("MatMul", ["x", "w"], ["m"]), NODE("Add", ["m", "b"], ["y"])], (4, 3), None,
                      {"w": (3, 4), "b": (4, 1)}),
    "bias_of_rows": ([NODE("Gemm", ["x", "w", "b"], ["y"])], (3,), 4, {"w": (3, 4), "b": (4, 1)}),
    "scale_of_steps": ([NODE("LayerNormalization", ["x", "w", "b"], ["y"])], (4, 4), None, {"w": (4, 1), "b": (4,)}),
    "resize_axes": ([NODE("Resize", ["x", "", "", "s"], ["y"], mode="linear", axes=[0, 1, 3, 2])], (3, 7, 7), 2,
                    {"s": [2, 3, 10, 14]}),
    "resize_ratio": ([NODE("Resize", ["x", "", "", "s"], ["y"], mode="linear", keep_aspect_ratio_policy="not_larger")],
                     (3, 7, 7), 2, {"s": [2, 3, 10, 14]}),
    "resize_first": ([NODE("Resize", ["x", "", "", "s"], ["y"], mode="linear",
                           coordinate_transformation_mode="pytorch_half_pixel")], (3, 7, 7), 2, {"s": [2, 3, 1, 7]}),
    "groups_of_rows": ([NODE("Reshape", ["x", "to"], ["r"]), NODE("InstanceNormalization", ["r", "one", "zero"], ["n"]),
                        NODE("Shape", ["x"], ["s"]), NODE("Reshape", ["n", "s"], ["y"])], (6, 4), None,
                       {"to": [-1, 2, 6], "one": numpy.ones(2, "f"), "zero": numpy.zeros(2, "f")}),
}


def formula(count, seed):
    """As fill of onnx_made.h."""
    state, out = (seed * 2654435761 + 1) % 2**32, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append((state >> 8) / 2**24 - 0.5)
    return numpy.array(out, numpy.float32)


def lighten(path):
    """Leaves out traces and shapes of values; of what a node is from, the modules stay."""
    model = onnx.load(path, load_external_data=False)
    del model.graph.value_info[:]
    for part in [model.graph, *model.graph.input, *model.graph.output, *model.graph.initializer]:
        del part.metadata_props[:]
    for node in model.graph.node:
        kept = [p for p in node.metadata_props if p.key == "pkg.torch.onnx.name_scopes"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        node.doc_string = ""
    onnx.save(model, path)


def export(name):
    make, shape, exporter, opset, is_open = FILES[name]
    torch.manual_seed(1)
    model = make()
    whole = make is Tokens
    sample = torch.randint(0, 7, (ROWS, *shape)) if whole else torch.randn(ROWS, *shape)
    for _ in range(3): # running statistics
        model(sample)
    model.eval()
    path, beside = HERE / "files" / (name + ".onnx"), name.endswith("_beside")
    options = {"input_names": ["input"], "output_names": ["output"], "opset_version": opset}
    if exporter == "ts":
        options.update(dynamo=False, dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}} if is_open else None)
    else:
        options.update(dynamo=True, external_data=beside)
        if is_open:
            options.update(dynamic_shapes=({0: torch.export.Dim("batch")},))
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(model, (sample,), path, **options)
    if exporter == "dynamo":
        lighten(path)
    count = int(numpy.prod(shape)) * ROWS
    x = (numpy.arange(count) * 5 % 7).astype(numpy.int64) if whole else formula(count, 99)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"input": x.reshape(ROWS, *shape)})[0], whole


def constant(name, of):
    """A tuple is the shape of a parameter; a list is whole numbers."""
    numbers = formula(numpy.prod(of), 7).reshape(of) if isinstance(of, tuple) else of
    kind = numpy.int64 if isinstance(of, list) else numpy.float32
    return onnx.numpy_helper.from_array(numpy.array(numbers, kind), name)


def put_together(name, nodes, shape, rows, others):
    path = HERE / "files" / (name + ".onnx")
    ports = [onnx.helper.make_tensor_value_info(port, onnx.TensorProto.FLOAT, dims)
             for port, dims in (("x", [rows, *shape]), ("y", None))]
    graph = onnx.helper.make_graph(nodes, name, ports[:1], ports[1:], [constant(*other) for other in others.items()])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=8), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = formula(int(numpy.prod(shape)) * (rows or ROWS), 99)
    return session.run(None, {"x": x.reshape(-1, *shape)})[0], False


def main():
    warnings.filterwarnings("ignore")
    rows = []
    for name, of in REFUSED.items():
        put_together("refused_" + name, *of)
    for name in [*FILES, *MADE]:
        y, whole = put_together(name, *MADE[name]) if name in MADE else export(name)
        numbers = ", ".join("%.9gf" % v if "." in "%.9g" % v or "e" in "%.9g" % v else "%.9g.0f" % v for v in y.ravel())
        rows.append('    {"%s", %d, %d, {%s}},\n' % (name, whole, y.size // ROWS, numbers))
    (HERE / "outputs.h").write_text(
        "/* Written by make_files.py with torch %s and onnxruntime %s: what the files give for two rows. In rows of `whole`\n"
        " * numbers these are below 7. */\nstatic const struct {\n    const char *name;\n    int whole, width;\n"
        "    float y[32];\n} outputs[] = {\n%s};\nenum { FILES = sizeof outputs / sizeof outputs[0] };\n"
        % (torch.__version__, onnxruntime.__version__, "".join(rows)))


if __name__ == "__main__":
    main()
