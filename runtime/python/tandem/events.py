"""What a run reports: small objects that own their numbers."""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

KINDS = ("start", "step", "eval", "checkpoint", "end")


class Event:
    """What `on_event` and `on_step` get. It stays valid after the call.

    kind: "start", "step", "eval", "checkpoint" or "end".  step, steps_total, epoch: counts.
    samples: of this step.  loss, accuracy, top5 (fractions), lr, grad_norm: NaN where they do not apply.
    samples_per_second: a rate.  path: the checkpoint's folder, of "checkpoint" alone; else None.
    ms: milliseconds of each phase of the step, NaN where the mode has no such phase."""
    __slots__ = ("kind", "step", "steps_total", "epoch", "samples", "loss", "accuracy", "lr", "grad_norm",
                 "samples_per_second", "path", "top5", "_phases")

    def __init__(self, event):
        self.kind = KINDS[event.kind] if event.kind < len(KINDS) else str(event.kind)
        self.step, self.steps_total, self.epoch = event.step, event.steps_total, event.epoch
        self.samples, self.samples_per_second = event.samples, event.samples_per_second
        self.loss, self.accuracy, self.top5 = event.loss, event.accuracy, event.top5
        self.lr, self.grad_norm = event.lr, event.grad_norm
        self.path = event.path.decode() if event.path else None
        self._phases = type(event.ms).from_buffer_copy(event.ms)

    @property
    def ms(self) -> dict[str, float]:
        return {name: getattr(self._phases, name) for name, _ in self._phases._fields_}

    def __repr__(self):
        return f"<{self.kind} {self.step}/{self.steps_total} loss={self.loss:.6g} lr={self.lr:.4g}>"


class Pass(NamedTuple):
    """A step that has begun, counted from 1: its samples, their mean loss as it comes, accuracy as a fraction, NaN
    without labels; of all replicas. With train.accumulate: the micro-batch that went forward last, from 1, of how many;
    loss and accuracy are the part of those so far."""
    step: int
    samples: int
    loss: float
    accuracy: float
    micro_batch: int
    micro_batches: int


class Outputs(NamedTuple):
    """What a forward put out, and the targets of the same rows."""
    y: np.ndarray
    target: np.ndarray


class Scores(NamedTuple):
    """What an evaluation says: the mean loss; accuracy and top5 as fractions, NaN without labels; how many samples
    count."""
    loss: float
    accuracy: float
    top5: float
    samples: int


class State(NamedTuple):
    """Where a run stands.

    step, steps_total, epoch, steps_per_epoch, samples: counts.  lr: of the next step, outside groups.
    loss: of the last step, NaN before the first.  replicas, per_device, global_batch: how a step is divided.
    params: learnable numbers.  params_xxh3: a hash of all of them; equal hashes mean equal bits.
    has_ended: train.stop_early has ended the run.  best_step, best_score: of checkpoint.keep_best; 0 and NaN: none.
    stopped: the last train() or step() ended because it was asked to."""
    step: int
    steps_total: int
    epoch: int
    steps_per_epoch: int
    samples: int
    lr: float
    loss: float
    replicas: int
    per_device: int
    global_batch: int
    params: int
    params_xxh3: str
    has_ended: bool
    best_step: int
    best_score: float
    stopped: bool = False


def state_of(raw, stopped: bool = False) -> State:
    values = {name: getattr(raw, name) for name in State._fields if name != "stopped"}
    values["params_xxh3"] = raw.params_xxh3.decode()
    values["has_ended"] = bool(raw.has_ended)
    return State(**values, stopped=stopped)
