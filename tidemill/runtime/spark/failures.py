"""Maps failures of Spark to Tidemill's errors.

- If a row breaks an expression, the error is an ExecutionError. ``raise_error`` names the expression; a
data exception of Spark names Spark's function.
- An error of Tidemill that was raised in a Python worker comes back unchanged.
- If Spark's own reader cannot read a file, the error is a ConnectorError.
- If a process ended under its task, the error is a LostProcessError: the same work may succeed on a second
  try, unless the process was the driver's JVM.
- Any other failure is an InternalError with the first lines of Spark's error and of its root cause.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from urllib.parse import unquote

from pyspark.errors import PySparkException

from tidemill import errors
from tidemill.connectors.worker_errors import find_error
from tidemill.spark_internals.driver import active_context
from tidemill.spark_internals.driver_end import lost_driver
from tidemill.spark_internals.errors import JavaError, java_text

_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\]\s*(.*?)\s*SQLSTATE: ", re.DOTALL)
# SQLSTATE's class 22: a value that an operation cannot take.
_DATA_EXCEPTION = re.compile(r"\[[A-Z0-9_.]+\] ((?:(?!SQLSTATE: ).)*?)\s*SQLSTATE: 22", re.DOTALL)
_BAD_PATTERN = re.compile(r"PatternSyntaxException: (.+?)(?: near index (\d+))?\n(.*?)(?:\n|$)")
_TOO_DEEP = re.compile(r"FAILED_TO_PARSE_TOO_COMPLEX|java\.lang\.StackOverflowError")
# What a worker says before any code of ours runs there: no Python, another one, or one without a library.
_NO_PYTHON = re.compile(r'Cannot run program "([^"]*)"')
_OTHER_PYTHON = re.compile(r"\[PYTHON_VERSION_MISMATCH\] (.*?)(?:\n|$)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
WORKERS_PYTHON = (
    "With --py-env, name a Python for the workers that has the packages: a path on the workers, or an "
    "archive made by venv-pack or conda-pack. Or install the packages on every worker."
)
SENT_TOO_MUCH = "A side of a join is too large to be sent to every task"
_UNSENT = "broadcast the table"
"""What Spark cannot, for want of memory or because it has bounds for it."""
_TOO_LARGE = re.compile(r"spark\.driver\.maxResultSize")
_DISK_FULL = re.compile(
    r"((?:No space left on device|Disk quota exceeded|Read-only file system)(?:: '[^'\n]*')?)"
)
_DENIED = re.compile(
    r"AccessDeniedException: (/[^\n]+)|FileNotFoundException: (/[^\n]+) \(Permission denied\)"
)
_BAD_FILE = re.compile(
    r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (.+?)\.\s+(?:[A-Z][a-z]|SQLSTATE)"
)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+(?:Exception|Error): )?(.*)$", re.MULTILINE)
_LOST = re.compile(
    r"Python worker (?:exited unexpectedly|failed to connect back)"
    r"|reading the port number from"
    r"|ExecutorLostFailure|FetchFailed"
    # What Spark says to a daemon that is gone, and where the other end of a connection is.
    r"|java\.io\.IOException: (?:Stream closed|Broken pipe|Connection reset)"
    r"|java\.io\.EOFException|java\.net\.(?:Socket|Connect)Exception"
)


_NOTHING_PUBLISHED = (
    "A batch job publishes all or nothing. Run it again once there is room, or set 'spark.local.dir' (or "
    "SPARK_LOCAL_DIRS, which wins) to another folder. Exchanges and sorts that exceed the memory write there."
)
_MAY_NOT_WRITE = (
    "Set 'spark.local.dir' (or SPARK_LOCAL_DIRS, which wins) to a folder that Spark's processes may write to."
)


def translated(error: Exception, *, batch: bool = False) -> errors.TidemillError:
    """The TidemillError that ``error``, raised by a Spark action, stands for."""
    if isinstance(error, errors.TidemillError):
        return error
    lost = lost_driver()
    if lost is not None:
        return lost
    text = full_text(error)
    ours = find_error(text)
    if ours is not None:
        return ours
    file = _BAD_FILE.search(text)
    if file:
        return _bad_file(file.group(1), file.group(2), text)
    pattern = _BAD_PATTERN.search(text)
    if pattern:
        return _bad_pattern(*pattern.groups())
    raised = _RAISED.search(text) or _DATA_EXCEPTION.search(text)
    if raised:
        return errors.ExecutionError(raised.group(1))
    if _TOO_DEEP.search(text):
        return errors.NotSupportedError(
            "The statement is nested too deeply for the stack of Spark's Java threads",
            hint="Split it into several views, or start Spark with a larger stack, as in "
            "spark.driver.extraJavaOptions=-Xss64m.",
        )
    worker = _worker_python(text)
    if worker:
        return errors.SetupError(worker, hint=WORKERS_PYTHON)
    if _TOO_LARGE.search(text):
        return errors.ExecutionError(
            "The result is too large for the driver, which collects the rows of a query",
            hint="Write it into a table with INSERT, take a part with LIMIT, or give the driver more room: "
            "spark.driver.maxResultSize and spark.driver.memory.",
        )
    if _UNSENT in text:
        return errors.ExecutionError(
            SENT_TOO_MUCH,
            hint="Lower table.optimizer.join.broadcast-threshold, or give the driver more room: "
            "spark.driver.memory.",
        )
    unwritten = _unwritten(text, batch)
    if unwritten is not None:
        return unwritten
    told = "\n".join(_told(text.strip().splitlines()))
    if _LOST.search(text):
        return errors.LostProcessError(
            f"Spark lost processes repeatedly: {told}",
            hint="Was there enough memory? The kernel's log (dmesg) or the container's log names processes "
            "that were killed for lack of memory.",
        )
    return errors.InternalError(f"Spark failed: {told}")


def _unwritten(text: str, batch: bool) -> errors.TidemillError | None:
    """What a disk has not taken, or kept from us."""
    full, denied = _DISK_FULL.search(text), _DENIED.search(text)
    if full and not batch:
        return errors.StateError(
            f"Writing state or output failed: {full.group(1)}", hint=errors.NOTHING_COMMITTED
        )
    folders = local_folders()
    if full:
        place = "" if "'" in full.group(1) or not folders else f". Spark keeps them in {', '.join(folders)}"
        said = f"Writing temporary files failed: {full.group(1)}{place}"
        return errors.StateError(said, hint=_NOTHING_PUBLISHED)
    if denied is None:
        return None
    path = (denied.group(1) or denied.group(2)).strip()
    if any(path.startswith(f"{folder.rstrip('/')}/") for folder in folders):
        return errors.StateError(
            f"Writing temporary files failed: Permission denied: '{path}'", hint=_MAY_NOT_WRITE
        )
    return errors.ConnectorError(f"Spark's processes may not open {path}: Permission denied")


def local_folders() -> list[str]:
    """Where this process's Spark keeps what it has no memory for."""
    given = os.environ.get("SPARK_LOCAL_DIRS", "")
    context = active_context()
    if not given and context is not None:
        with suppress(JavaError):  # it may have ended
            given = context.getConf().get("spark.local.dir", "") or ""
    return [folder.strip() for folder in given.split(",") if folder.strip()]


