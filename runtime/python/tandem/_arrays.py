"""numpy arrays as C takes them: checked, and copied only where they must be."""
from __future__ import annotations

import ctypes
import math

import numpy as np

from . import errors
from ._library import c, check, new


def plain(value, what: str) -> np.ndarray:
    """A tensor of PyTorch (also one that requires grad, or is elsewhere) or anything that numpy takes, as an array."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
        value = value.float().numpy() if str(value.dtype) == "torch.bfloat16" else value.numpy()
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise errors.UsageError(f"{what} has masked numbers; .filled(number) says what they are")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as failed:
        raise errors.UsageError(f"{what}: numpy cannot make an array of it: {failed}") from failed
    if array.dtype.kind not in "fiub":
        raise errors.UsageError(f"{what} must be numbers, got an array of dtype {array.dtype}")
    return array


def floats(value, what: str, also_whole: bool = False) -> np.ndarray:
    """float32, contiguous, in this machine's byte order; a copy unless it is so already. Other floats are rounded."""
    array = plain(value, what)
    if array.dtype.kind != "f" and not also_whole:
        raise errors.UsageError(f"{what} must be floats, got dtype {array.dtype}; write .astype('float32') if that is "
                                "meant")
    return np.asarray(array, dtype=np.float32, order="C")


def labels(value, what: str) -> np.ndarray:
    array = plain(value, what)
    if array.dtype.kind not in "iu":
        raise errors.UsageError(f"{what} must be integers, the labels of classes, got dtype {array.dtype}")
    return np.asarray(array, dtype=np.int64, order="C")


def samples(value, shape, what: str, ready: bool = False) -> tuple[np.ndarray, int]:
    """Samples [rows, *shape], or flat [rows, width], with their kind: float32 is TDM_INPUT_FLOATS, or TDM_INPUT_READY
    with `ready`, uint8 is TDM_INPUT_BYTES."""
    array = plain(value, what)
    width = math.prod(shape)
    if array.ndim == 0 or tuple(array.shape[1:]) not in (tuple(shape), (width,)):
        flat = f" or (rows, {width})" if len(shape) > 1 else ""
        raise errors.UsageError(f"{what} must have the shape (rows, {', '.join(map(str, shape))}){flat}, as the model "
                                f"takes it, got {array.shape}")
    if array.dtype == np.uint8 and not ready:
        return np.asarray(array, order="C"), c.TDM_INPUT_BYTES
    if array.dtype.kind != "f":
        wanted = "float32" if ready else "float32, or uint8 for bytes"
        raise errors.UsageError(f"{what} must be {wanted}, got dtype {array.dtype}; write .astype('float32') if that "
                                "is meant")
    return np.asarray(array, dtype=np.float32, order="C"), c.TDM_INPUT_READY if ready else c.TDM_INPUT_FLOATS


def input_shapes(count: int, get) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
    """{name: shape} of a model's inputs, {} if its input has no name; and the shape of a sample, of several inputs the
    width of their row."""
    shapes, width = {}, 0
    for index in range(count):
        info = new(c.tdm_input_info)
        check(get(index, ctypes.byref(info)))
        shape = tuple(info.dim[:info.ndim])
        width = info.first + info.count
        if info.name is not None:
            shapes[info.name.decode()] = shape
    return shapes, shape if count == 1 else (width,)


def need_dict(value, shapes: dict[str, tuple[int, ...]], what: str) -> None:
    """Refuses a list of arrays, one for each of several inputs: nothing says which is which. A row has one dimension."""
    if len(shapes) > 1 and isinstance(value, (list, tuple)) and any(len(getattr(x, "shape", ())) > 1 for x in value):
        raise errors.UsageError(f"{what}: give a dict; its inputs are {', '.join(shapes)}")


class Inputs:
    """Samples of a model whose inputs have names, a dict of arrays: `array` for C, which borrows them from this."""

    def __init__(self, value: dict, shapes: dict[str, tuple[int, ...]], what: str, ready: bool = False):
        if not shapes:
            raise errors.UsageError(f"{what} is a dict, but the model's input has no name (model.input); give an array")
        names = ", ".join(shapes)
        for name in value:
            if name not in shapes:
                raise errors.UsageError(f"{what}: the model has no input {name!r}; its inputs are {names}")
        for name in shapes:
            if name not in value:
                raise errors.UsageError(f"{what} has no array for the model's input {name!r}; its inputs are {names}")
        self.kept, self.rows = [], None
        self.array = (c.tdm_input_array * len(shapes))()
        for item, (name, shape) in zip(self.array, shapes.items()):
            array, item.input = samples(value[name], shape, f"{what}[{name!r}]", ready)
            if self.rows not in (None, len(array)):
                raise errors.UsageError(f"{what}[{name!r}] has {len(array)} samples, and the inputs before it "
                                        f"{self.rows}")
            self.rows, item.x = len(array), array.ctypes.data
            self.kept.append(array)
