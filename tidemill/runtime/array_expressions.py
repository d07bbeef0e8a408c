"""Bound expressions as kernels over Arrow arrays.

``Translator`` in ``runtime.spark.expressions`` says the same as Spark SQL text. An expression has kernels if
all of its parts have entries, and if it is no deeper than a worker's stack allows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial, singledispatchmethod

import pyarrow as pa

from tidemill.functions import registry
from tidemill.functions.arrays.api import ArrayCall, Inexact, Kernel
from tidemill.functions.arrays.expressions import (
    Applied,
    Called,
    Chosen,
    Column,
    Constant,
    EpochTime,
    Node,
    Projection,
    field_of,
)
from tidemill.functions.casts import cast_kernel
from tidemill.functions.datetime_now import INSTANTS
from tidemill.plan import expressions as x
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

_DEEPEST = 50
_CONSTANTS = (
    t.BooleanType,
    *t.NUMERIC_TYPES,
    *t.CHARACTER_TYPES,
    *t.TIMESTAMP_TYPES,
    *t.INTERVAL_TYPES,
    t.DateType,
    t.TimeType,
)


class _Untranslated(Exception):
    """An expression has no kernels."""


def projection(
    condition: x.Expr | None, expressions: tuple[x.Expr, ...], columns: tuple[str, ...], zone: str
) -> Projection | None:
    """The ``expressions`` over the input's ``columns``, of rows that meet the ``condition``; None if an
    expression has no kernels, or if nothing is computed."""
    if condition is None and all(isinstance(e, x.InputRef) for e in expressions):
        return None
    translator = ArrayTranslator(columns=columns, zone=zone)
    try:
        return Projection(
            condition=None if condition is None else translator.checked(condition),
            columns=tuple(map(translator.checked, expressions)),
            types=tuple(arrow_type(e.type) for e in expressions),
        )
    except _Untranslated:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayTranslator:
    """``columns``: the input's column names by field index; ``zone``: the session time zone. Equal parts of
    expressions become one node."""

    columns: tuple[str, ...]
    zone: str
    _made: dict[Hashable, Node] = field(default_factory=dict)

    def checked(self, expr: x.Expr) -> Node:
        if _depth(expr) > _DEEPEST:
            raise _Untranslated
        return self.node(expr)

    @singledispatchmethod
    def node(self, expr: x.Expr) -> Node:
        """The kernels of ``expr``."""
        raise _Untranslated

    @node.register
    def _(self, expr: x.InputRef) -> Node:
        name = self.columns[expr.index]
        return self._once(name, lambda: Column(name, arrow_type(expr.type)))

    @node.register
    def _(self, expr: x.Literal) -> Node:
        if isinstance(expr.type, t.NullType) or not isinstance(expr.type, _CONSTANTS):
            raise _Untranslated
        return self._constant(expr.value, expr.type)

    @node.register
    def _(self, expr: x.Cast) -> Node:
        source = expr.operand.type
        if isinstance(expr.operand, x.Literal) and expr.operand.value is None:
            return self._constant(None, expr.type)
        kernel = cast_kernel(source, expr.type, self.zone)
        operand = self.node(expr.operand)
        if kernel is None:
            raise _Untranslated
        if isinstance(operand, Constant):
            made = _constant(kernel, operand.value)
            return self._once((expr.type, repr(made.value)), lambda: made)
        return self._once((expr.type, id(operand)), lambda: Applied(kernel, (operand,)))

    @node.register
    def _(self, expr: x.FieldAccess) -> Node:
        row = self.node(expr.operand)
        kernel = partial(field_of, expr.index, arrow_type(expr.type))
        return self._once(("field", expr.index, id(row)), lambda: Applied(kernel, (row,)))

    @node.register
    def _(self, expr: x.UserCall) -> Node:
        return Called(expr.function, tuple(map(self.node, expr.args)), arrow_type(expr.type))

    @node.register
    def _(self, expr: x.Call) -> Node:
        if expr.function in INSTANTS:
            return self._once(EpochTime, EpochTime)
        args = tuple(map(self.node, expr.args))
        key = (expr.function, expr.options, expr.type, *map(id, args))
        if expr.function in ("CASE", "IF"):
            return self._once(key, lambda: Chosen(args[:-1:2], (*args[1:-1:2], args[-1])))
        kernel = self._kernel(expr)
        if kernel is None or all(isinstance(a, Constant) for a in args):
            raise _Untranslated
        return self._once(key, lambda: Applied(kernel, args))

    def _kernel(self, expr: x.Call) -> Kernel | None:
        function = registry.scalar(expr.function)
        if function is None or function.arrays is None:
            return None
        return function.arrays(
            ArrayCall(
                arg_types=tuple(a.type for a in expr.args),
                literals=tuple(a.value if isinstance(a, x.Literal) else None for a in expr.args),
                result=expr.type,
                options=dict(expr.options),
                zone=self.zone,
            )
        )

    def _constant(self, value: object, kind: t.LogicalType) -> Node:
        return self._once((kind, repr(value)), lambda: Constant(pa.scalar(value, arrow_type(kind))))

    def _once(self, key: Hashable, make: Callable[[], Node]) -> Node:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def _constant(kernel: Kernel, value: pa.Scalar) -> Constant:
    try:
        return Constant(kernel(pa.repeat(value, 1))[0])
    except Inexact:
        raise _Untranslated from None


def _depth(expr: x.Expr) -> int:
    """How deep the expression is, as far as that is of interest."""
    deepest, level = 0, [expr]
    while level and deepest <= _DEEPEST:
        deepest, level = deepest + 1, [child for e in level for child in e.children]
    return deepest
