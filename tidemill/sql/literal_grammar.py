"""Literals: numbers, strings, binary, date and time, intervals."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from tidemill.errors import SqlSyntaxError
from tidemill.sql import expressions as x
from tidemill.sql.date_time_text import SHOWN, read_date_time
from tidemill.sql.lexer import Kind, Token
from tidemill.sql.type_grammar import UNITS, TypeGrammar
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


class LiteralGrammar(TypeGrammar):
    def literal(self) -> exp.Expression | None:
        """A literal, or None where none starts."""
        token = self.current
        if token.kind is Kind.NUMBER:
            return self.place(exp.Literal(this=self.number(), is_string=False), token)
        if token.kind is Kind.STRING:
            return self.place(exp.Literal(this=self.string(), is_string=True), token)
        if token.kind is Kind.HEX:
            return self._binary_literal()
        if token.upper in _CONSTANTS:
            self.advance()
            return self.place(_CONSTANTS[token.upper](), token)
        return self._time_literal(token)

    def _binary_literal(self) -> exp.Expression:
        token = self.advance()
        digits = token.value + self.continued_string()
        if re.fullmatch("[0-9A-Fa-f]*", digits) is None:
            raise SqlSyntaxError(f"Not a binary string: {token.text}", position=token.position)
        return self.place(x.BinaryLiteral(this=digits), token)

    def _time_literal(self, token: Token) -> exp.Expression | None:
        if token.upper == "INTERVAL":
            return self._interval_literal()
        if token.upper == "TIMESTAMP" and self.take("TIMESTAMP", "WITH", "LOCAL", "TIME", "ZONE"):
            return self._date_time(token, "TIMESTAMP", "TIMESTAMP_LTZ")
        if token.upper in SHOWN and self.peek().kind is Kind.STRING:
            self.advance()
            return self._date_time(token, token.upper, token.upper)
        return None

    def _date_time(self, token: Token, form: str, kind: str) -> exp.Expression:
        """Checks the text as Flink's parser does, so that a bad literal is a syntax error."""
        text = self.string()
        if read_date_time(form, text) is None:
            message = f"Illegal {form} literal '{text}': not in format '{SHOWN[form]}'"
            raise SqlSyntaxError(message, position=token.position)
        return self.place(x.DateTimeLiteral(this=text, kind=kind), token)

    def _interval_literal(self) -> exp.Expression:
        token = self.advance()
        negative = self.take_any("-", "+") == "-"
        text = self.string() if self.at_kind(Kind.STRING) else self.number()
        start, sizes = self._qualifier(_UNITS)
        end, finest = self._qualifier(_FINER.get(start, ())) if self.take("TO") else (None, sizes[1:])
        precision, fraction = (next(iter(given), None) for given in (sizes, finest))
        node = x.IntervalLiteral(
            this=text, negative=negative, start=start, precision=precision, end=end, fraction=fraction
        )
        return self.place(node, token)

    def _qualifier(self, allowed: tuple[str, ...]) -> tuple[str, tuple[int, ...]]:
        """A unit and its sizes: its digits, and for the seconds that start an interval their fraction's."""
        if UNITS.get(self.current.upper) not in allowed:
            self.fail(*allowed)
        unit = UNITS[self.advance().upper]
        return unit, tuple(self.wrapped(self.integer)) if self.at("(") else ()
