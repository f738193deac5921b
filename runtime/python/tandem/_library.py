"""libtandem: found, loaded once by the first use, and called so that failures are exceptions.

A wheel has the library and what it needs in tandem/_native. TANDEM_LIBRARY names another libtandem.so. ctypes releases
the interpreter's lock during every call, and takes it for callbacks, on whichever thread they come.
"""
from __future__ import annotations

import atexit
import ctypes
import json
import logging
import operator
import os
import re
import threading
import weakref

from . import errors

NATIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_native")
LOGGER = logging.getLogger("tandem")
open_runs: weakref.WeakSet = weakref.WeakSet()  # closed before the interpreter takes callbacks away
_lock = threading.Lock()
_loaded = None

try:
    from . import _declared as c
except ImportError as missing:
    raise ImportError("tandem's declarations of C (tandem/_declared.py) are missing: this is the source folder, not a "
                      "package; make one with tools/wheel, and install dist/*.whl") from missing


def _path() -> str:
    given = os.environ.get("TANDEM_LIBRARY")
    path = given or os.path.join(NATIVE, "lib", "libtandem.so.0")
    if os.path.isfile(path):
        return path
    raise ImportError(f"TANDEM_LIBRARY names {path}, which is no file" if given else
                      f"tandem's library {path} is missing: the package is damaged; install it again, or set "
                      f"TANDEM_LIBRARY to the path of a libtandem.so")


def preload(part: str) -> None:
    """Loads libraries that the wheel has for libtandem or its modules, each after what it needs itself. They have names
    of their own, so they neither take the place of the system's nor are taken for them."""
    listed = os.path.join(NATIVE, "lib", "needs.json")
    if os.environ.get("TANDEM_LIBRARY") or not os.path.exists(listed):
        return
    with open(listed, encoding="utf-8") as file:
        names = json.load(file).get(part, [])
    for name in names:
        try:
            ctypes.CDLL(os.path.join(NATIVE, "lib", name))
        except OSError as failed:  # a module that cannot be used is no failure: `tandem doctor` tells why
            if part == "library":
                raise ImportError(f"tandem's library needs {name}, which cannot be loaded: {failed}") from failed


def _load():
    path = _path()
    preload("library")
    try:
        library = ctypes.CDLL(path)
    except OSError as failed:
        raise ImportError(f"tandem's library cannot be loaded: {failed}") from failed
    for name, (result, arguments) in c.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{path} has no function {name}: it is of another version than this package") from None
        function.restype, function.argtypes = result, arguments
    preload("modules")
    return library


def lib():
    """The library. ImportError says what is missing."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def new(kind, **values):
    """A struct as its INIT macro makes it, with other values."""
    out = kind()
    if hasattr(kind, "size"):
        out.size = ctypes.sizeof(kind)
    for member, value in {**c.INITIAL.get(kind, {}), **values}.items():
        setattr(out, member, value)
    return out


_IN_PYTHON = (  # what the library's sentences call otherwise, as they are written for C and the command
    (r"^tdm_\w+: ", ""),
    (r"tdm_source\.identity", "identity"),
    (r"another run\.dir \(--run-dir\)", "another run_dir"),
    (r"the job has no data.train, and .*?; ", "the job has no data.train; name files there, or give train=(x, y); "),
    (r"add data.eval to the file$", "add it to the job, or give eval=(x, y)"))


def error(status: int) -> errors.Error:
    """This thread's last failure as an exception."""
    record = lib().tdm_error_last().contents
    kind = errors.BY_CODE.get(status, errors.InternalError)
    file = record.file.decode(errors="replace")
    message = record.message.decode(errors="replace") or c.STATUSES.get(status, ("", "unknown"))[1]
    for pattern, words in _IN_PYTHON:
        message = re.sub(pattern, words, message)
    return kind(message, file, record.line, record.column)


def check(status: int) -> None:
    """Raises the exception of a status that is not TDM_OK. Call it on the thread that called."""
    if status != 0:
        raise error(status)


def text(function, *arguments) -> str:
    """Calls a function whose last argument is char **, and takes the text."""
    out = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(out)))
    try:
        return ctypes.string_at(out.value).decode(errors="replace") if out.value else ""
    finally:
        lib().tdm_free(out)


def path_bytes(path) -> bytes:
    """A path for C. UsageError for one that C cannot take."""
    try:
        raw = os.fsencode(path)
    except TypeError:
        raise errors.UsageError(f"a path must be a str, bytes or os.PathLike, got {type(path).__name__}") from None
    return _without_zeros(raw, "a path")


def word(value: str, what: str) -> bytes:
    if not isinstance(value, str):
        raise errors.UsageError(f"{what} must be a str, got {type(value).__name__}")
    return _without_zeros(value.encode(), what)


def _without_zeros(raw: bytes, what: str) -> bytes:
    if b"\0" in raw:  # C would take only what is in front of it
        raise errors.UsageError(f"{what} has no zero bytes, got {raw!r}")
    return raw


def whole(value, what: str, bits: int = 64) -> int:
    """A whole number that fits C's type: ctypes would cut off what is too large."""
    try:
        number = operator.index(value)
    except TypeError:
        raise errors.UsageError(f"{what} must be a whole number, got {value!r}") from None
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise errors.UsageError(f"{what} is out of range: {number}")
    return number


def number(value, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise errors.UsageError(f"{what} must be a number, got {value!r}") from None


# ---- log lines of the library go to logging.getLogger("tandem") ----

_LEVELS = {c.TDM_LOG_ERROR: logging.ERROR, c.TDM_LOG_WARNING: logging.WARNING, c.TDM_LOG_INFO: logging.INFO,
           c.TDM_LOG_DEBUG: logging.DEBUG}


def _log(user, level, subsystem, line):
    LOGGER.log(_LEVELS.get(level, logging.INFO), "%s: %s", subsystem.decode(), line.decode(errors="replace"))


_log_callback = c.tdm_host_log(_log)
_hosts: dict = {}  # by level; they live as long as the process, as every object of the library asks


def host():
    """A tdm_host that logs what LOGGER lets through today."""
    wanted = [level for level, number in _LEVELS.items() if LOGGER.isEnabledFor(number)]
    level = max(wanted, default=c.TDM_LOG_ERROR)
    with _lock_of_hosts:
        if level not in _hosts:
            made = c.tdm_host()
            ctypes.memmove(ctypes.byref(made), lib().tdm_host_default(), ctypes.sizeof(made))
            made.log, made.log_level = _log_callback, level
            _hosts[level] = made
        return ctypes.addressof(_hosts[level])


_lock_of_hosts = threading.Lock()


@atexit.register
def _close_all():
    for one in list(open_runs):
        one._end_at_exit()
