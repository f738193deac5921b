"""A trained model that only predicts."""
from __future__ import annotations

import ctypes
import os
from typing import Any, NamedTuple, Optional

import numpy as np

from . import _arrays, _library, errors
from ._library import c, check, lib, new, path_bytes, text, whole


class ModelInfo(NamedTuple):
    """What a model is: names and origin ("" if not said), the shape of a sample, numbers of its outputs and learned
    numbers; has_labels: an output is a class's logit; has_logits: an output is the logit of a target of 0 to 1; inputs:
    the shapes of inputs with names, in order, {} if the only one has none (of several, input_shape is that of a row)."""
    name: str
    origin: str
    text: str
    input_shape: tuple[int, ...]
    outputs: int
    parameters: int
    has_labels: bool
    has_logits: bool
    inputs: dict[str, tuple[int, ...]]


class _Handle:
    """The tdm_model, freed when the last call that uses it has returned. No fork of the process frees it."""

    def __init__(self, source: Any, threads: int, precision: Optional[str]):
        self.address, self.pid, self.close = ctypes.c_void_p(), os.getpid(), lib().tdm_model_close
        options = new(c.tdm_model_options, host=_library.host(), threads=whole(threads, "threads", 32),
                      precision=_precision(precision))
        out = ctypes.byref(self.address)
        if isinstance(source, (bytes, bytearray, memoryview)):
            if bytes(source[257:262]) == b"ustar":
                raise errors.UsageError("these bytes are a tar archive, as Run.save_bytes() makes one of a checkpoint, "
                                        "which is for Run.load(); Run.export() makes the bytes of a model")
            self.memory = _aligned(source)
            memory = self.memory
            status = lib().tdm_model_open_memory(out, memory.ctypes.data, memory.nbytes, ctypes.byref(options))
        else:
            status = lib().tdm_model_open(out, path_bytes(source), ctypes.byref(options))
        check(status)

    def __del__(self):
        if self.address.value is not None and self.pid == os.getpid():
            self.close(self.address)


def _precision(name: Optional[str]) -> int:
    values = {None: c.TDM_MODEL_OF_FILE, "f32": c.TDM_MODEL_F32, "bf16": c.TDM_MODEL_BF16}
    if name not in values:
        raise errors.UsageError(f"precision must be 'f32', 'bf16' or None, got {name!r}")
    return values[name]


def _aligned(source) -> np.ndarray:
    """A copy that begins at a multiple of 64: the library then uses weights where they lie."""
    given = np.frombuffer(source, np.uint8)
    room = np.empty(given.size + 64, np.uint8)
    first = -room.ctypes.data % 64
    out = room[first:first + given.size]
    out[:] = given
    return out


class Target(NamedTuple):
    """What a table says is to be predicted. Of a number that was standardized, an output times stdev plus mean is in the
    column's unit; else mean is 0 and stdev 1."""
    name: str
    mean: float
    stdev: float


