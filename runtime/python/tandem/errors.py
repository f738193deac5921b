"""The exceptions: one class for each way in which a call of the library fails."""
from __future__ import annotations


class Error(Exception):
    """A call of tandem failed. str(error) is the library's own sentence, after the position in the user's file.

    code: the number of the status, which is also the exit code of the command.  status: its name, "E_DATA".
    category: what the status means, "bad or missing data".  message: the sentence alone.
    file, line, column: where in the user's file; line 0: there is no such position."""
    code = 1
    status = "E_INTERNAL"
    category = "bug in tandem"

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0):
        position = f"{file}:{line}:{column}: " if file and line else f"{file}: " if file else ""
        super().__init__(f"{position}{message}")
        self.message, self.file, self.line, self.column = message, file, line, column


class InternalError(Error):
    """A bug in tandem: please report it."""


class UsageError(Error, ValueError):
    """Wrong use: a closed run, an array of the wrong shape or type, a name that the model does not have."""
    code, status, category = 2, "E_USAGE", "wrong use of a function or command"


class ConfigError(Error, ValueError):
    """The job has faults. `faults` lists up to 20: dicts of id, file, line, column, key, message, hint, excerpt. file,
    line and column are those of the first."""
    code, status, category = 3, "E_CONFIG", "bad configuration"
    faults: list = []


class DataError(Error):
    """Samples are missing, damaged, or do not fit the model."""
    code, status, category = 4, "E_DATA", "bad or missing data"


class DeviceError(Error):
    """A device is absent or failed."""
    code, status, category = 5, "E_DEVICE", "device absent or failed"


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out."""
    code, status, category = 6, "E_MEMORY", "out of memory"


class CommError(Error):
    """Ranks could not reach each other, or one was lost."""
    code, status, category = 7, "E_COMM", "communication failed or a peer was lost"


class CheckpointError(Error):
    """A checkpoint or model file is missing, damaged, or of another model."""
    code, status, category = 8, "E_CHECKPOINT", "checkpoint missing, damaged or of another model"


class NumericError(Error, ArithmeticError):
    """The loss or the gradient is not finite."""
    code, status, category = 9, "E_NUMERIC", "non-finite numbers"


class StorageError(Error):
    """A file could not be written, or its folder is in use."""
    code, status, category = 10, "E_IO", "storage failed"


class UnsupportedError(Error, NotImplementedError):
    """This build, or this machine, cannot do it."""
    code, status, category = 11, "E_UNSUPPORTED", "not supported in this build"


class CheckError(Error):
    """A check did not hold: replicas differ."""
    code, status, category = 12, "E_CHECK", "a check did not hold"


class Stopped(Error):
    """A run was asked to stop. The package turns it into an answer; only `tandem._library` sees it."""
    code, status, category = 75, "E_STOPPED", "stopped early"


BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}
