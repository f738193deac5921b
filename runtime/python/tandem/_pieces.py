"""A step of a run in pieces: forward, backward, update."""
from __future__ import annotations

import ctypes
from typing import Any, Optional

import numpy as np

from ._library import c, lib, new, word
from ._tensors import fitting
from .events import Event, Outputs, Pass


class Pieces:
    """What a `Run` does with a step in pieces; together they have the bits of `step`.

        run.forward()                              # the next batch: outputs and loss
        scores = run.outputs().y                   # optional
        run.backward()                             # gradients; without a forward, both of it
        run.write_gradient("fc.weight", 0.5 * run.gradient("fc.weight"))
        run.update()                               # or run.skip_update(): the step ends without
    """

    def forward(self) -> Pass:
        """Reads the next batch and computes outputs and loss. Until `backward` or `skip_update` parameters are
        read-only, and nothing is evaluated or predicted. With train.accumulate each call takes the next micro-batch,
        whose gradients `backward` adds; `update` waits until `micro_batch` is `micro_batches`. UnsupportedError in mode
        single with several device_ids; `backward` alone works there."""
        return self._pass("forward", lib().tdm_run_forward)

    def backward(self) -> Pass:
        """Computes the gradients, which `gradient` and `write_gradient` have until the step ends; of the next batch if
        no forward was made. Saving, loading and other steps wait for the step's end."""
        return self._pass("backward", lib().tdm_run_backward)

    def outputs(self) -> Outputs:
        """Copies of what the last `forward` put out, y float32 [rows, outputs], and of its rows' targets: int64 [rows],
        or float32 [rows, outputs]. One replica's rows behind the other's; in ddp those of rank 0. The label of a
        sample that mixup or cutmix mixed is at least 2**62 and packs two classes, as tandem/sys/label.h says."""
        of = new(c.tdm_outputs)
        handle = self._usable("outputs")
        self._check(lib().tdm_run_outputs(handle, ctypes.byref(of)))
        is_label = lib().tdm_job_has_labels(self._config.job)
        y = _copy(of.y, (of.rows, of.width), np.float32)
        return Outputs(y, _copy(of.target, (of.rows,) if is_label else y.shape, np.int64 if is_label else np.float32))

    def update(self) -> Optional[Event]:
        """Ends the step: the optimizer takes the gradients. Returns its event. NumericError if the loss is not finite:
        the step may then be ended by `skip_update`."""
        return self._end("update", lib().tdm_run_update)

    def skip_update(self) -> Optional[Event]:
        """Ends the step without an update; it counts for the schedule and the data. Returns its event."""
        return self._end("skip_update", lib().tdm_run_skip_update)

    def write_gradient(self, name: str, value: Any) -> None:
        """Sets the gradient that `update` takes, in all replicas."""
        array, raw = fitting(name, value, *self._info(name)), word(name, "name")
        with self._calling("write_gradient"):
            self._check(self._ranks.call("write_gradient", (name, array), lambda: lib().tdm_run_write_gradient(
                self._handle, raw, array.ctypes.data, array.nbytes)))

    def _pass(self, what: str, function) -> Pass:
        out = new(c.tdm_pass)
        with self._calling(what):
            self._check(self._ranks.call(what, (), lambda: function(self._handle, ctypes.byref(out))))
        return Pass(out.step, out.samples, out.loss, out.accuracy, out.micro_batch, out.micro_batches)

    def _end(self, what: str, function) -> Optional[Event]:
        self._keeps_event, self._event = True, None
        self._make_steps(what, function)
        return self._event


def _copy(address, shape, dtype) -> np.ndarray:
    out = np.empty(shape, dtype)
    if out.nbytes:
        ctypes.memmove(out.ctypes.data, address, out.nbytes)
    return out
