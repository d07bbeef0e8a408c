"""Flink SQL on the Spark you already have.

The public names, each loaded when it is first used: a program that asks for the version, or a module
that only declares user functions, does not wait for the planner.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemill.errors import TidemillError
    from tidemill.session.environment import TableEnvironment
    from tidemill.session.jobs.client import JobClient
    from tidemill.session.result import TableResult
    from tidemill.session.rows.row import Row
    from tidemill.session.settings import EnvironmentSettings
    from tidemill.session.statement_set import StatementSet
    from tidemill.session.table import Table
    from tidemill.user_functions.declared import udaf, udf, udtf
    from tidemill.user_functions.kinds import AggregateFunction

_PLACES = {
    "AggregateFunction": "tidemill.user_functions.kinds",
    "EnvironmentSettings": "tidemill.session.settings",
    "JobClient": "tidemill.session.jobs.client",
    "Row": "tidemill.session.rows.row",
    "StatementSet": "tidemill.session.statement_set",
    "Table": "tidemill.session.table",
    "TableEnvironment": "tidemill.session.environment",
    "TableResult": "tidemill.session.result",
    "TidemillError": "tidemill.errors",
    "udaf": "tidemill.user_functions.declared",
    "udf": "tidemill.user_functions.declared",
    "udtf": "tidemill.user_functions.declared",
}
__all__ = [
    "AggregateFunction",
    "EnvironmentSettings",
    "JobClient",
    "Row",
    "StatementSet",
    "Table",
    "TableEnvironment",
    "TableResult",
    "TidemillError",
    "udaf",
    "udf",
    "udtf",
]


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'tidemill' has no attribute '{name}'")
    value: object = getattr(import_module(place), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
