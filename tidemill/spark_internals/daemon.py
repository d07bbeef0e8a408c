"""Spark's Python daemon, whose forked workers run the tasks (``pyspark.daemon``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark import daemon

_DAEMON: Any = daemon
Worker = Callable[..., object]
"""Runs one task; gives the exit code of a worker that is not used again."""


def serve(wrapped: Callable[[Worker], Worker]) -> None:
    """Forks workers until Spark ends the process. ``wrapped`` makes of PySpark's worker the one that runs."""
    _DAEMON.worker = wrapped(_DAEMON.worker)
    _DAEMON.manager()
