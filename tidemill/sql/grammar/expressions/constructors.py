"""CASE, CAST, EXISTS and the constructors of rows and collections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from tidemill.errors import ValidationError
from tidemill.sql import expressions as x
from tidemill.sql.grammar.cursor import Cursor, at_query
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.grammar.types import Types


@dataclass(frozen=True, slots=True)
class Constructors:
    cursor: Cursor
    nested: Nested
    types: Types

    def read(self, name: str) -> exp.Expression:
        """What stands behind ``name``, one of NAMES."""
        return self._FORMS[name](self)

    def _case(self) -> exp.Expression:
        operand = None if self.cursor.at("WHEN") else self.nested.expression()
        branches: list[exp.If] = []
        while self.cursor.take("WHEN"):
            tests = [self.nested.expression()]
            while operand is not None and self.cursor.take(","):
                tests.append(self.nested.expression())
            self.cursor.expect("THEN")
            result = self.nested.expression()
            # A tree belongs to one branch; to copy the only one's would take time at each level of nesting.
            results = [result, *(result.copy() for _ in tests[1:])]
            branches += [exp.If(this=x, true=y) for x, y in zip(tests, results, strict=True)]
        if not branches:
            self.cursor.fail("WHEN")
        default = self.nested.expression() if self.cursor.take("ELSE") else None
        self.cursor.expect("END")
        return exp.Case(this=operand, ifs=branches, default=default)

    def _cast(self, node: type[exp.Expression]) -> exp.Expression:
        self.cursor.expect("(")
        operand = self.nested.expression()
        self.cursor.expect("AS")
        kind = self.types.spec()
        self.cursor.expect(")")
        return node(this=operand, to=kind)

    def _array(self) -> exp.Expression:
        return exp.Array(expressions=self._bracketed()) if self.cursor.at("[") else self._from_query("ARRAY")

    def _multiset(self) -> exp.Expression:
        if self.cursor.at("["):
            return x.MultisetLiteral(expressions=self._bracketed())
        return self._from_query("MULTISET")

    def _map(self) -> exp.Expression:
        if not self.cursor.at("["):
            return self._from_query("MAP")
        items = self._bracketed()
        if len(items) % 2:
            message = "Map requires an even number of arguments"
            raise ValidationError(message, position=self.cursor.previous.position)
        keys, values = exp.Array(expressions=items[::2]), exp.Array(expressions=items[1::2])
        return exp.Map(keys=keys, values=values)

    def _bracketed(self) -> list[exp.Expression]:
        self.cursor.expect("[")
        items = [] if self.cursor.at("]") else self.cursor.separated(self.nested.expression)
        self.cursor.expect("]")
        return items

    def _from_query(self, kind: str) -> exp.Expression:
        self.cursor.expect("(")
        if not at_query(self.cursor):
            self.cursor.refuse(f"{kind}(...) of something that is not a query")
        query = self.nested.query()
        self.cursor.expect(")")
        return x.ArrayQuery(this=query, kind=kind)

    def _row(self) -> exp.Expression:
        self.cursor.expect("(")
        items = self.cursor.separated(self.nested.expression)
        self.cursor.expect(")")
        return exp.Tuple(expressions=items)

    def _exists(self) -> exp.Expression:
        self.cursor.expect("(")
        query = self.nested.query()
        self.cursor.expect(")")
        return exp.Exists(this=query)

    _FORMS: ClassVar[dict[str, Callable[[Constructors], exp.Expression]]] = {
        "CASE": _case,
        "CAST": lambda self: self._cast(exp.Cast),
        "TRY_CAST": lambda self: self._cast(exp.TryCast),
        "ARRAY": _array,
        "MAP": _map,
        "MULTISET": _multiset,
        "ROW": _row,
        "EXISTS": _exists,
    }
    NAMES: ClassVar[frozenset[str]] = frozenset(_FORMS)
