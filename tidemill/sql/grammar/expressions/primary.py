"""Values that are not operators: literals, names, calls and functions with a form of their own."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.sql.grammar.cursor import Cursor, at_query, behind_parenthesis
from tidemill.sql.grammar.expressions.calls import Calls
from tidemill.sql.grammar.expressions.constructors import Constructors
from tidemill.sql.grammar.expressions.json_functions import JsonFunctions
from tidemill.sql.grammar.expressions.literals import Literals
from tidemill.sql.grammar.expressions.worded_functions import WordedFunctions
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.lexer import Token
from tidemill.sql.positions import place
from tidemill.sql.reserved import BARE_COLUMNS, BARE_FUNCTIONS, CALLABLE

_COLUMN_PARTS = ("this", "table", "db", "catalog")
_FORMS = Constructors.NAMES | WordedFunctions.NAMES | JsonFunctions.NAMES
_BEHIND_QUERIES = (")", "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH")


@dataclass(frozen=True, slots=True)
class Primary:
    cursor: Cursor
    nested: Nested
    literals: Literals
    constructors: Constructors
    worded: WordedFunctions
    json: JsonFunctions
    calls: Calls

    def read(self) -> exp.Expression:
        token = self.cursor.current
        if token.upper in _FORMS and self._at_form(token.upper):
            self.cursor.advance()
            return place(self._form(token.upper), token)
        literal = self.literals.literal()
        if literal is not None:
            return literal
        if token.upper == "(":
            return self._parenthesised()
        if token.upper in BARE_FUNCTIONS and self.cursor.peek().upper != "(":
            self.cursor.advance()
            return place(exp.Anonymous(this=token.value, expressions=[]), token)
        if token.upper in CALLABLE and self.cursor.peek().upper == "(":
            self.cursor.advance()
            return self.calls.call(token, token.value)
        if token.upper in BARE_COLUMNS:
            return place(_column([self._bare_column()]), token)
        return self._name_or_call(token)

    def _at_form(self, word: str) -> bool:
        return word == "CASE" or self.cursor.peek().upper in ("(", "[")

    def _form(self, name: str) -> exp.Expression:
        if name in Constructors.NAMES:
            return self.constructors.read(name)
        if name in WordedFunctions.NAMES:
            return self.worded.read(name)
        return self.json.read(name)

    def _bare_column(self) -> exp.Identifier:
        token = self.cursor.advance()
        return place(exp.Identifier(this=token.value, quoted=False), token)

    def _parenthesised(self) -> exp.Expression:
        token = self.cursor.advance()
        node: exp.Expression
        if at_query(self.cursor) and not self._is_operand_ahead():
            node = exp.Subquery(this=self.nested.query())
        else:
            items = self.cursor.separated(self.nested.expression)
            node = exp.Paren(this=items[0]) if len(items) == 1 else exp.Tuple(expressions=items)
        self.cursor.expect(")")
        return place(node, token)

    def _is_operand_ahead(self) -> bool:
        """``((SELECT 1) + 2)``: the inner parenthesis is a value, not the query's own."""
        if not self.cursor.at("("):
            return False
        return behind_parenthesis(self.cursor, 0).upper not in _BEHIND_QUERIES

    def _name_or_call(self, token: Token) -> exp.Expression:
        if not self.cursor.at_identifier():
            self.cursor.fail("<EXPRESSION>")
        parts = self._dotted()
        if self.cursor.at("(") and isinstance(parts[-1], exp.Identifier):
            name = ".".join(part.name for part in parts)
            return self.calls.call(token, name)
        return place(_column(parts), token)

    def _dotted(self) -> list[exp.Expression]:
        """``a.b.c`` or ``a.b.*``."""
        parts: list[exp.Expression] = [self.cursor.identifier()]
        while self.cursor.take("."):
            if self.cursor.at("*"):
                parts.append(place(exp.Star(), self.cursor.advance()))
                break
            bare = self.cursor.at_any(*BARE_COLUMNS)
            parts.append(self._bare_column() if bare else self.cursor.identifier())
        return parts


def _column(parts: list[exp.Expression]) -> exp.Expression:
    """Up to four parts are one Column, further ones Dots around it."""
    head, tail = parts[: len(_COLUMN_PARTS)], parts[len(_COLUMN_PARTS) :]
    node: exp.Expression = exp.Column(**dict(zip(_COLUMN_PARTS, reversed(head), strict=False)))
    for part in tail:
        node = exp.Dot(this=node, expression=part)
    return node
