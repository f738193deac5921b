"""tandem: trains models described in YAML, data-parallel, and predicts with one file.

    import tandem

    tandem.train("job.yaml", on_step=lambda event: event.loss < 0.1)      # a true answer stops the run
    scores = tandem.Model("model.tandem")(x)                              # numpy in, numpy out

`Run` is a training run that stays open, `Model` a trained model that only predicts, `export` makes one file of a run.
Everything that fails raises a `tandem.Error`. numpy, ctypes and the library are loaded by the first use, not by the
import.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .errors import (CheckError, CheckpointError, CommError, ConfigError, DataError, DeviceError, Error,
                         InternalError, NumericError, OutOfMemoryError, StorageError, UnsupportedError, UsageError)
    from .events import Event, Outputs, Pass, Scores, State
    from .model import Model, ModelInfo, Target, export, onnx_job
    from .run import Run, train

_HOMES = {
    "errors": ["CheckError", "CheckpointError", "CommError", "ConfigError", "DataError", "DeviceError", "Error",
               "InternalError", "NumericError", "OutOfMemoryError", "StorageError", "UnsupportedError", "UsageError"],
    "events": ["Event", "Outputs", "Pass", "Scores", "State"],
    "model": ["Model", "ModelInfo", "Target", "export", "onnx_job"],
    "run": ["Run", "train"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'tandem' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *__all__])