def _worker_python(text: str) -> str:
    """What is wrong with the Python of a worker; '' for nothing."""
    missing, other, module = (p.search(text) for p in (_NO_PYTHON, _OTHER_PYTHON, _NO_MODULE))
    if missing:
        return f"A worker of Spark cannot run '{missing.group(1)}', its Python."
    if other:
        return f"The Python of a worker of Spark is not the driver's: {other.group(1)}"
    return f"The Python of a worker of Spark has no module '{module.group(1)}'." if module else ""


def _bad_file(kind: str, place: str, text: str) -> errors.ConnectorError:
    """A file that Spark's own reader could not read."""
    path = unquote(re.sub("^file:/+", "/", place))
    if kind == "FILE_NOT_EXIST":
        return errors.ConnectorError(f"File {path} no longer exists, but not all of it was read.")
    causes = _CAUSE.findall(text)
    return errors.ConnectorError(f"Cannot read file {path}: {causes[-1] if causes else kind}")


def _bad_pattern(reason: str, index: str | None, pattern: str) -> errors.ExecutionError:
    place = "" if index is None else f", at character {int(index) + 1}"
    return errors.ExecutionError(f"The regular expression '{pattern}' is wrong: {reason}{place}")


def _told(lines: list[str]) -> list[str]:
    """What Spark said first, and the last cause: between them are the calls that passed it on."""
    causes = [place for place, line in enumerate(lines) if line.startswith("Caused by: ")]
    return [*lines[:2], *lines[causes[-1] : causes[-1] + 10]] if causes else lines[:12]


def full_text(error: Exception) -> str:
    """The message with the Java causes, whichever of Spark's exception classes it is."""
    parts = [str(error)]
    if isinstance(error, PySparkException):
        parts.append(error.getMessage() or "")
    java = java_text(error)
    return "\n".join([*parts, java] if java else parts)
