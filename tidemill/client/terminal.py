"""The process's output while a command runs: results, progress and warnings, none within another."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tidemill.client.progress import Apart, Progress, progress_on
from tidemill.session.context import SessionContext


@contextmanager
def shown_apart(context: SessionContext) -> Iterator[Progress]:
    """Progress of the session's jobs on standard error; whatever else is written takes its line away first:
    also what sinks print and Spark complains of."""
    progress: Progress = progress_on(sys.stderr, context)
    out, errors = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Apart(out, progress), Apart(errors, progress)
    try:
        yield progress
    finally:
        progress.close()
        sys.stdout, sys.stderr = out, errors


@contextmanager
def warnings_shown() -> Iterator[None]:
    """What sessions warn of comes on standard error."""
    handler = _Warnings()
    logger = logging.getLogger("tidemill")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Warnings(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"Warning: {record.getMessage()}\n")