class Model:
    """One file, or its bytes, that predicts: model(x), numpy in, numpy out.

    source: a path that `export` or `tandem export` wrote, the model.safetensors of a checkpoint, or the bytes of one
    (copied). threads: that one call computes on; they change no bit. precision: what the model computes in, 'f32' or
    'bf16'; None: what the file says.

    Any number of threads may call a model at once. `close` is allowed while they do: the last call frees it."""

    def __init__(self, source: Any, *, threads: int = 1, precision: Optional[str] = None):
        self._handle: Optional[_Handle] = None
        if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
            raise errors.UsageError(f"{os.fspath(source)} is a folder; tandem.export makes one file of a run")
        self._handle = _Handle(source, threads, precision)
        raw = new(c.tdm_model_info)
        check(lib().tdm_model_get_info(self._handle.address, ctypes.byref(raw)))
        texts = ((value or b"").decode(errors="replace") for value in (raw.name, raw.origin, raw.text))
        inputs, _ = _arrays.input_shapes(lib().tdm_model_input_count(self._handle.address),
                                         lambda at, out: lib().tdm_model_get_input(self._handle.address, at, out))
        self.info = ModelInfo(*texts, tuple(raw.input[:raw.input_ndim]), raw.output_width, raw.parameters,
                              bool(raw.has_labels), bool(raw.has_logits), inputs)
        self.classes: list[str] = [lib().tdm_model_class_name(self._handle.address, index).decode(errors="replace")
                                   for index in range(raw.classes)]
        self._width = raw.input_width
        self.columns: list[str] = []  # of a table, in the order of a sample
        while (name := lib().tdm_model_column(self._handle.address, len(self.columns))) is not None:
            self.columns.append(name.decode(errors="replace"))
        target = new(c.tdm_target)
        check(lib().tdm_model_target(self._handle.address, ctypes.byref(target)))
        self.target = Target((target.name or b"").decode(errors="replace"), target.mean, target.stdev)
        self._predict = lib().tdm_model_predict

    def _open(self) -> _Handle:
        handle = self._handle
        if handle is None:
            raise errors.UsageError("the model is closed")
        return handle

    def __call__(self, x: Any, *, ready: bool = False) -> np.ndarray:
        """The outputs, float32: [rows, outputs] of samples [rows, *input shape] or [rows, width], and [outputs] of one
        sample [*input shape]. They are what the loss gets: logits of classes (info.has_labels), before softmax.

        x: float32 (other floats are rounded to it) or uint8, as the data trained on; data.transform is applied to it as
        in evaluation, but for its steps for pictures. ready: x is what the model takes after data.transform.
        Of a model with several inputs x is {name: array}, each as above, or rows of the numbers of all, in order."""
        if isinstance(x, dict):
            return self._of_inputs(x, ready)
        handle, shape = self._open(), self.info.input_shape
        _arrays.need_dict(x, self.info.inputs, "x")
        array = _arrays.plain(x, "x")
        is_one = array.shape == shape
        array, kind = _arrays.samples(array[None] if is_one else array, shape, "x", ready)
        out = np.empty((len(array), self.info.outputs), np.float32)
        check(self._predict(handle.address, kind, array.ctypes.data, len(array), out.ctypes.data))
        return out[0] if is_one else out

    def _of_inputs(self, x: dict, ready: bool) -> np.ndarray:
        handle, shapes = self._open(), self.info.inputs
        arrays = {name: _arrays.plain(value, f"x[{name!r}]") for name, value in x.items()}
        is_one = bool(arrays) and all(array.shape == shapes.get(name) for name, array in arrays.items())
        given = _arrays.Inputs({name: array[None] for name, array in arrays.items()} if is_one else arrays, shapes, "x",
                               ready)
        out = np.empty((given.rows, self.info.outputs), np.float32)
        check(lib().tdm_model_predict_inputs(handle.address, given.array, len(given.array), given.rows,
                                             out.ctypes.data))
        return out[0] if is_one else out

    def picture(self, source: Any) -> np.ndarray:
        """The outputs [outputs] for a picture, JPEG or PNG: a path, or its bytes. All of data.transform is applied as
        in evaluation."""
        handle, x = self._open(), np.empty((1, self._width), np.float32)
        if isinstance(source, (bytes, bytearray, memoryview)):
            raw = bytes(source)
            check(lib().tdm_model_decode_picture(handle.address, raw, len(raw), x.ctypes.data))
        else:
            check(lib().tdm_model_read_picture(handle.address, path_bytes(source), x.ctypes.data))
        return self(x, ready=True)[0]

    def samples(self, rows: Any) -> np.ndarray:
        """Samples [rows, width] of rows of a table, for a model that was trained on one: `model(model.samples(rows))`,
        and x of `Run(..., train=(x, y))`. Each row is a dict by `columns`, or a list in their order; a cell is what the
        table would have: a number, a category, or None, a gap. Numbers are standardized, categories become their
        numbers and gaps are filled as in the data trained on. See `target` for outputs that are numbers."""
        if isinstance(rows, (str, bytes)) or hasattr(rows, "keys") or not hasattr(rows, "__iter__"):
            raise errors.UsageError(f"rows must be a list of rows, got {type(rows).__name__}; of a data frame it is "
                                    ".to_dict('records')")
        handle, rows = self._open(), list(rows)
        x = np.empty((len(rows), self._width), np.float32)
        for index, row in enumerate(rows):
            cells = (ctypes.c_char_p * self._width)(*self._cells(row, f"rows[{index}]"))
            check(lib().tdm_model_read_row(handle.address, cells, x[index].ctypes.data))
        return x

    def _cells(self, row: Any, what: str) -> list:
        if isinstance(row, (str, bytes)) or not hasattr(row, "__len__"):
            raise errors.UsageError(f"{what} must be a dict or a list of cells, got {type(row).__name__}")
        if hasattr(row, "keys"):  # a dict, or what pandas calls a Series
            absent = [name for name in self.columns if name not in row]
            if absent or not self.columns:  # a table without names has none, nor has what is no table
                raise errors.UsageError(f"{what} has no {absent[0]!r}; None is a gap" if absent else
                                        f"{what} is a dict, and the model knows no names of columns; if it was trained "
                                        "on a table, give a list in the order of its columns")
            row = [row[name] for name in self.columns]
        if len(row) != self._width:
            raise errors.UsageError(f"{what} has {len(row)} cells, and a sample {self._width} numbers")
        return [cell if cell is None or isinstance(cell, bytes) else str(cell).encode() for cell in row]

    @property
    def properties(self) -> dict[str, str]:
        """The texts that the program which trained it gave it (`Run.set_property`)."""
        handle, keys = self._open(), []
        while (key := lib().tdm_model_property_key(handle.address, len(keys))) is not None:
            keys.append(key)
        return {key.decode(): lib().tdm_model_property(handle.address, key).decode() for key in keys}

    def close(self) -> None:
        """Frees the model when the last call that is in progress has returned. Closing twice is fine."""
        self._handle = None

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *ignored: Any) -> None:
        self.close()

    def __reduce__(self):
        raise errors.UsageError("a Model stays in its process; give another one the path or the bytes to open")

    def __repr__(self):
        return f"<tandem.Model {self.info.name!r} {self.info.input_shape} -> {self.info.outputs}>"


