"""The runtime mode of a session: streaming or batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidemill.config import execution_options
from tidemill.errors import NotSupportedError
from tidemill.session.context import SessionContext


def is_batch(context: SessionContext) -> bool:
    """Whether the session plans in batch mode. NotSupportedError for AUTOMATIC, as in Flink's SQL."""
    mode = context.configuration.read(execution_options.RUNTIME_MODE).upper()
    if mode == "AUTOMATIC":
        raise NotSupportedError(
            f"Unsupported mode '{mode}' for '{execution_options.RUNTIME_MODE.key}'. Only an explicit BATCH "
            "mode or STREAMING mode is supported currently."
        )
    return mode == "BATCH"


@contextmanager
def in_mode(context: SessionContext, mode: str) -> Iterator[None]:
    """Within the context, the session plans in this runtime mode."""
    before = context.configuration
    context.configuration = before.with_value(execution_options.RUNTIME_MODE.key, mode)
    try:
        yield
    finally:
        context.configuration = before
