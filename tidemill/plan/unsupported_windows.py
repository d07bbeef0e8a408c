"""What is said of windows, which neither mode runs; batch mode explains window table functions."""

from __future__ import annotations

from tidemill.errors import NotSupportedError
from tidemill.plan.nodes import WindowTableFunction

HINT = (
    "Windows run neither in streaming nor in batch mode."
    " Rows of the same hour, day, ... are grouped by GROUP BY FLOOR(ts TO HOUR)."
)


def window_not_run(node: WindowTableFunction, mode: str) -> NotSupportedError:
    """``mode`` is 'streaming' or 'batch mode'."""
    message = f"The window table function {node.kind.value} is not supported in {mode}"
    return NotSupportedError(message, position=node.position, hint=HINT)
