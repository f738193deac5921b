"""A training run that stays open, and `train`, which opens one and trains it to its end."""
from __future__ import annotations

import ctypes
import math
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np

from . import _arrays, _library, errors
from ._config import THE_JOBS, Config
from ._data import Source
from ._interrupt import Interrupts
from ._library import c, check, lib, new, number, path_bytes, text, whole, word
from ._pieces import Pieces
from ._ranks import join_ranks
from ._tensors import Tensors
from .events import Event, Scores, State, state_of

if TYPE_CHECKING:
    from .model import Model

Job = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Overrides = Union[None, str, Iterable[str], Mapping[str, Any]]
Callback = Callable[[Event], Any]


class Run(Tensors, Pieces):
    """A job with its data, replicas and optimizer, open until `close` or the end of its `with`.

    job: the path of a YAML file, a YAML text (with a newline in it), or a dict of the same keys.
    overrides: {"optimizer.lr": 0.1} or ["optimizer.lr=0.1"]; relative paths in them are the working directory's.
    steps, mode, resume: short forms of train.steps, parallel.mode, checkpoint.resume ("auto", "never" or a path).
    run_dir: the run's folder; None: nothing is written; left out: what the job says, as for the command.
    train, eval: samples of your own instead of the job's data: a pair of arrays (x, y), or an object with __len__ and
        __getitem__ whose items are pairs (x, y). x: float32, or uint8, of the model's input shape; y: integer labels,
        or floats [outputs]. data.transform's normalize applies to x, and to_float to uint8 (runtime/docs/own-data.md).
        Contiguous float32, uint8 and int64 arrays are used in place: do not change them before `close`. With
        data.workers above 0 the object is indexed on several threads.
    on_event, on_step: called with an `Event`, on the thread that trains; on_step for steps only. A true answer stops
        the run after this step, in ddp at most one step later; an exception does, too, and is then raised by the call
        that trains. Neither is called for a step after that; on_event still hears of the checkpoint and the end behind
        a true answer.
    predicts: the run only evaluates and predicts; it has no gradients and no optimizer.

    In mode ddp this process is rank 0, and a process of the same Python is started for every other rank; callbacks are
    called here alone. Under torchrun, srun or mpirun each process is the rank that it is started as.

    Threads: one thread at a time uses a run; `stop` may be called by any. Other misuse is a UsageError, as is use
    after `close`, and in a process that was forked from the one that opened the run."""

    def __init__(self, job: Job, overrides: Overrides = None, *, steps: Optional[int] = None,
                 mode: Optional[str] = None, resume: Optional[str] = None, run_dir: Any = THE_JOBS, train: Any = None,
                 eval: Any = None, on_event: Optional[Callback] = None, on_step: Optional[Callback] = None,
                 predicts: bool = False, _rank: Any = None, _steps: bool = True):
        self._handle = ctypes.c_void_p()
        for what, callback in (("on_event", on_event), ("on_step", on_step)):
            if callback is not None and not callable(callback):
                raise errors.UsageError(f"{what} must be a function of one event, got {type(callback).__name__}")
        self._config = self._ranks = None
        self._pid, self._busy, self._thread, self._inside = os.getpid(), None, 0, False
        self._lock, self._ending = threading.Lock(), threading.Lock()
        self._raised: Optional[BaseException] = None
        self._was_stopped = self._keeps_event = self._has_asked = self._has_trained = False
        self._event: Optional[Event] = None
        self._interrupts = Interrupts()
        self._on_event, self._on_step, self._steps = on_event, on_step, _steps
        try:
            config = self._config = Config(job, overrides, steps=steps, mode=mode, resume=resume, run_dir=run_dir,
                                           predicts=predicts, **(_rank.config if _rank else {}))
            self._sources = {"train": train, "eval": eval}
            for what, data in self._sources.items():
                if data is not None and not isinstance(data, Source):
                    self._sources[what] = Source(data, config, what, lambda: self._interrupts())
            self._open(predicts, _rank, train, eval)
        except BaseException:
            self._free()
            raise
        _library.open_runs.add(self)

    def _open(self, predicts, rank, train, eval) -> None:
        config = self._config
        self._texts = (config.source.encode(), config.resolved.encode())
        options = new(c.tdm_run_options, host=_library.host(), predicts=int(predicts), config_input=self._texts[0],
                      config_yaml=self._texts[1])
        for what, source in self._sources.items():
            if source is not None:
                setattr(options, what, ctypes.addressof(source.struct))
        if self._on_event or self._on_step or self._steps:
            self._callback = c.tdm_run_options_on_event(self._report)
            options.on_event = self._callback
        options.run_ahead = int(not self._on_event and not self._on_step)  # nobody looks at tensors then
        job = config.job
        if predicts:  # in this process alone, whatever the mode
            self._job = ctypes.create_string_buffer(ctypes.string_at(job, ctypes.c_uint32.from_address(job).value))
            job = ctypes.addressof(self._job)
            lib().tdm_job_predicts(job)
        self._ranks = rank or join_ranks(config, train, eval, predicts)
        self._ranks.fill(options)
        with self._calling("open"):
            status = self._ranks.call("open", (), lambda: lib().tdm_run_open(
                ctypes.byref(self._handle), job, config.graph, ctypes.byref(options)))
            self._check(status)

    # ---- calls ----

    def _report(self, pointer, user) -> int:
        """on_event of C. An exception must not leave it: ctypes would only print it."""
        if not self._on_event and not self._on_step:
            if self._keeps_event:
                self._event = Event(pointer.contents)
            return 0
        try:
            event = self._event = Event(pointer.contents)
            is_step = event.kind == "step"
            if self._raised is not None or is_step and self._has_asked:  # in ddp one more step may be under way
                return 0
            self._inside = True
            asked = bool(self._on_event(event)) if self._on_event else False
            if self._on_step and is_step:
                asked = bool(self._on_step(event)) or asked
            self._has_asked = self._has_asked or asked
            return int(asked)
        except BaseException as raised:
            self._inside, self._raised = False, raised
            return 1
        finally:
            self._inside = False

    def _calling(self, what: str, is_long: bool = False) -> _Call:
        return _Call(self, what, is_long)

    def _usable(self, what: str) -> ctypes.c_void_p:
        """The run, for what may also be called in a callback."""
        if os.getpid() != self._pid:
            raise errors.UsageError(f"{what}: process {self._pid} opened the run, and this is its fork; open one here")
        if self._handle.value is None:
            raise errors.UsageError(f"{what}: the run is closed")
        if self._busy is not None and what != "stop" and not self._is_in_callback():
            raise errors.UsageError(f"{what}: the run is busy with {self._busy} on another thread; only stop() may be "
                                    "called")
        return self._handle

    def _is_in_callback(self) -> bool:
        return self._inside and self._thread == threading.get_ident()

    def _check(self, status: int) -> None:
        """Raises what a callback or a source raised, before what the library makes of it."""
        raised, self._raised = self._raised, None
        failed = _library.error(status) if status else None
        if isinstance(failed, errors.DataError):
            for source in filter(None, self._sources.values()):
                raised = raised or source.take_raised(failed.message)
        if raised is not None:
            if isinstance(failed, errors.DataError) and hasattr(raised, "add_note"):
                raised.add_note(f"tandem: {failed}")
            raise raised
        if failed is not None:
            raise failed

    def _make_steps(self, what: str, function, *arguments) -> None:
        self._was_stopped = self._has_asked = False
        self._has_trained = True
        with self._calling(what, is_long=what == "train" or sum(arguments) > 1):
            status = self._ranks.call(what, arguments, lambda: function(self._handle, *arguments))
            self._was_stopped = status == errors.Stopped.code
            self._check(0 if self._was_stopped else status)

    def train(self) -> State:
        """Trains to the end of the job, with evaluations, checkpoints and metrics as the job says. Returns the state;
        state.stopped tells whether a callback or `stop` ended it early, with a checkpoint if there is a run folder.
        Call it again to go on. KeyboardInterrupt after Ctrl-C, with the same checkpoint.
        A RuntimeWarning if the run was at its end when it was opened, as a folder of a finished one is."""
        return self._train(stacklevel=3)

    def _train(self, stacklevel: int) -> State:
        if not self._has_trained:
            self._warn_if_done(stacklevel + 1)
        self._keeps_event = False
        self._make_steps("train", lib().tdm_run_train)
        return self.state

    def _warn_if_done(self, stacklevel: int) -> None:
        state, folder = self.state, self._config.get("run.dir")
        what = "the run" if folder == "null" else folder
        if state.has_ended and state.step < state.steps_total:
            done = f"train.stop_early has ended {what} after step {state.step}; raise train.stop_early.after to go on"
        elif state.step >= state.steps_total:
            done = f"all {state.step} steps of {what} are done; give more steps to go on"
        else:
            return
        warnings.warn(f"nothing to do: {done}, or another run_dir or resume='never' to begin again", RuntimeWarning,
                      stacklevel)

    def step(self, count: int = 1) -> Optional[Event]:
        """Makes `count` steps, without evaluations, checkpoints and metrics. Returns the event of the last one, None if
        the run was stopped before it made any. UsageError if fewer are left."""
        count = whole(count, "count")
        if count < 0:
            raise errors.UsageError(f"count must be at least 0, got {count}")
        self._keeps_event, self._event = True, None
        self._make_steps("step", lib().tdm_run_step, count)
        return self._event

    def stop(self) -> None:
        """Asks the run to finish the steps in flight, save and return. Any thread."""
        with self._ending:
            lib().tdm_run_request_stop(self._usable("stop"))

    def evaluate(self) -> Scores:
        """Evaluates over the eval data."""
        scores = new(c.tdm_scores)
        with self._calling("evaluate"):
            self._check(self._ranks.call("evaluate", (), lambda: lib().tdm_run_evaluate_scores(
                self._handle, ctypes.byref(scores))))
        return Scores(scores.loss, scores.accuracy, scores.top5, scores.samples)

    def predict(self, x: Any, *, ready: bool = False) -> np.ndarray:
        """The outputs float32 [rows, outputs] of samples x [rows, *input shape], float32 or uint8, as those trained on;
        of a model with several inputs {name: [rows, *its shape]}, or their rows [rows, width]. ready: x is what the model takes after data.transform.
        The weights are those that are trained, with train.ema, too."""
        self._usable("predict")
        if isinstance(x, dict):
            given = _arrays.Inputs(x, self._config.inputs, "x", ready)
            rows, function, first = given.rows, lib().tdm_run_predict_inputs, (given.array, len(given.array))
        else:
            _arrays.need_dict(x, self._config.inputs, "x")
            array, kind = _arrays.samples(x, self._config.input_shape, "x", ready)
            rows, function, first = len(array), lib().tdm_run_predict_as, (kind, array.ctypes.data)
        with self._calling("predict"):
            out = np.empty((rows, lib().tdm_run_output_width(self._handle)), np.float32)
            self._check(function(self._handle, *first, rows, out.ctypes.data))
        return out

    # ---- state ----

    @property
    def state(self) -> State:
        """Where the run stands. Hashes all parameters, so it is not free."""
        raw = new(c.tdm_run_state)
        check(lib().tdm_run_get_state(self._usable("state"), ctypes.byref(raw)))
        return state_of(raw, self._was_stopped)

    def set_lr(self, lr: Optional[float], group: int = -1) -> None:
        """Sets the learning rate of the steps to come, of parameters in no group or of optimizer.groups[group]; None
        gives it back to the schedule. Between calls, or in a callback (not there in ddp)."""
        handle = self._usable("set_lr")
        if self._inside and self._ranks.has_followers:
            raise errors.UsageError("set_lr: in ddp a callback cannot set it on the other ranks after the same step; "
                                    "call step() in a loop, and set_lr between its calls")
        rate, group = math.nan if lr is None else number(lr, "lr"), whole(group, "group", 32)
        check(self._ranks.call("set_lr", (lr, group), lambda: lib().tdm_run_set_lr(handle, group, rate)))

    @property
    def classes(self) -> list[str]:
        """The names of the classes; [] if they have none."""
        handle, names = self._usable("classes"), []
        while (name := lib().tdm_run_class_name(handle, len(names))) is not None:
            names.append(name.decode(errors="replace"))
        return names

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one sample; of several inputs the width of their row."""
        self._usable("input_shape")
        return self._config.input_shape

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the model's inputs by their names, in order; {} if its input has no name."""
        self._usable("inputs")
        return self._config.inputs

    def describe(self, what: str = "summary") -> str:
        """A text about the run: "graph", "plan", "plan.json", "summary", "kernels.json" or "evaluation.json"."""
        return text(lib().tdm_run_print, self._usable("describe"), word(what, "what"))

    @property
    def properties(self) -> dict[str, str]:
        """The program's own texts, which checkpoints and exported models keep; a copy. `set_property` changes one."""
        handle, keys = self._usable("properties"), []
        while (key := lib().tdm_run_property_key(handle, len(keys))) is not None:
            keys.append(key)
        return {key.decode(): lib().tdm_run_property(handle, key).decode() for key in keys}

    def set_property(self, key: str, value: Optional[str]) -> None:
        """Sets a property; None removes it."""
        given = None if value is None else word(value, "value")
        check(lib().tdm_run_set_property(self._usable("set_property"), word(key, "key"), given))

    # ---- checkpoints ----

    def save(self, folder: Any) -> str:
        """Saves a checkpoint in `folder`, and returns its path, folder/step-NNNNNNNN."""
        raw = path_bytes(folder)
        with self._calling("save"):
            self._check(self._ranks.call("save", (raw,), lambda: lib().tdm_run_save(self._handle, raw)))
        return os.path.join(os.fsdecode(raw), f"step-{self.state.step:08d}")

    def save_bytes(self) -> bytes:
        """The files of a checkpoint as one tar archive, for `load`. `export` makes a model of a run."""
        return self._written("save_bytes", lambda writer: lib().tdm_run_save_to(self._handle, writer))

    def _written(self, what: str, function, *given: Any) -> bytes:
        """What `function` writes to a tdm_writer; b"" on ranks that are not 0."""
        buffer = new(c.tdm_buffer)
        address = ctypes.cast(lib().tdm_buffer_write, ctypes.c_void_p).value
        writer = new(c.tdm_writer, write=c.tdm_writer_write(address), user=ctypes.addressof(buffer))
        try:
            with self._calling(what):
                self._check(self._ranks.call(what, given, lambda: function(ctypes.byref(writer))))
            return ctypes.string_at(buffer.bytes, buffer.count) if buffer.count else b""
        finally:
            lib().tdm_buffer_free(ctypes.byref(buffer))

    def load(self, source: Any) -> None:
        """Restores the run from a step folder, a run folder, or `save_bytes`; of a .safetensors or .pt file, only the
        weights."""
        with self._calling("load"):
            if isinstance(source, (bytes, bytearray, memoryview)):
                raw = bytes(source)
                self._check(self._ranks.call("load_bytes", (), lambda: lib().tdm_run_load_memory(
                    self._handle, raw, len(raw))))
            else:
                path = path_bytes(source)
                self._check(self._ranks.call("load", (path,), lambda: lib().tdm_run_load(self._handle, path)))

    def export(self, to: Any = None, *, onnx: bool = False) -> bytes:
        """The trained model as it is now, as the bytes of one file for `Model`, or with `onnx` for onnxruntime; with
        `to`, a path at which nothing is yet, also written there. Of a run with train.ema and eval.weights: ema, that is
        the average, as for `evaluate`; `predict` takes the weights themselves. Under torchrun, srun or mpirun only rank
        0 writes, the others get b"".

            run.export("model.tandem")
        """
        from .model import write_new
        if to is not None:
            path_bytes(to)
        function = lib().tdm_run_export_onnx_to if onnx else lib().tdm_run_export_to
        raw = self._written("export", lambda writer: function(self._handle, writer, None), bool(onnx))
        if to is not None and raw:  # behind the call: all ranks have to make it
            write_new(to, raw)
        return raw

    def model(self) -> Model:
        """What `export` makes, as a `Model` that only predicts, in memory."""
        from .model import Model
        return Model(self.export())

    # ---- the end ----

    def close(self) -> None:
        """Frees the run. Closing twice is fine; closing in a callback, or while another thread trains, is a
        UsageError."""
        if self._handle.value is None or os.getpid() != self._pid:
            return
        with self._calling("close"):
            self._free()

    def _end_at_exit(self) -> None:
        """Ends what another thread still trains, with its checkpoint, and closes the run."""
        if self._handle.value is None or os.getpid() != self._pid:
            return
        if self._busy is not None:
            lib().tdm_run_request_stop(self._handle)
        if self._lock.acquire(timeout=30):
            self._lock.release()
            self.close()

    def _free(self) -> None:
        with self._ending:
            handle, self._handle = self._handle, ctypes.c_void_p()
        ranks, self._ranks = self._ranks, None
        if ranks is not None:
            ranks.leave()
        if handle.value is not None:
            lib().tdm_run_close(handle)
        if ranks is not None:
            ranks.close()
        if self._config is not None:
            self._config.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *ignored: Any) -> None:
        self.close()

    def __del__(self):
        try:
            self.close()
        except Exception:  # the interpreter may be half gone
            pass

    def __reduce__(self):
        raise errors.UsageError("a Run stays in its process; save() or save_bytes() goes on in another one")

    def __repr__(self):
        return f"<tandem.Run {'closed' if self._handle.value is None else self._config.get('name')}>"


