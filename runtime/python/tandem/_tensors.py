"""The tensors of a run by PyTorch's names, as numpy arrays that the caller owns."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _arrays, errors
from ._library import c, check, lib, new, word


class Tensors:
    """What a `Run` does with tensors. Shapes and layouts are PyTorch's; numbers are float32, counters int64. All of it
    is allowed in a callback, too, but for writing in ddp."""

    def _usable(self, what: str):
        raise NotImplementedError

    def _infos(self, count, describe) -> dict[str, tuple]:
        """name: (shape, dtype)"""
        handle, out = self._usable("tensors"), {}
        info = new(c.tdm_tensor_info)
        for index in range(count(handle)):
            check(describe(handle, index, ctypes.byref(info)))
            out[info.name.decode()] = tuple(info.dim[:info.ndim]), np.dtype(np.int64 if info.is_int64 else np.float32)
        return out

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter, then of every buffer, by name."""
        return {name: shape for name, (shape, _) in self._model_infos().items()}

    def _model_infos(self):
        return self._infos(lib().tdm_run_tensor_count, lib().tdm_run_tensor)

    def _info(self, name: str):
        infos = self._model_infos()
        if name not in infos:
            raise errors.UsageError(f"the model has no tensor {name!r}; it has {_some(infos)}")
        return infos[name]

    def read(self, name: str) -> np.ndarray:
        """A copy of a parameter or buffer."""
        shape, dtype = self._info(name)
        out = np.empty(shape, dtype)
        check(lib().tdm_run_read(self._usable("read"), word(name, "name"), out.ctypes.data, out.nbytes))
        return out

    def write(self, name: str, value: Any) -> None:
        """Sets a parameter or buffer in all replicas. value: an array or a tensor of PyTorch of the same shape; floats
        of other widths are rounded."""
        array = fitting(name, value, *self._info(name))
        handle, raw = self._usable("write"), word(name, "name")
        if self._inside and self._ranks.has_followers:
            raise errors.UsageError("write: in ddp a callback cannot write, for the other ranks would have to do it at "
                                    "the same time; write between calls")
        check(self._ranks.call("write", (name,), lambda: lib().tdm_run_write(handle, raw, array.ctypes.data,
                                                                             array.nbytes)))

    def gradient(self, name: str) -> np.ndarray:
        """A copy of a parameter's gradient, as the last step's update took it: over all samples of the step, clipped,
        without weight decay. UsageError before the first step, and for buffers and frozen parameters."""
        shape, dtype = self._info(name)
        out = np.empty(shape, dtype)
        check(lib().tdm_run_read_gradient(self._usable("gradient"), word(name, "name"), out.ctypes.data, out.nbytes))
        return out

    def state_dict(self) -> dict[str, np.ndarray]:
        """All parameters and buffers by name, copies. In PyTorch:

            module.load_state_dict({name: torch.from_numpy(value) for name, value in run.state_dict().items()})
        """
        return {name: self.read(name) for name in self.shapes}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Writes arrays or tensors of PyTorch (module.state_dict()) by name. All are checked before the first is
        written: numbers that are not finite are refused, which `write` takes. strict: the names must be those of the
        model; else only those that both have are written."""
        infos = self._model_infos()
        missing, unknown = sorted(set(infos) - set(state)), sorted(set(state) - set(infos))
        if strict and (missing or unknown):
            raise errors.UsageError(f"load_state_dict: missing {_some(missing)}; not in the model {_some(unknown)}; "
                                    "strict=False loads what fits")
        arrays = {name: fitting(name, state[name], *infos[name]) for name in infos if name in state}
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                raise errors.UsageError(f"load_state_dict: {name} has numbers that are not finite")
        for name, array in arrays.items():
            self.write(name, array)

    def optimizer_state(self) -> dict[str, np.ndarray]:
        """The optimizer's tensors, copies, under torch.optim's names: "exp_avg.fc.weight". {} if it has none."""
        infos, out = self._infos(lib().tdm_run_optimizer_count, lib().tdm_run_optimizer_tensor), {}
        for name, (shape, dtype) in infos.items():
            kind, _, of = name.partition(".")
            out[name] = np.empty(shape, dtype)
            check(lib().tdm_run_read_optimizer(self._usable("optimizer_state"), kind.encode(), of.encode(),
                                               out[name].ctypes.data, out[name].nbytes))
        return out


def fitting(name: str, value: Any, shape, dtype) -> np.ndarray:
    array = _arrays.plain(value, name)
    if tuple(array.shape) != tuple(shape):
        raise errors.UsageError(f"{name} must have the shape {tuple(shape)}, got {tuple(array.shape)}")
    if (array.dtype.kind == "f") != (dtype.kind == "f") or array.dtype.kind == "b":
        raise errors.UsageError(f"{name} must be {dtype.name}, got dtype {array.dtype}")
    return np.asarray(array, dtype=dtype, order="C")


def _some(names) -> str:
    names = list(names)
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return shown or "none"
