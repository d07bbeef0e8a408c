"""Carries a TidemillError out of a Spark Python worker, where only the traceback's text survives.

The worker raises ``WorkerError``, whose text is one line of JSON between markers; the driver finds
it again in whatever Spark wrapped around it.
"""

from __future__ import annotations

import json
import re

from tidemill.errors import (
    ConnectorError,
    ExecutionError,
    InternalError,
    NotSupportedError,
    StateError,
    TidemillError,
    ValidationError,
)

_CARRIED = (ConnectorError, ExecutionError, NotSupportedError, StateError, ValidationError, InternalError)
_KINDS: dict[str, type[TidemillError]] = {e.code: e for e in _CARRIED}
_MARKED = re.compile(r"<<tidemill (\{.*?\}) tidemill>>", re.DOTALL)


class WorkerError(Exception):
    """``error`` as text that survives Spark; JSON keeps it on one line whatever the message holds."""

    def __init__(self, error: TidemillError) -> None:
        payload = {"code": error.code, "message": error.message, "hint": error.hint}
        super().__init__(f"<<tidemill {json.dumps(payload)} tidemill>>")


def find_error(text: str) -> TidemillError | None:
    """The error that a worker raised, found in the text of a Spark exception; None if there is none."""
    match = _MARKED.search(text)
    if match is None:
        return None
    payload = json.loads(match.group(1))
    kind = _KINDS.get(payload["code"], InternalError)
    return kind(payload["message"], hint=payload["hint"])
