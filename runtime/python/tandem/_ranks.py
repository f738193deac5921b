"""The ranks of a run in mode ddp.

A library cannot fork the program that it is in, with its threads and callbacks. So the process that opens the run is
rank 0 itself, and starts a process of the same Python for each other rank (`python -c`, as a new program: nothing of
__main__ runs there). These have the job, and the samples if they are the program's own, and follow rank 0: what it
calls, they call. They never call callbacks. A process that a launcher has started as a rank starts none.
"""
from __future__ import annotations

import ctypes
import json
import mmap
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import warnings

import numpy as np

from . import _arrays, _library, errors
from ._data import is_pair
from ._library import c, check, lib, new

_START = ("import sys; sys.path.insert(0, sys.argv[1]); from tandem._ranks import follow; "
          "follow(*map(int, sys.argv[2:]))")


def join_ranks(config, train, eval, predicts):
    """How this process takes part: alone, as a launcher's rank, or as rank 0 of processes that are started now."""
    if predicts or config.get("parallel.mode") != "ddp":
        return Alone(0)
    facts = new(c.tdm_launch_facts)
    check(lib().tdm_launch_from_env(ctypes.byref(facts)))
    if facts.world > 1:
        return Launched(config, facts)
    world = len(json.loads(config.get("parallel.device_ids"))) // int(config.get("parallel.stages"))
    return Leader(config, world, {"train": train, "eval": eval}) if world > 1 else Alone(1)


def _ends_job(name: str, status: int) -> bool:
    """Must the other ranks hear of it? What may not come now all of them refuse alike, before they wait for one
    another, or rank 0 alone when they no longer do; not so while they open. All of them have a loss that is not finite,
    and skip its update."""
    if status in (errors.UsageError.code, errors.UnsupportedError.code):
        return name == "open"
    return status not in (0, errors.Stopped.code) and (name, status) != ("update", errors.NumericError.code)


class Alone:
    """One process. world 1: as the only rank of its job."""
    has_followers, config = False, {}

    def __init__(self, world: int):
        self.world = world

    def fill(self, options) -> None:
        options.world = self.world

    def call(self, name: str, given: tuple, function) -> int:
        """Calls `function` here and `name` on the followers. Returns the status of C."""
        return function()

    def leave(self) -> None:
        """Before the run is closed."""

    def close(self) -> None:
        """Behind it."""


_FOREVER = 2**63 - 1  # milliseconds: no deadline


def _milliseconds(config, key: str, null: int) -> int:
    seconds = config.get(key)
    return null if seconds == "null" else min(int(_seconds(seconds) * 1000), _FOREVER)


def _seconds(value: str) -> float:
    total, number = 0.0, ""
    units = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600}
    for part in value.replace("ms", "M"):
        if part.isdigit() or part == ".":
            number += part
        else:
            total, number = total + float(number) * units["ms" if part == "M" else part], ""
    return total + (float(number) if number else 0)


class Launched(Alone):
    """A rank of torchrun, srun, mpirun: it meets the others, on this host by shared memory, else over gloo or mpi."""

    def __init__(self, config, facts):
        self.facts, self.fd, self.comm = facts, -1, ctypes.c_void_p()
        method = config.get("parallel.ddp.init_method")
        method = None if method == "null" else method.encode()
        timeout = _milliseconds(config, "parallel.ddp.timeout", _FOREVER)
        heartbeat = _milliseconds(config, "parallel.ddp.heartbeat", 0)
        backend = config.get("parallel.ddp.backend")
        within = backend in ("auto", "shm", "local", "nccl")
        if not within or facts.local_world != facts.world:
            backend = "gloo" if within else backend
            _library.preload(backend)
            options = new(c.tdm_hosts_options, host=_library.host(), init_method=method, timeout_ms=timeout,
                          heartbeat_ms=heartbeat, backend=backend.encode())
            check(lib().tdm_comm_open_hosts(ctypes.byref(self.comm), ctypes.byref(facts), ctypes.byref(options)))
        elif facts.source == c.TDM_LAUNCH_TANDEM and facts.fd >= 0:
            self.fd = os.dup(facts.fd)
        else:
            fd = ctypes.c_int(-1)
            check(lib().tdm_launch_meet(ctypes.byref(fd), ctypes.byref(facts), _library.host(), method, timeout,
                                        heartbeat))
            self.fd = fd.value

    def fill(self, options) -> None:
        facts = self.facts
        options.rank, options.world, options.launch_fd = facts.rank, facts.world, self.fd
        options.comm, options.local_rank, options.local_world = self.comm, facts.local_rank, facts.local_world

    def call(self, name, given, function) -> int:
        status = function()
        if _ends_job(name, status) and self.fd >= 0:
            lib().tdm_launch_abort(self.fd, self.facts.rank, lib().tdm_error_message())
        return status

    def close(self) -> None:
        if self.comm:
            lib().tdm_comm_close(self.comm)
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Follower(Alone):
    """A process that a `Leader` has started."""
    config = {"name": "the job of rank 0"}

    def __init__(self, rank: int, world: int, fd: int):
        self.rank, self.world, self.fd = rank, world, fd

    def fill(self, options) -> None:
        options.rank, options.world, options.launch_fd = self.rank, self.world, self.fd

    def call(self, name, given, function) -> int:
        status = function()
        if _ends_job(name, status):
            lib().tdm_launch_abort(self.fd, self.rank, lib().tdm_error_message())
        return status


