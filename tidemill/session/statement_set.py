"""StatementSet: several INSERTs that run as one job and commit together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.errors import ValidationError
from tidemill.late import late
from tidemill.session import arguments
from tidemill.session.arguments import one_of, text
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult
from tidemill.session.table import Table
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement

if TYPE_CHECKING:
    from tidemill.session import binding, explaining, inserts
else:
    binding = late("tidemill.session.binding")
    explaining = late("tidemill.session.explaining")
    inserts = late("tidemill.session.inserts")


class StatementSet:
    """PyFlink's StatementSet: add INSERTs, then call ``execute`` once.

    >>> inserts = env.create_statement_set()
    >>> for sink in ("a", "b"):
    ...     inserts.add_insert_sql(f"INSERT INTO {sink} SELECT * FROM t")
    >>> inserts.execute().wait()
    """

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._inserts: list[s.Insert] = []

    def add_insert_sql(self, statement: str) -> StatementSet:
        parsed = parse_statement(text(statement, "The statement of add_insert_sql()"))
        if not isinstance(parsed, s.Insert):
            raise ValidationError("add_insert_sql() takes an INSERT statement")
        self._inserts.append(parsed)
        return self

    def add_insert(self, table_path: str, table: Table, overwrite: bool = False) -> StatementSet:
        one_of(table, Table, "The table of add_insert()", "a Table").check_belongs(self._context)
        self._inserts.append(table.insert_into(table_path, overwrite))
        return self

    def explain(self, *details: str) -> str:
        sinks = [binding.bind_insert(self._context, i) for i in self._inserts]
        return explaining.text(self._context, sinks, arguments.details(details))

    def execute(self) -> TableResult:
        """Starts the job and empties the set."""
        if not self._inserts:
            raise ValidationError("The statement set is empty: add an INSERT first")
        written, self._inserts = self._inserts, []
        sinks = [binding.bind_insert(self._context, i) for i in written]
        return inserts.run_inserts(self._context, sinks, written)
