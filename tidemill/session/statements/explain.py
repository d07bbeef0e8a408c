"""EXPLAIN."""

from __future__ import annotations

from functools import singledispatch

from tidemill.errors import NotSupportedError
from tidemill.plan import nodes as n
from tidemill.runtime.checkpoint.evolution import backfilled
from tidemill.session import binding, explaining, inserts
from tidemill.session.context import SessionContext
from tidemill.session.mode import is_batch
from tidemill.session.result import StatementKind, TableResult, listing
from tidemill.session.statements import create_table_as
from tidemill.sql import statements as s
from tidemill.types.logical import STRING, Field

_CHANGES = tuple(Field(name, STRING) for name in ("operator", "part", "change", "detail"))


def explain(statement: s.Explain, context: SessionContext) -> TableResult:
    try:
        plans = _explained(statement.target, context)
        if statement.state:
            return _evolution(statement, context, plans)
        text = explaining.text(context, plans, statement.details)
    except NotSupportedError as e:
        # A node that cannot run has no place in the text: the statement has.
        e.position = e.position or statement.target.position
        raise
    return listing((Field("result", STRING),), [(text,)], StatementKind.EXPLAIN)


def _evolution(statement: s.Explain, context: SessionContext, plans: list[n.LogicalNode]) -> TableResult:
    context.permissions.check_place(statement.state, "EXPLAIN EVOLUTION", statement.position)
    if is_batch(context):
        raise NotSupportedError("EXPLAIN EVOLUTION is not supported under batch mode.")
    found = inserts.state_under(context, plans, statement.state)
    changes = (backfilled(found) if inserts.is_backfilled(context) else found).changes
    rows = [(change.operator, change.part or None, change.verdict.value, change.detail) for change in changes]
    return listing(_CHANGES, rows, StatementKind.EXPLAIN)


@singledispatch
def _explained(target: s.Statement, context: SessionContext) -> list[n.LogicalNode]:
    """The bound plans."""
    raise NotSupportedError(f"EXPLAIN of {type(target).__name__} is not supported")


@_explained.register
def _(target: s.Query, context: SessionContext) -> list[n.LogicalNode]:
    return [binding.bind(context, target)]


@_explained.register
def _(target: s.Insert, context: SessionContext) -> list[n.LogicalNode]:
    return [binding.bind_insert(context, target)]


@_explained.register
def _(target: s.CreateTable, context: SessionContext) -> list[n.LogicalNode]:
    return [create_table_as.planned(target, context)[1]]


@_explained.register
def _(target: s.StatementSet, context: SessionContext) -> list[n.LogicalNode]:
    return [binding.bind_insert(context, i) for i in target.inserts]


@_explained.register
def _(target: s.Unsupported, context: SessionContext) -> list[n.LogicalNode]:
    raise NotSupportedError(f"{target.feature} is not supported", position=target.position)