class Leader(Alone):
    """Rank 0, and the processes of the others."""
    has_followers = True

    def __init__(self, config, world: int, data: dict):
        self.world, self.followers, self.is_leaving, self.lock = world, [], False, threading.Lock()
        fd = ctypes.c_int(-1)
        check(lib().tdm_launch_create(ctypes.byref(fd), world))
        self.fd = fd.value
        shared = {}
        try:
            shared = {what: _Shared(what, given) for what, given in data.items() if given is not None}
            first = {"path": sys.path, "job": config.resolved, "folder": config.folder, "world": world,
                     "data": {what: one.word for what, one in shared.items()}}
            fds = [fd for one in shared.values() for fd in one.fds]
            for rank in range(1, world):
                self.followers.append(_FollowerProcess(rank, self.fd, fds, {**first, "rank": rank}))
        except BaseException:
            self.leave()
            self.close()
            raise
        finally:
            for one in shared.values():
                one.close()
        for follower in self.followers:
            threading.Thread(target=self._watch, args=(follower,), name="tandem-rank", daemon=True).start()

    def _watch(self, follower) -> None:
        """Ends the job when a process dies, also before it has met the others."""
        code = follower.process.wait()
        with self.lock:
            if not self.is_leaving:
                how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
                why = follower.last_words() or f"rank {follower.rank} (pid {follower.process.pid}) {how}"
                lib().tdm_launch_abort(self.fd, follower.rank, why.encode()[:400])

    def fill(self, options) -> None:
        options.rank, options.world, options.launch_fd = 0, self.world, self.fd

    def call(self, name, given, function) -> int:
        for follower in self.followers:
            follower.send((name, given))
        status = function()
        if _ends_job(name, status):
            lib().tdm_launch_abort(self.fd, 0, lib().tdm_error_message())
        for follower in self.followers:
            follower.receive()
        return status

    def leave(self) -> None:
        with self.lock:
            self.is_leaving = True
        for follower in self.followers:
            follower.send(None)

    def close(self) -> None:
        for follower in self.followers:
            follower.end()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


# ---- between the processes: pickled objects behind their length ----

def _send(fd: int, value) -> None:
    raw = pickle.dumps(value)
    raw = struct.pack("<q", len(raw)) + raw
    while raw:
        raw = raw[os.write(fd, raw):]


def _receive(fd: int):
    def exactly(count: int) -> bytes:
        out = b""
        while len(out) < count:
            part = os.read(fd, count - len(out))
            if not part:
                raise EOFError
            out += part
        return out
    return pickle.loads(exactly(struct.unpack("<q", exactly(8))[0]))


