"""Samples of the program's own: arrays, which the library reads where they lie, or an object that is indexed."""
from __future__ import annotations

import ctypes
import math
import re

import numpy as np

from . import _arrays, errors
from ._library import c, new


def is_pair(data) -> bool:
    """Whether it is a pair of arrays, not an object that is indexed."""
    is_two = isinstance(data, (tuple, list)) and len(data) == 2
    return is_two and (isinstance(data, tuple) or all(hasattr(part, "shape") for part in data))


class Source:
    """A tdm_source over `data`, and what it borrows."""

    def __init__(self, data, config, what: str, interrupts):
        self.raised: dict[int, BaseException] = {}  # by sample: several threads may read ahead, and several fail
        self.inputs, self.shape, self.width = config.inputs, config.input_shape, math.prod(config.input_shape)
        self.has_labels, self.outputs, self.what, self.interrupts = config.has_labels, config.outputs, what, interrupts
        is_tuple = isinstance(data, tuple) and len(data) != 2 and all(hasattr(part, "shape") for part in data)
        is_inputs = isinstance(data, dict) and any(isinstance(key, str) for key in data)
        if is_tuple or is_inputs or hasattr(data, "shape") and hasattr(data, "dtype"):
            got = f"a tuple of {len(data)}" if is_tuple else "a dict" if is_inputs else "one array"
            raise errors.UsageError(f"{what} is a pair (x, y), got {got}: samples have their labels or targets with "
                                    "them")
        if is_pair(data):
            self._take_arrays(*data)
        elif hasattr(data, "__len__") and hasattr(data, "__getitem__"):
            self._take_object(data)
        else:
            raise errors.UsageError(f"{what} must be a pair of arrays (x, y), or an object with __len__ and "
                                    f"__getitem__ whose items are pairs (x, y), got {type(data).__name__}")

    def _targets(self, value, what: str) -> np.ndarray:
        return _arrays.labels(value, what) if self.has_labels else _arrays.floats(value, what, also_whole=True)

    def _take_arrays(self, x, y) -> None:
        if isinstance(x, dict):
            self.x = _arrays.Inputs(x, self.inputs, f"{self.what}: x")
            rows, given = self.x.rows, {"inputs": ctypes.addressof(self.x.array), "input_count": len(self.x.array)}
        else:
            _arrays.need_dict(x, self.inputs, f"{self.what}: x")
            self.x, kind = _arrays.samples(x, self.shape, f"{self.what}: x")
            rows, given = len(self.x), {"x": self.x.ctypes.data, "input": kind, "width": self.width}
        self.y = self._targets(y, f"{self.what}: y")
        if rows < 1:
            shape = {name: np.shape(part) for name, part in x.items()} if isinstance(x, dict) else self.x.shape
            raise errors.UsageError(f"{self.what} has no samples: x has the shape {shape}")
        wanted = [(rows,)] if self.has_labels else [(rows, self.outputs)] + ([(rows,)] if self.outputs == 1 else [])
        if self.y.shape not in wanted:
            raise errors.UsageError(f"{self.what}: y must have the shape {wanted[0]}, got {self.y.shape}")
        self.struct = new(c.tdm_source, count=rows, has_labels=int(self.has_labels), targets=self.y.ctypes.data,
                          **given)

    def _take_object(self, data) -> None:
        self.data = data
        count = len(data)
        if count < 1:
            raise errors.UsageError(f"{self.what} has no samples: its len() is {count}")
        first, _ = self._item(0)
        _, self.kind = _arrays.samples(np.asarray(first).reshape(1, -1), (self.width,), f"{self.what}[0]: x")
        self.dtype = np.uint8 if self.kind == c.TDM_INPUT_BYTES else np.float32
        self.callback = c.tdm_source_read_rows(self._read_rows)
        identity = getattr(data, "identity", None)
        if identity is not None and not isinstance(identity, str):
            raise errors.UsageError(f"{self.what}.identity must be a text, got {type(identity).__name__}")
        self.identity = identity.encode() if identity is not None else None
        self.struct = new(c.tdm_source, count=count, has_labels=int(self.has_labels), input=self.kind, width=self.width,
                          read_rows=self.callback, identity=self.identity)

    def _item(self, index: int):
        item = self.data[index]
        try:
            x, y = item
        except (TypeError, ValueError):
            raise errors.DataError(f"{self.what}[{index}] must be a pair (x, y), got {type(item).__name__}") from None
        if isinstance(x, dict):
            x = self._row(x, f"{self.what}[{index}]: x")
        x = _arrays.plain(x, f"{self.what}[{index}]: x")
        if x.shape not in (self.shape, (self.width,)):
            raise errors.DataError(f"{self.what}[{index}]: x must have the shape {self.shape}, as the model takes it, "
                                   f"got {x.shape}")
        return x, y

    def _row(self, x: dict, what: str) -> np.ndarray:
        """One sample of several inputs, as the row of their numbers."""
        given = _arrays.Inputs({name: _arrays.plain(part, f"{what}[{name!r}]")[None] for name, part in x.items()},
                               self.inputs, what)
        if len({array.dtype for array in given.kept}) > 1:
            raise errors.DataError(f"{what} has inputs of uint8 and of floats: an object's samples are all of one kind; "
                                   "give a dict of arrays in place of the object, or floats")
        return np.concatenate([array.reshape(-1) for array in given.kept])

    def _fill(self, index: int, x: np.ndarray, target: np.ndarray) -> None:
        given, y = self._item(index)
        if (given.dtype == np.uint8) != (self.dtype == np.uint8) or given.dtype.kind not in "fu":
            raise errors.DataError(f"{self.what}[{index}]: x has dtype {given.dtype}, but sample 0 was "
                                   f"{self.dtype.__name__}")
        x[:] = given.reshape(-1)
        y = self._targets(y, f"{self.what}[{index}]: y")
        if y.size != target.size:
            raise errors.DataError(f"{self.what}[{index}]: y must be {target.size} numbers, got the shape {y.shape}")
        target[:] = y.reshape(-1)

    def _read_rows(self, user, pointer) -> int:
        """Any thread. What is raised is kept, for the thread that called the run."""
        rows, row = pointer.contents, 0
        number = ctypes.c_uint8 if self.dtype == np.uint8 else ctypes.c_float
        target = ctypes.c_int64 if self.has_labels else ctypes.c_float
        try:
            index = _view(rows.index, ctypes.c_int64, rows.rows)
            x = _view(rows.x, number, rows.rows * rows.width).reshape(rows.rows, -1)
            targets = _view(rows.targets, target, rows.rows * rows.target_width).reshape(rows.rows, -1)
            for row in range(rows.rows):
                if self.interrupts():
                    return 1
                self._fill(int(index[row]), x[row], targets[row])
            return 0
        except BaseException as raised:
            rows.failed = int(index[row])
            self.raised[rows.failed] = raised
            return 1

    def take_raised(self, message: str) -> BaseException | None:
        """What the object raised for the sample that the library's message names; None: it raised nothing."""
        found, raised = re.search(r"sample (\d+)", message), self.raised
        self.raised = {}
        return raised.get(int(found[1])) if found else None


def _view(address: int, kind, count: int) -> np.ndarray:
    return np.ctypeslib.as_array((kind * count).from_address(address))
