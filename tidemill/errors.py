"""The error tree, cut by who must act.

Every error carries a stable ``code``; where it comes from SQL text also the position (1-based line
and column), what was expected, and a hint what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NOTHING_COMMITTED = (
    "Nothing of this epoch was committed. Start the job again once the cause is gone: it continues after its "
    "last epoch."
)
"""The hint where a job ends because a file could not be written."""
NOTHING_KEPT = (
    "The job has no checkpoint directory, so its state is gone: if you start it again, it begins anew. "
    "With 'execution.checkpointing.dir' a job continues after its last epoch."
)
"""The same of a job whose state was temporary."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in SQL text; both numbers count from 1, as Flink's messages do."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"

    def within(self, inner: Position) -> Position:
        """Where ``inner`` is, a place in a text that begins here."""
        column = inner.column + (self.column - 1 if inner.line == 1 else 0)
        return Position(self.line + inner.line - 1, column)


_EXPECTED, _EXPECTED_OF_MANY = 10, 6
"""So many choices are all named; of more, the first few."""


def _expected(words: tuple[str, ...]) -> str:
    if len(words) <= _EXPECTED:
        return f"Expected one of: {', '.join(words)}"
    named = ", ".join(words[:_EXPECTED_OF_MANY])
    return f"Expected one of: {named}, or {len(words) - _EXPECTED_OF_MANY} others"


def unsupported_options(identifier: str, unknown: Iterable[str], supported: Iterable[str]) -> str:
    """Flink's words for options that a factory does not know."""
    return (
        f"Unsupported options found for '{identifier}'.\n\nUnsupported options:\n\n"
        + "\n".join(sorted(unknown))
        + "\n\nSupported options:\n\n"
        + "\n".join(sorted(supported))
    )


class TidemillError(Exception):
    """Root of all errors that Tidemill raises on purpose."""

    code: str = "INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        position: Position | None = None,
        expected: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        text = self.message
        if self.position is not None and str(self.position) not in text:
            text += f" (at {self.position})"
        return "\n".join([text, *self.advice])

    @property
    def advice(self) -> list[str]:
        """Lines for people: the hint, and some of what was expected."""
        return [*([self.hint] if self.hint else []), *([_expected(self.expected)] if self.expected else [])]


class SqlSyntaxError(TidemillError):
    """The text is not Flink SQL; the author of the statement must act."""

    code = "SQL_SYNTAX"


class ValidationError(TidemillError):
    """The text parses but means nothing: unknown names, wrong types, wrong options."""

    code = "VALIDATION"


class NotPermittedError(TidemillError):
    """What the statement names is not for this session: whoever runs the gateway may open it."""

    code = "NOT_PERMITTED"


class NotSupportedError(TidemillError):
    """Valid Flink SQL that Tidemill does not run; names the feature."""

    code = "NOT_SUPPORTED"


class ConnectorError(TidemillError):
    """Outside data or an outside system: a missing file, a malformed row, a refused connection."""

    code = "CONNECTOR"


class ExecutionError(TidemillError):
    """A row made an expression fail at run time: division by zero, a cast out of range."""

    code = "EXECUTION"


class StateError(TidemillError):
    """A checkpoint directory that cannot be used: locked, of another query, damaged, not writable."""

    code = "STATE"


class OwnershipError(StateError):
    """Another job has the checkpoint directory, or has taken it over."""


class CommitUnknownError(TidemillError):
    """A commit whose outcome is not known; the job must be restarted to find out."""

    code = "COMMIT_UNKNOWN"


class LostProcessError(TidemillError):
    """Processes of Spark's ended or were out of reach, time and again: whoever runs the machines must act."""

    code = "LOST_PROCESS"


class LostDriverError(LostProcessError):
    """The JVM of this process has ended: nothing more can be done with Spark here."""


class SetupError(TidemillError):
    """What Tidemill needs is not on this machine: Java, a package. Whoever set it up must act."""

    code = "SETUP"


class InternalError(TidemillError):
    """A broken invariant of Tidemill itself: please report."""

    code = "INTERNAL"