class _Call:
    """One call of a run: it is no other's meanwhile, and Ctrl-C is KeyboardInterrupt behind it."""

    def __init__(self, run: Run, what: str, is_long: bool):
        self.run, self.what = run, what
        self.interrupts = Interrupts(self._stop if is_long or what == "step" else None, is_long, lambda: run._inside)

    def _stop(self) -> None:
        handle = self.run._handle
        if handle.value is not None:
            lib().tdm_run_request_stop(handle)

    def __enter__(self):
        run = self.run
        if self.what != "open":
            run._usable(self.what)
        if run._is_in_callback() or not run._lock.acquire(blocking=False):
            raise errors.UsageError(f"{self.what}: the run is busy with {run._busy}; a callback may read tensors, set "
                                    "the learning rate and stop")
        run._busy, run._thread, run._interrupts = self.what, threading.get_ident(), self.interrupts
        try:
            self.interrupts.__enter__()
        except BaseException:
            run._lock.release()
            raise

    def __exit__(self, *raised):
        try:
            self.interrupts.__exit__(*raised)
        finally:
            self.run._busy = None
            self.run._lock.release()


def train(job: Job, overrides: Overrides = None, **options: Any) -> State:
    """Opens a `Run` with these arguments, trains it to its end, closes it, and returns its last state.

        state = tandem.train("job.yaml", {"optimizer.lr": 3e-4}, steps=500, run_dir="runs/try",
                             on_step=lambda event: print(event))
    """
    with Run(job, overrides, **options, _steps=False) as run:  # without callbacks no step calls Python
        return run._train(stacklevel=3)
