"""SELECT, VALUES and set operations. Nothing is imported here that literal rows do not need."""

from __future__ import annotations

from tidemill.session import binding, selects
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult
from tidemill.sql import statements as s


def query(statement: s.Query, context: SessionContext) -> TableResult:
    return selects.run_query(context, binding.bind(context, statement))