def export(source: Any, to: Any, *, onnx: bool = False) -> str:
    """Writes the model of a run folder, a step folder, a model.safetensors or an open `Run` into the new file `to`, for
    `Model`, or with `onnx` for onnxruntime. Returns one line about what was written."""
    if hasattr(source, "export"):
        written = source.export(to, onnx=onnx)
        return f"{source.state.params} parameters, {len(written)} bytes, step {source.state.step}"
    _must_be_new(to)
    function = lib().tdm_model_export_onnx if onnx else lib().tdm_model_export
    return text(function, _library.host(), path_bytes(source), path_bytes(to))


def onnx_job(path: Any, *, task: Optional[str] = None, data: Any = None, target: Optional[str] = None) -> str:
    """A job, as YAML for `train` and `Run`, that trains the network of an ONNX file further: on samples drawn by chance,
    or by `task` ("images", "table" or "series") on `data` and its `target`, as `tandem init --onnx` says."""
    words = [None if word is None else path_bytes(word) for word in (task, data, target)]
    return text(lib().tdm_config_starter_onnx, _library.host(), path_bytes(path), *words, 0)


def _must_be_new(to: Any) -> None:
    if os.path.lexists(path_bytes(to)):
        raise errors.StorageError(f"{os.fsdecode(to)} exists; remove it, or choose another name")


def write_new(to: Any, raw: bytes) -> None:
    """Writes a file that must not exist. It is whole as soon as it has its name."""
    _must_be_new(to)
    path = os.fsdecode(to)
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        with open(beside, "xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
    except OSError as failed:
        if not isinstance(failed, FileExistsError) and os.path.lexists(beside):
            os.unlink(beside)
        raise errors.StorageError(f"cannot write {path}: {failed.strerror}") from failed