class _FollowerProcess:
    def __init__(self, rank: int, fd: int, shared: list, first: dict):
        if not sys.executable:
            raise errors.UnsupportedError("mode ddp starts a process of this Python for each rank, but sys.executable "
                                          "is empty; use mode dp, or start the ranks with torchrun")
        self.rank, self.words = rank, None
        theirs, self.to = os.pipe()
        self.back, their_back = os.pipe()
        home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        try:
            self.process = subprocess.Popen([sys.executable, "-c", _START, home, str(theirs), str(their_back), str(fd)],
                                            pass_fds=[theirs, their_back, fd, *shared], stdin=subprocess.DEVNULL)
        finally:
            os.close(theirs)
            os.close(their_back)
        self.send(first)

    def send(self, value) -> None:
        try:
            _send(self.to, value)
        except BrokenPipeError:
            pass  # it is dead: the library has told, or will

    def receive(self) -> None:
        try:
            self.words = _receive(self.back) or self.words
        except (EOFError, OSError):
            pass

    def last_words(self):
        """What it said of why it could not begin; None: nothing."""
        return self.words

    def end(self) -> None:
        os.close(self.to)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.back)


class _Shared:
    """Samples for the followers: arrays in memory that all ranks map, or a pickled object."""

    def __init__(self, what: str, data):
        self.fds = []
        if is_pair(data):
            self.word = ("arrays", [self._share_all(f"{what}: {name}", part) for name, part in zip("xy", data)])
            return
        try:
            if type(data).__module__ == "__main__":
                raise pickle.PicklingError("its class is one of __main__, which does not run there")
            self.word = ("object", pickle.dumps(data))
        except (pickle.PicklingError, TypeError, AttributeError) as failed:
            raise errors.UsageError(f"{what}: in ddp every rank is a process, which must get the samples, but {failed}; "
                                    "give arrays, or an object of a module that can be imported and pickled") from failed

    def _share_all(self, what: str, part):
        if isinstance(part, dict):
            return {name: self._share_all(f"{what}[{name!r}]", value) for name, value in part.items()}
        return self._share(np.asarray(_arrays.plain(part, what), order="C"))

    def _share(self, array: np.ndarray):
        fd = os.memfd_create("tandem-samples")
        self.fds.append(fd)
        if array.nbytes:
            os.ftruncate(fd, array.nbytes)
            with mmap.mmap(fd, array.nbytes) as memory:
                np.frombuffer(memory, array.dtype, array.size)[:] = array.reshape(-1)
        return fd, array.dtype.str, array.shape

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)


# ---- in the processes of the other ranks ----

def _given(word):
    kind, value = word
    if kind == "object":
        return pickle.loads(value)
    return tuple(map(_mapped, value))


def _mapped(part):
    if isinstance(part, dict):
        return {name: _mapped(value) for name, value in part.items()}
    fd, dtype, shape = part
    return np.frombuffer(mmap.mmap(fd, 0, prot=mmap.PROT_READ), dtype).reshape(shape)


def _act(run, name: str, given: tuple) -> None:
    if name == "open":
        return
    if name == "write":
        run.write(given[0], np.zeros(run.shapes[given[0]], run._info(given[0])[1]))
    elif name == "load_bytes":
        run.load(b"\0")
    elif name == "export":
        run.export(onnx=given[0])
    else:
        getattr(run, name)(*given)


def follow(commands: int, answers: int, fd: int) -> None:
    """The program of a rank that is not 0: does what rank 0 does, until it leaves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is rank 0's; it stops all
    _library.LOGGER.propagate = False  # rank 0 says it once
    _library.LOGGER.addHandler(_library.logging.NullHandler())
    warnings.simplefilter("ignore")
    try:
        first = _receive(commands)
        sys.path[:] = first["path"]
        from .run import Run
        rank = Follower(first["rank"], first["world"], fd)
        rank.config = {**rank.config, "folder": first["folder"]}
        data = {what: _given(word) for what, word in first["data"].items()}
        run = Run(first["job"], _rank=rank, **data)
    except EOFError:
        return
    except BaseException as failed:
        lib().tdm_launch_abort(fd, first["rank"], f"{type(failed).__name__}: {failed}".encode()[:400])
        sys.exit(getattr(failed, "code", 1))
    with run:
        try:
            while (command := _receive(commands)) is not None:
                try:
                    _act(run, *command)
                    _send(answers, None)
                except errors.Error as failed:  # rank 0 has failed with it
                    _send(answers, str(failed) if _ends_job(command[0], failed.code) else None)
        except (EOFError, BrokenPipeError):
            return  # rank 0 is gone
