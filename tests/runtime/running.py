"""Runs SQL through the session for the runtime's tests: epoch by epoch, cut small, stopped, resumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tidemill.runtime.progress import EpochProgress
from tidemill.session.environment import TableEnvironment

Row = tuple[Any, ...]
Change = tuple[str, Row]


class Crash(BaseException):
    """Stands for the death of the driver: no handler of the job may catch it and clean up."""


class Session:
    """A session with its own options; ``progress`` hears of every epoch."""

    def __init__(self, options: dict[str, str], fault: Callable[[str], None] = lambda _: None) -> None:
        self.progress: list[EpochProgress] = []
        self.environment = TableEnvironment.create(options)
        self.environment.context.on_progress = self.progress.append
        self.environment.context.fault = fault

    def execute(self, *statements: str) -> None:
        """Runs statements to their end."""
        for statement in statements:
            self.environment.execute_sql(statement).wait()

    def changes(self, query: str) -> list[Change]:
        """The whole changelog of a bounded query."""
        with self.environment.execute_sql(query).collect() as rows:
            return [(row.kind.short, tuple(row)) for row in rows]


def folded(changes: Sequence[Change]) -> Counter[Row]:
    """What a changelog adds up to; fails where a row is taken away that is not there."""
    table: Counter[Row] = Counter()
    for kind, row in changes:
        table[row] += 1 if kind in ("+I", "+U") else -1
        if table[row] < 0:
            raise AssertionError(f"{kind} of {row}, which is not there")
    return +table


def states(changes: Sequence[Change]) -> Iterator[Counter[Row]]:
    """The table after each change."""
    table: Counter[Row] = Counter()
    for kind, row in changes:
        table[row] += 1 if kind in ("+I", "+U") else -1
        yield +table


def crash_at(step: str, time: int) -> Callable[[str], None]:
    """A fault hook that crashes when ``step`` is reached for the ``time``-th time."""
    seen = Counter[str]()

    def hook(reached: str) -> None:
        seen[reached] += 1
        if reached == step and seen[reached] == time:
            raise Crash(step)

    return hook
