"""A session for tests, and short ways to ask it."""

from __future__ import annotations

from typing import Any

from tidemill.session.environment import TableEnvironment
from tidemill.session.result import TableResult


def new_session(**options: str) -> TableEnvironment:
    """Option keys with ``__`` for dots and ``_`` for dashes."""
    return TableEnvironment.create({k.replace("__", ".").replace("_", "-"): v for k, v in options.items()})


def rows(result: TableResult) -> list[tuple[Any, ...]]:
    """The values of a result's rows, without their kinds."""
    return [tuple(r) for r in result.collect()]


def ask(session: TableEnvironment, *statements: str) -> list[tuple[Any, ...]]:
    """Runs statements; the rows of the last."""
    results = [session.execute_sql(s) for s in statements]
    return rows(results[-1])
