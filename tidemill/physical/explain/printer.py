"""Expressions, types and aggregate calls as text, in the three forms a plan shows them.

``PREFIX``: ``>(n, 3)``, names of columns (optimized physical plan). ``INFIX``: ``(n > 3)`` (execution
plan). ``INDEXED``: ``>($2, 3)`` (abstract syntax tree).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import singledispatchmethod

from tidemill.functions.signatures import calcite_text
from tidemill.functions.text.times import shortest, timestamp
from tidemill.plan import expressions as e
from tidemill.plan import nodes as n
from tidemill.plan import patterns as r
from tidemill.types import logical as t
from tidemill.types.logical import Field


class Form(Enum):
    PREFIX = "prefix"
    INFIX = "infix"
    INDEXED = "indexed"


_BINARY = frozenset({"+", "-", "*", "/", "=", "<>", "<", "<=", ">", ">=", "AND", "OR", "||"})
_POSTFIX = frozenset({"IS NULL", "IS NOT NULL", "IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE"})
_CHAINS = frozenset({"AND", "OR"})
_SHOWN = {"UNARY -": "-", "%": "MOD", "CURRENT_TIMESTAMP": "CURRENT_TIMESTAMP"}
_CHARSET = ' CHARACTER SET "UTF-16LE"'


def type_text(kind: t.LogicalType, *, plain: bool = False) -> str:
    """As in CAST(x AS ...): with character set, unless ``plain``, and NOT NULL."""
    text = calcite_text(kind)
    if isinstance(kind, t.CHARACTER_TYPES) and not plain:
        text += _CHARSET
    return text if kind.nullable else f"{text} NOT NULL"


def interval_text(kind: t.YearMonthIntervalType | t.DayTimeIntervalType) -> str:
    return "INTERVAL " + re.sub(r"\(\d+\)", "", kind.resolution)


def record_text(fields: Sequence[Field]) -> str:
    return "RecordType(" + ", ".join(f"{calcite_text(f.type)} {f.name}" for f in fields) + ")"


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints expressions over columns called ``names``."""

    names: tuple[str, ...]
    form: Form = Form.PREFIX

    @staticmethod
    def over(fields: Sequence[Field], form: Form = Form.PREFIX) -> Printer:
        return Printer(tuple(f.name for f in fields), form)

    def column(self, index: int) -> str:
        return f"${index}" if self.form is Form.INDEXED else self.names[index]

    def columns(self, indexes: Sequence[int]) -> str:
        return ", ".join(self.column(i) for i in indexes)

    @singledispatchmethod
    def text(self, expr: e.Expr) -> str:
        return type(expr).__name__

    @text.register
    def _(self, expr: e.InputRef) -> str:
        return self.column(expr.index)

    @text.register
    def _(self, expr: e.OuterRef) -> str:
        return f"$cor{expr.level - 1}.{expr.index}"

    @text.register
    def _(self, expr: e.Literal) -> str:
        return literal_text(expr, plain=self.form is Form.INFIX)

    @text.register
    def _(self, expr: e.FieldAccess) -> str:
        row = expr.operand.type
        name = row.fields[expr.index].name if isinstance(row, t.RowType) else str(expr.index)
        return f"{self.text(expr.operand)}.{name}"

    @text.register
    def _(self, expr: e.Cast) -> str:
        name = "TRY_CAST" if expr.safe else "CAST"
        if self.form is Form.INDEXED:
            return f"{name}({self.text(expr.operand)}):{type_text(expr.type)}"
        kind = type_text(expr.type, plain=self.form is Form.INFIX)
        return f"{name}({self.text(expr.operand)} AS {kind})"

    @text.register
    def _(self, expr: e.Call) -> str:
        args = [self.text(a) for a in self._flat(expr)]
        args += [f"FLAG({value})" for _, value in expr.options]
        name = _SHOWN.get(expr.function, expr.function)
        if self.form is Form.INFIX and expr.function in _BINARY and len(args) > 1:
            return "(" + f" {name} ".join(args) + ")"
        if self.form is Form.INFIX and expr.function in _POSTFIX:
            return f"{args[0]} {name}"
        return f"{name}({', '.join(args)})"

    @text.register
    def _(self, expr: e.UserCall) -> str:
        return f"{expr.function.name}({', '.join(map(self.text, expr.args))})"

    @text.register
    def _(self, expr: r.PatternColumn) -> str:
        operand = self._of_variable(expr.operand, expr.name)
        if expr.plain:
            return operand
        return f"{'LAST' if expr.last else 'FIRST'}({operand}, {expr.offset})"

    @text.register
    def _(self, expr: r.PatternAggregate) -> str:
        args = ", ".join(self._of_variable(a, expr.name) for a in expr.args)
        return f"{expr.function}({args})"

    def _of_variable(self, operand: e.Expr, name: str) -> str:
        of = Printer(tuple(f"{name}.{column}" for column in self.names), self.form)
        return of.text(operand)

    @text.register
    def _(self, expr: n.ScalarSubquery) -> str:
        return "$SCALAR_QUERY({...})"

    @text.register
    def _(self, expr: n.Exists) -> str:
        return "EXISTS({...})"

    @text.register
    def _(self, expr: n.InSubquery) -> str:
        return f"IN({', '.join(self.text(o) for o in expr.operands)}, {{...}})"

    def _flat(self, expr: e.Call) -> list[e.Expr]:
        """Arguments, with nested ANDs (ORs) of the same kind in one list."""
        if expr.function not in _CHAINS:
            return list(expr.args)
        parts: list[e.Expr] = []
        for arg in expr.args:
            nested = isinstance(arg, e.Call) and arg.function == expr.function
            parts += self._flat(arg) if nested and isinstance(arg, e.Call) else [arg]
        return parts

    def named(self, expr: e.Expr, name: str) -> str:
        """``text AS name``; a column that keeps its name stands alone."""
        text = self.text(expr)
        return text if text == name else f"{text} AS {name}"


