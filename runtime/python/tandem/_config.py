"""A job: YAML from a file, a text or a dict, with overrides, checked."""
from __future__ import annotations

import ctypes
import json
import os

from . import _arrays, errors
from ._library import c, check, error, host, lib, path_bytes, text, whole, word

THE_JOBS = object()  # a value that was not given: the job's own counts


def _yaml(value) -> str:
    """JSON is YAML; numbers of numpy and paths are taken as well."""
    def other(one):
        if hasattr(one, "tolist"):
            return one.tolist()
        if isinstance(one, os.PathLike):
            return os.fspath(one)
        raise errors.UsageError(f"a job holds numbers, texts, lists and dicts, got {type(one).__name__}")
    return json.dumps(value, default=other)


def _assignments(overrides) -> list[str]:
    if overrides is None:
        return []
    if isinstance(overrides, str):
        return [overrides]
    if hasattr(overrides, "items"):
        return [f"{key}={_yaml(value)}" for key, value in overrides.items()]
    return [str(one) for one in overrides]


class Config:
    """What tdm_config_... knows of a job. `close` frees it."""

    def __init__(self, job, overrides=None, *, steps=None, mode=None, resume=None, run_dir=THE_JOBS, predicts=False,
                 folder=None, name=None):
        self.handle = ctypes.c_void_p()
        try:
            self._open(job, folder, name)
            if predicts:
                check(lib().tdm_config_predicts(self.handle))
            for one in _assignments(overrides):
                check(lib().tdm_config_override(self.handle, one.encode()))
            self._override_short_forms(steps, mode, resume, run_dir)
            self.check()
            if run_dir is THE_JOBS:
                self._take_unused_folder()
        except BaseException:
            self.close()
            raise

    def _open(self, job, folder, name) -> None:
        out = ctypes.byref(self.handle)
        if hasattr(job, "items"):
            job = _yaml(dict(job)) + "\n"
        self.name, self.folder = name or "job", folder
        if isinstance(job, str) and "\n" in job:
            raw = job.encode()
            check(lib().tdm_config_parse(out, host(), raw, len(raw), os.fsencode(self.name),
                                         os.fsencode(folder) if folder else None))
        elif isinstance(job, (str, os.PathLike)):
            self.name, self.folder = os.fspath(job), os.path.dirname(os.path.abspath(job))
            check(lib().tdm_config_open(out, host(), path_bytes(job)))
        else:
            raise errors.UsageError(f"a job is the path of a YAML file, its text, or a dict, got {type(job).__name__}")

    def _override_short_forms(self, steps, mode, resume, run_dir) -> None:
        if steps is not None:
            check(lib().tdm_config_override(self.handle, f"train.steps={whole(steps, 'steps')}".encode()))
            check(lib().tdm_config_override(self.handle, b"train.epochs=null"))
        for key, value in (("parallel.mode", mode), ("checkpoint.resume", resume)):
            if value is not None:
                check(lib().tdm_config_override_text(self.handle, key.encode(), word(os.fspath(value), key)))
        if run_dir is None:
            check(lib().tdm_config_override(self.handle, b"run.dir=null"))
        elif run_dir is not THE_JOBS:
            check(lib().tdm_config_override_text(self.handle, b"run.dir", path_bytes(run_dir)))

    def check(self) -> None:
        """Raises a ConfigError that lists all faults."""
        status = lib().tdm_config_check(self.handle)
        if status == 0:
            return
        failed = error(status)
        faults = []
        for index in range(lib().tdm_config_fault_count(self.handle)):
            fault = lib().tdm_config_fault(self.handle, index).contents
            values = {name: getattr(fault, name) for name, _ in fault._fields_}
            faults.append({name: value.decode(errors="replace") if isinstance(value, bytes) else value
                           for name, value in values.items()})
        if not faults:
            raise failed
        told = type(failed)(text(lib().tdm_config_faults, self.handle, 0).strip())
        told.faults = faults
        told.file, told.line, told.column = (faults[0][name] for name in ("file", "line", "column"))
        raise told

    def _take_unused_folder(self) -> None:
        """A start time has a resolution of a second, so two runs may get the same name: the second gets a suffix."""
        folder, number = self.get("run.dir"), 2
        if folder == "null" or not os.path.exists(folder) or not self._dir_has_its_time():
            return
        while os.path.exists(f"{folder}-{number}"):
            number += 1
        check(lib().tdm_config_override_text(self.handle, b"run.dir", path_bytes(f"{folder}-{number}")))
        self.check()

    def _dir_has_its_time(self) -> bool:
        lines = text(lib().tdm_config_print, self.handle, c.TDM_CONFIG_ORIGINS).splitlines()
        is_default = any(line.strip().startswith("dir:") and line.endswith("# default") for line in lines)
        return is_default or "${start_time}" in self.source

    def get(self, key: str) -> str:
        return text(lib().tdm_config_get, self.handle, key.encode()).strip()

    @property
    def source(self) -> str:
        return lib().tdm_config_source(self.handle).decode()

    @property
    def resolved(self) -> str:
        return text(lib().tdm_config_print, self.handle, c.TDM_CONFIG_RESOLVED)

    @property
    def job(self):
        return lib().tdm_config_job(self.handle)

    @property
    def graph(self):
        return lib().tdm_config_graph(self.handle)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self._inputs()[1]

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        return self._inputs()[0]

    def _inputs(self):
        graph = self.graph
        return _arrays.input_shapes(lib().tdm_graph_input_count(graph),
                                    lambda index, out: lib().tdm_graph_get_input(graph, index, out))

    @property
    def outputs(self) -> int:
        return lib().tdm_graph_output_width(self.graph)

    @property
    def has_labels(self) -> bool:
        return lib().tdm_job_has_labels(self.job)

    def close(self) -> None:
        if self.handle:
            lib().tdm_config_free(self.handle)
            self.handle = ctypes.c_void_p()
