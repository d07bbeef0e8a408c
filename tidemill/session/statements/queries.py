"""SELECT, INSERT, EXECUTE STATEMENT SET and EXPLAIN."""

from __future__ import annotations

from functools import singledispatch

from tidemill.errors import NotSupportedError
from tidemill.session import execution, explaining, planning
from tidemill.session.context import SessionContext
from tidemill.session.result import StatementKind, TableResult, listing
from tidemill.session.statements import create_table_as
from tidemill.sql import statements as s
from tidemill.types.logical import STRING, Field


def query(statement: s.Query, context: SessionContext) -> TableResult:
    return execution.run_query(context, planning.bind(context, statement))


def insert(statement: s.Insert, context: SessionContext) -> TableResult:
    return execution.run_inserts(context, [planning.bind_insert(context, statement)])


def statement_set(statement: s.StatementSet, context: SessionContext) -> TableResult:
    """All INSERTs as one job: they commit together."""
    return execution.run_inserts(context, [planning.bind_insert(context, i) for i in statement.inserts])


def explain(statement: s.Explain, context: SessionContext) -> TableResult:
    try:
        text = _explained(statement.target, statement, context)
    except NotSupportedError as e:
        # A node that cannot run has no place in the text: the statement has.
        e.position = e.position or statement.target.position
        raise
    return listing((Field("result", STRING),), [(text,)], StatementKind.EXPLAIN)


@singledispatch
def _explained(target: s.Statement, statement: s.Explain, context: SessionContext) -> str:
    raise NotSupportedError(
        f"EXPLAIN of {type(target).__name__} is not supported", position=statement.position
    )


@_explained.register
def _(target: s.Query, statement: s.Explain, context: SessionContext) -> str:
    return explaining.text(context, [planning.bind(context, target)], statement.details)


@_explained.register
def _(target: s.Insert, statement: s.Explain, context: SessionContext) -> str:
    return explaining.text(context, [planning.bind_insert(context, target)], statement.details)


@_explained.register
def _(target: s.CreateTable, statement: s.Explain, context: SessionContext) -> str:
    return explaining.text(context, [create_table_as.planned(target, context)[1]], statement.details)


@_explained.register
def _(target: s.StatementSet, statement: s.Explain, context: SessionContext) -> str:
    sinks = [planning.bind_insert(context, i) for i in target.inserts]
    return explaining.text(context, sinks, statement.details)


@_explained.register
def _(target: s.Unsupported, statement: s.Explain, context: SessionContext) -> str:
    raise NotSupportedError(f"{target.feature} is not supported", position=target.position)