def literal_text(literal: e.Literal, plain: bool = False) -> str:
    """A constant; ``plain`` leaves out the character set, and the type of a number."""
    kind, value = literal.type, literal.value
    if value is None:
        return f"null:{type_text(kind.with_nullable(True), plain=plain)}"
    if isinstance(kind, t.CHARACTER_TYPES):
        quoted = "'" + str(value).replace("'", "''") + "'"
        if plain:
            return quoted
        suffix = f":{type_text(kind.with_nullable(True))}" if isinstance(kind, t.VarCharType) else ""
        return f"_UTF-16LE{quoted}{suffix}"
    printer = _LITERALS.get(type(kind))
    if plain and printer is not None and isinstance(kind, t.NUMERIC_TYPES):
        return printer(kind, value).partition(":")[0]
    return printer(kind, value) if printer else f"{value}:{type_text(kind.with_nullable(True))}"


def rows_text(rows: Sequence[tuple[e.Literal, ...]]) -> str:
    """Constant rows without their types."""
    return "[[" + ", ".join("{ " + ", ".join(map(_untyped, row)) + " }" for row in rows) + "]]"


def _untyped(literal: e.Literal) -> str:
    if literal.value is None:
        return "null"
    text = literal_text(literal, plain=not isinstance(literal.type, t.CHARACTER_TYPES))
    return text.removesuffix(f":{type_text(literal.type.with_nullable(True))}")


def _number(kind: t.LogicalType, value: object) -> str:
    return f"{value}:{calcite_text(kind)}"


def _double(kind: t.LogicalType, value: object) -> str:
    digits = f"{Decimal(repr(value)).normalize():E}".replace("E+", "E")
    return f"{digits}:{calcite_text(kind)}"


def _timestamp(kind: t.LogicalType, value: object) -> str:
    assert isinstance(value, dt.datetime)
    return shortest(timestamp(value, 6))


def _time(kind: t.LogicalType, value: object) -> str:
    assert isinstance(value, int)
    return str((dt.datetime.min + dt.timedelta(milliseconds=value)).time())


def _interval(kind: t.LogicalType, value: object) -> str:
    assert isinstance(kind, t.YearMonthIntervalType | t.DayTimeIntervalType)
    return f"{value}:{interval_text(kind)}"


def _bytes(kind: t.LogicalType, value: object) -> str:
    return f"X'{value.hex()}'" if isinstance(value, bytes) else str(value)


_LITERALS: dict[type[t.LogicalType], Callable[[t.LogicalType, object], str]] = {
    t.BooleanType: lambda _, value: str(value).lower(),
    t.IntType: lambda _, value: str(value),
    t.BigIntType: _number,
    t.SmallIntType: _number,
    t.TinyIntType: _number,
    t.DecimalType: _number,
    t.DoubleType: _double,
    t.FloatType: _double,
    t.DateType: lambda _, value: str(value),
    t.TimeType: _time,
    t.TimestampType: _timestamp,
    t.LocalZonedTimestampType: _timestamp,
    t.YearMonthIntervalType: _interval,
    t.DayTimeIntervalType: _interval,
    t.BinaryType: _bytes,
    t.VarBinaryType: _bytes,
}


def call_text(call: e.AggregateCall, printer: Printer, *, retract: bool, named: bool = True) -> str:
    """``COUNT_RETRACT(DISTINCT url) FILTER $f3 AS d``."""
    args = printer.columns(call.args) or ("*" if call.function == "COUNT" else "")
    args += "".join(f", _UTF-16LE'{value}'" for _, value in call.options)
    distinct = "DISTINCT " if call.distinct else ""
    name = f"{call.function}_RETRACT" if retract else call.function
    filtered = "" if call.filter is None else f" FILTER {printer.column(call.filter)}"
    return f"{name}({distinct}{args}){filtered}" + (f" AS {call.name}" if named else "")


def order_text(key: e.SortKey, printer: Printer) -> str:
    """``n DESC``; the default order of NULLs is omitted."""
    direction = "ASC" if key.ascending else "DESC"
    usual = key.nulls_first == key.ascending
    nulls = "" if usual else (" NULLS FIRST" if key.nulls_first else " NULLS LAST")
    return f"{printer.column(key.index)} {direction}{nulls}"
