"""VALUES: rows of expressions. Columns are EXPR$0, EXPR$1, with the rows' least restrictive types."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tidemill.errors import ValidationError
from tidemill.functions.coercion import common_type
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import BoundQuery, Context
from tidemill.plan.binder.expressions import literals
from tidemill.plan.binder.expressions.binding import Clause, QueryBinder
from tidemill.plan.binder.expressions.calls import coerce
from tidemill.plan.binder.queries import ordering
from tidemill.plan.binder.scope import Scope
from tidemill.plan.expressions import Cast, Expr, Literal
from tidemill.plan.rules.construct import one_row
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

VALUES = Clause(name="VALUES")


def bind(binder: QueryBinder, tree: exp.Expr, context: Context) -> BoundQuery:
    expressions = binder.expressions(context, Scope(), VALUES)
    rows = [expressions.bind_all(_row(node)) for node in tree.expressions]
    kinds = _column_types(rows, tree, context)
    names = tuple(f"EXPR${i}" for i in range(len(kinds)))
    fields = tuple(t.Field(name, kind) for name, kind in zip(names, kinds, strict=True))
    typed = [tuple(_typed(x, k) for x, k in zip(row, kinds, strict=True)) for row in rows]
    query = BoundQuery(plan=_rows(fields, typed), names=names)
    return ordering.apply(binder, tree, query, context)


def _row(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _column_types(rows: list[tuple[Expr, ...]], tree: exp.Expr, context: Context) -> list[t.LogicalType]:
    if len({len(r) for r in rows}) != 1:
        raise _incompatible(tree)
    kinds = []
    for column in zip(*rows, strict=True):
        kind = common_type(tuple(x.type for x in column))
        if kind is None:
            raise _incompatible(tree)
        if isinstance(kind, t.NullType) and not context.untyped_null:
            raise ValidationError("Illegal use of 'NULL'", position=position_of(tree))
        kinds.append(varying(kind, tuple(x.type for x in column)))
    return kinds


def varying(kind: t.LogicalType, members: tuple[t.LogicalType, ...]) -> t.LogicalType:
    """Character types of different lengths become VARCHAR, so no blanks are added."""
    lengths = {m.length for m in members if isinstance(m, t.CharType)}
    if isinstance(kind, t.CharType) and len(lengths) > 1:
        return t.VarCharType(length=kind.length, nullable=kind.nullable)
    return kind


def _incompatible(tree: exp.Expr) -> ValidationError:
    return ValidationError(
        "Values passed to VALUES operator must have compatible types", position=position_of(tree)
    )


def _typed(expr: Expr, kind: t.LogicalType) -> Expr:
    return coerce(literal_cast(expr), kind)


def literal_cast(expr: Expr) -> Expr:
    """A cast that only widens the type of a constant gives a constant: CAST('a' AS STRING)."""
    if isinstance(expr, Cast) and isinstance(expr.operand, Literal):
        return literals.widened(expr.operand, expr.type) or expr
    return expr


def _rows(fields: tuple[t.Field, ...], rows: list[tuple[Expr, ...]]) -> n.LogicalNode:
    """One Values node if all cells are constants, otherwise a UNION ALL of one-row projections."""
    constants = [tuple(_constant(x, f.type) for x, f in zip(r, fields, strict=True)) for r in rows]
    if all(c is not None for row in constants for c in row):
        cells = tuple(tuple(c for c in row if c is not None) for row in constants)
        return n.Values(fields=fields, rows=cells)
    branches = tuple(_one(fields, row) for row in rows)
    if len(branches) == 1:
        return branches[0]
    return n.SetOp(fields=fields, kind=n.SetKind.UNION, all=True, branches=branches)


def _one(fields: tuple[t.Field, ...], row: tuple[Expr, ...]) -> n.LogicalNode:
    return n.Project(fields=fields, input=one_row(), expressions=row)


def _constant(expr: Expr, kind: t.LogicalType) -> Literal | None:
    return replace(expr, type=kind) if isinstance(expr, Literal) else None
