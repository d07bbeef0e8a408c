"""The parts that read expressions and queries, put together over one cursor."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tidemill.errors import NotSupportedError, Position
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.expressions.calls import Calls
from tidemill.sql.grammar.expressions.constructors import Constructors
from tidemill.sql.grammar.expressions.json_functions import JsonFunctions
from tidemill.sql.grammar.expressions.literals import Literals
from tidemill.sql.grammar.expressions.operators import Operators
from tidemill.sql.grammar.expressions.primary import Primary
from tidemill.sql.grammar.expressions.windows import Windows
from tidemill.sql.grammar.expressions.worded_functions import WordedFunctions
from tidemill.sql.grammar.ordering import Ordering
from tidemill.sql.grammar.queries.match_recognize import Matching
from tidemill.sql.grammar.queries.query import Queries
from tidemill.sql.grammar.queries.relations import Relations
from tidemill.sql.grammar.queries.select import Selects
from tidemill.sql.grammar.tables import TableArguments
from tidemill.sql.grammar.types import Types

DEEPEST = 5_000


class Trees:
    """Text -> syntax trees; the ``Nested`` that its own parts hold.

    Every part is given what it needs when it is made; only what holds itself goes round through here.
    """

    __slots__ = ("_cursor", "_depth", "_operators", "_queries", "_relations", "types")

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._depth = 0
        self.types = Types(cursor)
        ordering = Ordering(cursor, self)
        windows = Windows(cursor, self, ordering)
        calls = Calls(cursor, self, windows, TableArguments(cursor, self, ordering))
        primary = Primary(
            cursor,
            self,
            Literals(cursor),
            Constructors(cursor, self, self.types),
            WordedFunctions(cursor, self),
            JsonFunctions(cursor, self, self.types, ordering, windows),
            calls,
        )
        self._relations = Relations(cursor, self, calls, Matching(cursor, self, ordering))
        selects = Selects(cursor, self, self._relations, windows)
        self._operators = Operators(cursor, self, primary)
        self._queries = Queries(cursor, self, ordering, selects)

    def expression(self) -> exp.Expression:
        return self._inside(self._operators.expression)

    def operand(self) -> exp.Expression:
        return self._inside(self._operators.operand)

    def query(self) -> exp.Expression:
        return self._inside(self._queries.query)

    def relation(self) -> exp.Expression:
        """One table reference of FROM, with its alias."""
        return self._inside(self._relations.relation)

    def defining_query(self) -> tuple[exp.Expression, str, Position]:
        """A query whose text is kept: the query, the text, and where that begins."""
        first = self._cursor.current
        query = self.query()
        return query, self._cursor.text_since(first), first.position

    def _inside(self, read: Callable[[], exp.Expression]) -> exp.Expression:
        """One level deeper; the limit is far below what ends the stack."""
        if self._depth == DEEPEST:
            raise NotSupportedError(
                f"More than {DEEPEST:,} nested expressions or queries are not supported",
                position=self._cursor.current.position,
                hint="Split the statement into several views.",
            )
        self._depth += 1
        tree = read()
        self._depth -= 1
        return tree
