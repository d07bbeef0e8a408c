"""Limits per user: sessions, waiting and running statements, and bytes of open results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tidemill.config import gateway_options as g
from tidemill.config.option import Configuration
from tidemill.gateway.api import LimitError
from tidemill.gateway.service.operation import Operation
from tidemill.gateway.service.sessions import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """0 is no limit. Each check counts the user's current sessions and operations."""

    sessions: int = 0
    operations: int = 0
    result_bytes: int = 0

    @classmethod
    def of(cls, config: Configuration) -> Self:
        return cls(
            sessions=config.read(g.USER_SESSIONS),
            operations=config.read(g.USER_OPERATIONS),
            result_bytes=config.read(g.USER_RESULTS).bytes,
        )

    def check_session(self, sessions: Sequence[Session]) -> None:
        """LimitError if the user may not open another session."""
        if self.sessions and len(sessions) >= self.sessions:
            raise LimitError(
                f"You have {len(sessions)} sessions open, as many as a user may have.",
                hint=f"Close one, or ask for a larger '{g.USER_SESSIONS.key}'.",
            )

    def check_statement(self, sessions: Sequence[Session]) -> None:
        """LimitError if the user may not run another statement, or has results beyond the limit."""
        if not self.operations and not self.result_bytes:
            return
        operations = [operation for session in sessions for operation in list(session.operations.values())]
        busy = sum(not operation.status.value.is_terminal for operation in operations)
        if self.operations and busy >= self.operations:
            raise LimitError(
                f"{busy} of your statements wait or run, as many as a user may have.",
                hint=f"Wait for one, cancel one, or ask for a larger '{g.USER_OPERATIONS.key}'.",
            )
        size = sum(map(_size, operations)) if self.result_bytes else 0
        if size > self.result_bytes > 0:
            raise LimitError(
                f"Your open results have {size} bytes, more than a user may have.",
                hint=f"Close operations, or ask for a larger '{g.USER_RESULTS.key}'.",
            )


def _size(operation: Operation) -> int:
    return 0 if operation.outcome is None else operation.outcome.pages.bytes
