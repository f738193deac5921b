#!/usr/bin/env python3
"""Writes files/node_*.onnx, each a few nodes that are a layer or nearly one, and nodes.h: what the real onnxruntime
computes with the former, and what tandem says of the others. Needs onnx and onnxruntime.

    python3 tests/onnx/make_nodes.py
"""
import pathlib

import numpy
import onnx
import onnxruntime
from onnx import helper
from onnx.helper import make_node

HERE = pathlib.Path(__file__).resolve().parent
ROWS, STEPS, IN, HIDDEN = 2, 4, 2, 3


def formula(count, seed):
    """As fill of onnx_made.h."""
    state, out = (seed * 2654435761 + 1) % 2**32, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append((state >> 8) / 2**24 - 0.5)
    return numpy.array(out, numpy.float32)


def weights(*shape):
    return formula(int(numpy.prod(shape)), shape[1]).reshape(shape)


class File:
    """Nodes from 'x' to 'y'. says: why tandem refuses them; None: it does not."""

    def __init__(self, says, shape, nodes, constants, opset=17, rows="batch"):
        self.says, self.shape, self.rows = says, shape, rows
        made = [onnx.numpy_helper.from_array(numpy.asarray(value), name) for name, value in constants.items()]
        graph = helper.make_graph(
            nodes, "nodes", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [rows, *shape])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)], made)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def recurrent(says, op="LSTM", behind=None, constants={}, hidden=HIDDEN, begin=(), **attributes):
    """A layer over the steps of 'x', of which 'all' and 'last' are what ONNX gives."""
    gates = HIDDEN * (3 if op == "GRU" else 4)
    if op == "GRU":
        attributes["linear_before_reset"] = 1
    nodes = [*begin, make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
             make_node(op, ["steps", "w", "r", "b"] + (["", "h0"] if begin else []), ["all", "last"],
                       hidden_size=hidden, **attributes),
             *(behind or [make_node("Squeeze", ["last", "zero"], ["y"])])]
    return File(says, (STEPS, IN), nodes,
                {"w": weights(1, gates, IN), "r": weights(1, gates, HIDDEN), "b": weights(1, 2 * gates),
                 "zero": [0], **constants}, rows=22 if begin else "batch")


def state(says, at):
    """A row of all steps and, behind them, the last again."""
    return recurrent(says, behind=[make_node("Squeeze", ["all", "one"], ["rows"]),
                                   make_node("Concat", ["rows", "last"], ["states"], axis=0),
                                   make_node("Gather", ["states", "at"], ["y"], axis=0)],
                     constants={"one": [1], "at": at})


def begun():
    """66 numbers, of which the last two are not 0."""
    return recurrent("begins with a state of zeros", constants={"size": [1, 22, HIDDEN]}, begin=[
        make_node("Constant", [], ["few"], value_ints=[0] * 64 + [1] * 2),
        make_node("Cast", ["few"], ["floats"], to=onnx.TensorProto.FLOAT),
        make_node("Reshape", ["floats", "size"], ["h0"])])


def behind_linear(says, items, nodes, constants, opset=17):
    """Nodes from a layer's output 'v' of so many items: a model without parameters is refused."""
    return File(says, (3,), [make_node("MatMul", ["x", "k"], ["v"]), *nodes], {"k": weights(3, items), **constants},
                opset)


def split(says, items, parts, at, opset, sizes=None, nodes=(), **attributes):
    outputs = ["y" if i == at else "other%d" % i for i in range(parts)]
    inputs = ["v"] + (["sizes"] if sizes or nodes else [])
    constants = {"sizes": sizes} if sizes else {"one": [1], "two": [2]} if nodes else {}
    part = make_node("Split", inputs, outputs, axis=1, **attributes)
    return behind_linear(says, items, [*nodes, part], constants, opset)


def computed():
    """Sizes 1, 4 and 1 that nodes compute."""
    return split("neighbouring items", 6, 3, 1, 13, nodes=[
        make_node("Mul", ["two", "two"], ["four"]), make_node("Concat", ["one", "four", "one"], ["sizes"], axis=0)])


def gelu(says, first, second):
    nodes = [make_node("Div", [first, second], ["a"]), make_node("Erf", ["a"], ["b"]),
             make_node("Add", ["b", "one"], ["c"]), make_node("Mul", ["v", "c"], ["d"]),
             make_node("Mul", ["d", "half"], ["y"])]
    scalars = {"root": 2**0.5, "one": 1.0, "half": 0.5}
    return behind_linear(says, 5, nodes, {name: numpy.float32(value) for name, value in scalars.items()})


def unsqueeze(says, axes, perm, back):
    nodes = [make_node("Relu", ["v"], ["a"]), make_node("Unsqueeze", ["a", "axes"], ["b"]),
             make_node("Transpose", ["b"], ["c"], perm=perm), make_node("Squeeze", ["c", "back"], ["y"])]
    return behind_linear(says, 5, nodes, {"axes": axes, "back": back})


def pool_row(says, kernel, strides):
    """The mean of a series as of an image of one row: PyTorch's dynamo exporter writes AdaptiveAvgPool1d(2) so."""
    nodes = [make_node("Conv", ["x", "k"], ["v"]), make_node("Unsqueeze", ["v", "height"], ["a"]),
             make_node("AveragePool", ["a"], ["b"], auto_pad="NOTSET", ceil_mode=0, count_include_pad=1, pads=[0] * 4,
                       kernel_shape=kernel, strides=strides),
             make_node("Squeeze", ["b", "height"], ["c"]), make_node("Flatten", ["c"], ["y"])]
    return File(says, (3, 7), nodes, {"k": weights(4, 3, 2), "height": [-2]}, opset=18)


