"""Functions with keywords between their arguments: ``EXTRACT(DAY FROM t)``, ``TRIM(BOTH 'x' FROM s)``.

If the keywords only separate arguments, the call is plain: F(a WORD b) is F(a, b).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from tidemill.errors import ValidationError
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.lexer import Kind
from tidemill.sql.positions import place

_FRAMES = (
    "NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER",
    "YEAR", "EPOCH", "DOW", "DOY", "ISODOW", "ISOYEAR", "DECADE", "CENTURY", "MILLENNIUM",
)  # fmt: skip
_TIME_FRAMES = (
    {frame: frame for frame in _FRAMES}
    | {f"SQL_TSI_{frame}": frame for frame in _FRAMES[1:11] if frame != "MILLISECOND"}
    | {"SQL_TSI_FRAC_SECOND": "MICROSECOND", "FRAC_SECOND": "MICROSECOND"}
)


@dataclass(frozen=True, slots=True)
class WordedFunctions:
    cursor: Cursor
    nested: Nested

    def read(self, name: str) -> exp.Expression:
        """What stands behind ``name``, one of NAMES."""
        return self._FORMS[name](self)

    def _time_unit(self) -> exp.Var:
        token = self.cursor.current
        if token.kind is not Kind.WORD:
            self.cursor.fail("<TIME_UNIT>")
        if token.upper not in _TIME_FRAMES:
            message = f"'{token.text}' is not a valid time frame"
            raise ValidationError(message, position=token.position, expected=_FRAMES)
        self.cursor.advance()
        return place(exp.Var(this=_TIME_FRAMES[token.upper]), token)

    def _extract(self) -> exp.Expression:
        self.cursor.expect("(")
        unit = self._time_unit()
        self.cursor.expect("FROM")
        operand = self.nested.expression()
        self.cursor.expect(")")
        return exp.Extract(this=unit, expression=operand)

    def _rounding(self) -> exp.Expression:
        """``FLOOR(x)`` is a plain call, ``FLOOR(x TO DAY)`` a node of its own."""
        name = self.cursor.previous.value
        self.cursor.expect("(")
        operand = self.nested.expression()
        if self.cursor.take("TO"):
            node = exp.Floor if name.upper() == "FLOOR" else exp.Ceil
            unit = self._time_unit()
            self.cursor.expect(")")
            return node(this=operand, to=unit)
        self.cursor.expect(")")
        return exp.Anonymous(this=name, expressions=[operand])

    def _trim(self) -> exp.Expression:
        self.cursor.expect("(")
        position = self.cursor.take_any("BOTH", "LEADING", "TRAILING")
        operand, characters = None if position and self.cursor.at("FROM") else self.nested.expression(), None
        if self.cursor.take("FROM"):
            operand, characters = self.nested.expression(), operand
        self.cursor.expect(")")
        return exp.Trim(this=operand, expression=characters, position=position or "BOTH")

    def _worded(self, *words: str) -> exp.Expression:
        """``F(a WORD b WORD c)``; SUBSTRING takes commas as well, POSITION's first argument ends at IN."""
        name = self.cursor.previous.value
        self.cursor.expect("(")
        items = [self.nested.operand() if words[0] == "IN" else self.nested.expression()]
        if name.upper() == "SUBSTRING" and self.cursor.take(","):
            items += self.cursor.separated(self.nested.expression)
        else:
            items += [self.nested.expression() for word in words if self.cursor.take(word)]
        self.cursor.expect(")")
        return exp.Anonymous(this=name, expressions=items)

    def _unit_call(self) -> exp.Expression:
        """TIMESTAMPADD(unit, n, t) and TIMESTAMPDIFF(unit, a, b)."""
        name = self.cursor.previous.value
        self.cursor.expect("(")
        items: list[exp.Expression] = [self._time_unit()]
        self.cursor.expect(",")
        items += self.cursor.separated(self.nested.expression)
        self.cursor.expect(")")
        return exp.Anonymous(this=name, expressions=items)

    _FORMS: ClassVar[dict[str, Callable[[WordedFunctions], exp.Expression]]] = {
        "EXTRACT": _extract,
        "FLOOR": _rounding,
        "CEIL": _rounding,
        "CEILING": _rounding,
        "TRIM": _trim,
        "POSITION": lambda self: self._worded("IN", "FROM"),
        "OVERLAY": lambda self: self._worded("PLACING", "FROM", "FOR"),
        "SUBSTRING": lambda self: self._worded("FROM", "FOR"),
        "TIMESTAMPADD": _unit_call,
        "TIMESTAMPDIFF": _unit_call,
    }
    NAMES: ClassVar[frozenset[str]] = frozenset(_FORMS)
