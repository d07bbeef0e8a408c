"""The NOT NULL columns of a sink, or of the result of a SELECT, that may get a NULL.

Types say where NULL can come from. But data from outside may violate a table's declaration, and a DECIMAL
with too many digits is NULL, whatever its operands were. So two kinds of columns are checked as nullable
columns are: a table's NOT NULL column as it was read, and a decimal that may overflow. The types of other
computed columns are trusted: a plan without columns of these kinds pays nothing.
"""

from __future__ import annotations

from functools import singledispatch

from tidemill.functions.coercion import as_decimal
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.plan.expressions import AggregateCall, Call, Cast, Expr, InputRef
from tidemill.types.logical import (
    INTEGER_TYPES,
    MAX_DECIMAL_PRECISION,
    DecimalType,
    Field,
    LogicalType,
    NullType,
)

_ARITHMETIC = ("+", "-", "*", "/")


def required_columns(
    root: p.PhysicalNode, columns: tuple[str, ...], targets: tuple[Field, ...]
) -> dict[str, str]:
    """The columns of ``root``, whose fields go by ``columns``, that may be NULL where a sink of ``targets``
    must not: with their names in the sink."""
    return {
        column: target.name
        for place, (column, target) in enumerate(zip(columns, targets, strict=False))
        if not target.type.nullable and (root.fields[place].type.nullable or doubtful(root, place))
    }


@singledispatch
def doubtful(node: p.PhysicalNode, place: int) -> bool:
    """Whether field ``place`` is NOT NULL by its type, but may be NULL: a table declares it so, and the field
    is as it was read or cast; or it is a decimal that may have overflowed. By default the fields of a node
    are those of its first input, then its own."""
    first = node.inputs[:1]
    return bool(first) and place < len(first[0].fields) and doubtful(first[0], place)


@doubtful.register
def _(node: p.TableSourceScan | b.TableSourceScan, place: int) -> bool:
    return not node.fields[place].type.nullable


@doubtful.register
def _(node: p.Calc, place: int) -> bool:
    return _may_be_null(node.projections[place], node.input)


@doubtful.register
def _(node: p.Expand, place: int) -> bool:
    return _may_be_null(node.projections[0][place], node.input)


@doubtful.register
def _(node: b.Aggregate, place: int) -> bool:
    if place < len(node.keys):
        return doubtful(node.input, node.keys[place])
    return sum_overflows(node.calls[place - len(node.keys)], node.input.fields)


@doubtful.register
def _(node: p.Join | b.Join, place: int) -> bool:
    width = len(node.left.fields)
    return doubtful(node.left, place) if place < width else doubtful(node.right, place - width)


@doubtful.register
def _(node: p.Union, place: int) -> bool:
    return any(doubtful(branch, place) for branch in node.branches)


def _may_be_null(expression: Expr, below: p.PhysicalNode) -> bool:
    if any(_overflows(part) for part in expression.walk()):
        return True
    while isinstance(expression, Cast):
        expression = expression.operand
    return isinstance(expression, InputRef) and doubtful(below, expression.index)


def _overflows(expression: Expr) -> bool:
    """Whether a decimal of too many digits can come out: of types that were cut at 38, of narrowing casts."""
    kind = expression.type
    if not isinstance(kind, DecimalType):
        return False
    if isinstance(expression, Call):
        return expression.function in _ARITHMETIC and kind.precision == MAX_DECIMAL_PRECISION
    return isinstance(expression, Cast) and not expression.safe and not _fits(expression.operand.type, kind)


def _fits(source: LogicalType, target: DecimalType) -> bool:
    """Whether every value of ``source`` has a place in ``target``, rounded up or not."""
    if isinstance(source, INTEGER_TYPES):
        source = as_decimal(source)
    if not isinstance(source, DecimalType):
        return isinstance(source, NullType)
    rounded = int(source.scale > target.scale)
    return source.precision - source.scale + rounded <= target.precision - target.scale


def sum_overflows(call: AggregateCall, fields: tuple[Field, ...]) -> bool:
    """Sums of fewer digits would take more rows than there are."""
    kind = fields[call.args[0]].type if call.args else None
    return isinstance(call.type, DecimalType) and isinstance(kind, DecimalType) and kind.precision > 28