def mean(says, axes, keepdims, unsqueeze, behind=()):
    """Over what Unsqueeze makes of a layer's series: PyTorch's dynamo exporter writes AdaptiveAvgPool1d(1) so."""
    nodes = [make_node("Conv", ["x", "k"], ["v"]), make_node("Unsqueeze", ["v", "new"], ["a"]),
             make_node("ReduceMean", ["a", "axes"], ["b"], keepdims=keepdims),
             *(behind or [make_node("Flatten", ["b"], ["y"])])]
    return File(says, (3, 7), nodes, {"k": weights(4, 3, 2), "new": unsqueeze, "axes": axes}, opset=18)


def gemm(says, **attributes):
    return File(says, (3,), [make_node("Gemm", ["x", "k", "c"], ["y"], **attributes)],
                {"k": weights(3, 4), "c": weights(1, 4)[0]})


USUAL = "Sigmoid for the gates, Tanh for the rest"
FILES = {
    "lstm_usual": recurrent(None, activations=["sigmoid", "Tanh", "TANH"]),
    "lstm_relu": recurrent(USUAL, activations=["Sigmoid", "Relu", "Tanh"]),
    "lstm_alpha": recurrent(USUAL, activations=["Sigmoid", "Tanh", "Tanh"], activation_alpha=[0.5]),
    "lstm_wide": recurrent("a hidden_size of 1 to 16777216", hidden=2**62),
    "lstm_begun": begun(),
    "gru_usual": recurrent(None, "GRU", activations=["Sigmoid", "Tanh"]),
    "gru_few": recurrent(USUAL, "GRU", activations=["Sigmoid"]),
    "gru_hard": recurrent(USUAL, "GRU", activations=["HardSigmoid", "Tanh"]),
    "state_second": state("(Concat), output 'states'", 1),
    "state_last": state(None, -1),
    "split_computed": computed(),
    "split_many": split("65 outputs", 130, 65, 1, 13, sizes=[1] * 64 + [66]),
    "split_even": split(None, 6, 3, 2, 13),
    "split_uneven": split(None, 7, 3, 2, 18, num_outputs=3),
    "split_sizes": split(None, 7, 3, 1, 13, sizes=[1, 4, 2]),
    "split_attribute": split(None, 7, 3, 1, 11, split=[1, 4, 2]),
    "gelu_div": gelu(None, "v", "root"),
    "gelu_by": gelu("(Div), output 'a'", "root", "v"),
    "mean_dynamo": mean(None, [-1, -2], 1, [-2]),
    "mean_alone": mean(None, [3], 0, [1], [make_node("Squeeze", ["b"], ["y"])]),
    "mean_turned": mean(None, [1, 3], 1, [1], [make_node("Transpose", ["b"], ["c"], perm=[2, 1, 0, 3]),
                                               make_node("Transpose", ["c"], ["d"], perm=[2, 1, 0, 3]),
                                               make_node("Flatten", ["d"], ["y"])]),
    "mean_channels": mean("(ReduceMean), output 'b'", [1, 2], 1, [-2]),
    "mean_of_one": mean("(ReduceMean), output 'b'", [2], 1, [2]),
    "pool_row": pool_row(None, [1, 3], [1, 3]),
    "pool_row_uneven": pool_row("(AveragePool), output 'b'", [1, 4], [1, 4]),
    "pool_row_shared": pool_row("(AveragePool), output 'b'", [1, 3], [1, 1]),
    "gemm_plain": gemm(None, alpha=1.0, beta=1.0),
    "gemm_alpha": gemm("alpha 1, beta 1 and transA 0, and this node has 0.5, 1 and 0", alpha=0.5),
    "gemm_beta": gemm("and this node has 1, 2 and 0", beta=2.0),
    "unsqueeze_back": unsqueeze(None, [-1], [0, 2, 1], [1]),
    "unsqueeze_two": unsqueeze(None, [-1, 1], [0, 2, 1, 3], [2, 3]),
    "unsqueeze_equal": unsqueeze("(Unsqueeze), output 'b'", [1, 1], [0, 2, 1, 3], [2, 3]),
}


def text(number):
    digits = "%.9g" % number
    return digits + ("f" if "." in digits or "e" in digits else ".0f")


def main():
    rows = []
    onnx.save(File(None, (3,), [make_node("Relu", ["x"], ["y"])], {}).model, HERE / "files" / "no_parameters.onnx")
    for name, file in FILES.items():
        path, y = HERE / "files" / ("node_%s.onnx" % name), numpy.zeros((1, 0))
        onnx.save(file.model, path)
        if file.says is None:
            x = formula(ROWS * int(numpy.prod(file.shape)), 99).reshape(ROWS, *file.shape)
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            y = session.run(["y"], {"x": x})[0].reshape(ROWS, -1)
        rows.append('    {"%s", "%s", %d, {%s}},\n'
                    % (name, file.says or "", y.shape[1], ", ".join(map(text, y.ravel())) or "0"))
    (HERE / "nodes.h").write_text(
        "/* Written by make_nodes.py with onnxruntime %s: what it gives for two rows of files/node_*.onnx, and what\n"
        " * tandem says of those that it refuses. */\nstatic const struct {\n    const char *name, *says;\n"
        "    int width;\n    float y[16];\n} nodes[] = {\n%s};\nenum { NODES = sizeof nodes / sizeof nodes[0] };\n"
        % (onnxruntime.__version__, "".join(rows)))


if __name__ == "__main__":
    main()
