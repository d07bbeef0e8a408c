"""Bound expressions as Spark SQL text over a frame's columns.

One text per expression; the functions' own tables say how each call is spelt. Flink's answer is in
the text (casts, guards), never in a Python UDF.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import singledispatchmethod

from tidemill.errors import InternalError
from tidemill.functions import casts, registry
from tidemill.functions.api import SparkCall
from tidemill.functions.literals import literal_sql
from tidemill.functions.named_errors import named
from tidemill.physical.explain.printer import Form, Printer
from tidemill.plan import expressions as x
from tidemill.types.logical import CHARACTER_TYPES, DateType, Field, RowType, TimestampType
from tidemill.types.physical import quote

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class Translator:
    """``columns``: the frame's column names by field index. ``zone``: the session time zone. ``names``: the
    columns' names in errors, if they differ from their names in the frame. ``tables``: by field index the
    alias or the variable of the column, '' if the name alone is enough."""

    columns: tuple[str, ...]
    zone: str
    names: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    def beside(self, row: str, fields: tuple[Field, ...]) -> Translator:
        """Over the frame's columns, then the ``fields`` of the variable ``row``."""
        names = tuple(f.name for f in fields)
        tables = (*(self.tables or ("",) * len(self.columns)), *(row,) * len(names))
        return replace(self, columns=(*self.columns, *names), tables=tables)

    @singledispatchmethod
    def sql(self, expr: x.Expr) -> str:
        """The Spark SQL text of ``expr``."""
        raise InternalError(f"{type(expr).__name__} has no Spark translation: a rule should have removed it")

    @sql.register
    def _(self, expr: x.InputRef) -> str:
        column = quote(self.columns[expr.index])
        table = self.tables[expr.index] if self.tables else ""
        return f"{table}.{column}" if table else column

    @sql.register
    def _(self, expr: x.Literal) -> str:
        return literal_sql(expr.value, expr.type)

    @sql.register
    def _(self, expr: x.Cast) -> str:
        known = _written(expr)
        if known is not None:
            return literal_sql(known, expr.type)
        text = casts.cast_sql(
            self.sql(expr.operand), expr.operand.type, expr.type, safe=expr.safe, zone=self.zone
        )
        return self._named(text, expr)

    @sql.register
    def _(self, expr: x.FieldAccess) -> str:
        row = expr.operand.type
        if not isinstance(row, RowType):
            raise InternalError(f"field access on {row}")
        return f"({self.sql(expr.operand)}).{quote(row.fields[expr.index].name)}"

    @sql.register
    def _(self, expr: x.Call) -> str:
        function = registry.scalar(expr.function)
        if function is None:
            raise InternalError(f"function {expr.function} is bound but not registered")
        call = SparkCall(
            args=tuple(self.sql(a) for a in expr.args),
            arg_types=tuple(a.type for a in expr.args),
            literals=tuple(a.value if isinstance(a, x.Literal) else None for a in expr.args),
            result=expr.type,
            options=dict(expr.options),
            zone=self.zone,
        )
        return self._named(function.spark(call), expr)

    def _named(self, sql: str, expr: x.Expr) -> str:
        """Errors of ``sql`` say that they are ``expr``'s, as the execution plan prints it."""
        return named(sql, lambda: Printer(self.names or self.columns, Form.INFIX).text(expr))


def _written(expr: x.Cast) -> date | None:
    """The day or time that a constant spells in full: as text its cast is long, and analysed each time."""
    text = expr.operand.value if isinstance(expr.operand, x.Literal) else None
    if not isinstance(text, str) or not isinstance(expr.operand.type, CHARACTER_TYPES):
        return None
    try:
        if isinstance(expr.type, DateType) and _DAY.fullmatch(text):
            return date.fromisoformat(text)
        if isinstance(expr.type, TimestampType) and _TIME.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass  # whoever runs it says why
    return None
