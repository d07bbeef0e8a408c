"""INSERT and EXECUTE STATEMENT SET."""

from __future__ import annotations

from tidemill.session import binding, inserts
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult
from tidemill.sql import statements as s


def insert(statement: s.Insert, context: SessionContext) -> TableResult:
    return inserts.run_inserts(context, [binding.bind_insert(context, statement)], [statement])


def statement_set(statement: s.StatementSet, context: SessionContext) -> TableResult:
    """All INSERTs as one job: they commit together."""
    sinks = [binding.bind_insert(context, i) for i in statement.inserts]
    return inserts.run_inserts(context, sinks, statement.inserts)
