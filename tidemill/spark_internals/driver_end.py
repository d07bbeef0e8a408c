"""The end of the driver's JVM, told as one error whichever call comes upon it.

Without this, py4j tells of it in many ways: it logs a traceback and says that an error occurred while a
method was called, or its connection is refused. A process that has lost its JVM must be started again.
"""

from __future__ import annotations

import logging
import signal
import subprocess
from typing import Any

from py4j import protocol
from pyspark import SparkContext

from tidemill.errors import LostDriverError

_HINT = (
    "Was there enough memory? The kernel's log (dmesg) or the container's log names processes that were "
    "killed for lack of memory. Start this command again: a job with a checkpoint directory continues after "
    "its last epoch, and a batch job has published nothing."
)
_ENDS_SECONDS = 5.0
"""How long a process may take to end after its connections have."""
_LOGGED = "Exception while sending command."


_JavaEnded: type[LostDriverError] = type("_JavaEnded", (LostDriverError, protocol.Py4JNetworkError), {})
"""The error is one of py4j's, too: handlers of those see it. mypy does not know py4j's classes."""


def watch(gateway: Any) -> None:
    """Calls through ``gateway`` raise LostDriverError once its JVM has ended."""
    client = getattr(gateway, "_gateway_client", None)
    if client is None or "send_command" in vars(client):  # another py4j, or watched
        return
    send = client.send_command

    def send_command(command: str, retry: bool = True, binary: bool = False) -> Any:
        try:
            answer = send(command, retry, binary)
        except OSError as e:
            raise ended(gateway) or _error("") from e
        lost = ended(gateway) if answer == protocol.ERROR else None
        if lost is not None:
            raise lost
        return answer

    client.send_command = send_command
    logging.getLogger().addFilter(_is_news)


def watch_driver() -> None:
    """``watch`` for the JVM of the application that runs in this process."""
    watch(SparkContext._gateway)


def lost_driver() -> LostDriverError | None:
    """The error that stands for all others once this process's JVM has ended."""
    gateway: Any = SparkContext._gateway
    return None if gateway is None else ended(gateway, 0.0)


def ended(gateway: Any, seconds: float = _ENDS_SECONDS) -> LostDriverError | None:
    """How its JVM ended; None if it has not, or if somebody else started it."""
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return None
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    return _error(f", killed by {signal.Signals(-code).name}" if code < 0 else f" with exit status {code}")


def _error(how: str) -> LostDriverError:
    return _JavaEnded(f"The Java process of Spark's driver has ended{how}.", hint=_HINT)


def _is_news(record: logging.LogRecord) -> bool:
    """py4j logs, with a traceback, what it raises."""
    return record.msg != _LOGGED
