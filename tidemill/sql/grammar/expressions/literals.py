"""Literals: numbers, strings, binary, date and time, intervals."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from tidemill.errors import SqlSyntaxError
from tidemill.sql import expressions as x
from tidemill.sql.date_time_text import SHOWN, read_date_time
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.types import UNITS
from tidemill.sql.lexer import Kind, Token
from tidemill.sql.positions import place
from tidemill.types.logical import BOOLEAN

_CONSTANTS: dict[str, Callable[[], exp.Expression]] = {
    "TRUE": lambda: exp.Boolean(this=True),
    "FALSE": lambda: exp.Boolean(this=False),
    "NULL": exp.Null,
    "UNKNOWN": lambda: exp.Cast(this=exp.Null(), to=x.TypeSpec(this=BOOLEAN, written="BOOLEAN")),
}
_UNITS = tuple(dict.fromkeys(UNITS.values()))
_FINER = {
    "YEAR": ("MONTH",),
    "DAY": ("HOUR", "MINUTE", "SECOND"),
    "HOUR": ("MINUTE", "SECOND"),
    "MINUTE": ("SECOND",),
}


@dataclass(frozen=True, slots=True)
class Literals:
    cursor: Cursor

    def literal(self) -> exp.Expression | None:
        """A literal, or None where none starts."""
        token = self.cursor.current
        if token.kind is Kind.NUMBER:
            return place(exp.Literal(this=self.cursor.number(), is_string=False), token)
        if token.kind is Kind.STRING:
            return place(exp.Literal(this=self.cursor.string(), is_string=True), token)
        if token.kind is Kind.HEX:
            return self._binary_literal()
        if token.upper in _CONSTANTS:
            self.cursor.advance()
            return place(_CONSTANTS[token.upper](), token)
        return self._time_literal(token)

    def _binary_literal(self) -> exp.Expression:
        token = self.cursor.advance()
        digits = token.value + self.cursor.continued_string()
        if re.fullmatch("[0-9A-Fa-f]*", digits) is None:
            raise SqlSyntaxError(f"Not a binary string: {token.text}", position=token.position)
        return place(x.BinaryLiteral(this=digits), token)

    def _time_literal(self, token: Token) -> exp.Expression | None:
        if token.upper == "INTERVAL":
            return self._interval_literal()
        if token.upper == "TIMESTAMP" and self.cursor.take("TIMESTAMP", "WITH", "LOCAL", "TIME", "ZONE"):
            return self._date_time(token, "TIMESTAMP", "TIMESTAMP_LTZ")
        if token.upper in SHOWN and self.cursor.peek().kind is Kind.STRING:
            self.cursor.advance()
            return self._date_time(token, token.upper, token.upper)
        return None

    def _date_time(self, token: Token, form: str, kind: str) -> exp.Expression:
        """Checks the text as Flink's parser does, so that a bad literal is a syntax error."""
        text = self.cursor.string()
        if read_date_time(form, text) is None:
            message = f"Illegal {form} literal '{text}': not in format '{SHOWN[form]}'"
            raise SqlSyntaxError(message, position=token.position)
        return place(x.DateTimeLiteral(this=text, kind=kind), token)

    def _interval_literal(self) -> exp.Expression:
        token = self.cursor.advance()
        negative = self.cursor.take_any("-", "+") == "-"
        text = self.cursor.string() if self.cursor.at_kind(Kind.STRING) else self.cursor.number()
        start, sizes = self._qualifier(_UNITS)
        end, finest = self._qualifier(_FINER.get(start, ())) if self.cursor.take("TO") else (None, sizes[1:])
        precision, fraction = (next(iter(precisions), None) for precisions in (sizes, finest))
        node = x.IntervalLiteral(
            this=text, negative=negative, start=start, precision=precision, end=end, fraction=fraction
        )
        return place(node, token)

    def _qualifier(self, allowed: tuple[str, ...]) -> tuple[str, tuple[int, ...]]:
        """A unit and its sizes: its digits, and for the seconds that start an interval their fraction's."""
        if UNITS.get(self.cursor.current.upper) not in allowed:
            self.cursor.fail(*allowed)
        unit = UNITS[self.cursor.advance().upper]
        return unit, tuple(self.cursor.wrapped(self.cursor.integer)) if self.cursor.at("(") else ()
