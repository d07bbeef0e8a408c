"""Small builders for the expressions and nodes that rules make.

named([a, b])       -> the fields of a and b, under free names
choose(c, x, y)     -> CASE WHEN c THEN x ELSE y END
"""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.functions.comparison import SAME
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef, Literal
from tidemill.types import logical as t
from tidemill.types.values import is_identity

NOT_NULL_BOOLEAN = t.BooleanType(nullable=False)
NOT_NULL_BIGINT = t.BigIntType(nullable=False)


def predicate(function: str, *args: Expr) -> Call:
    """A BOOLEAN call that is NULL only if an argument is nullable."""
    return Call(type=t.BooleanType(nullable=any(a.type.nullable for a in args)), function=function, args=args)


def test(function: str, *args: Expr) -> Call:
    """A BOOLEAN call that is never NULL."""
    return Call(type=NOT_NULL_BOOLEAN, function=function, args=args)


def same_value(left: Expr, right: Expr) -> Expr:
    """Whether a row has the value of a DISTINCT group, where NULL equals NULL."""
    if not is_identity(left.type):
        return test(SAME, left, right)
    return test("IS NOT DISTINCT FROM", left, right) if left.type.nullable else predicate("=", left, right)


def boolean(value: bool | None) -> Literal:
    return Literal(type=t.BooleanType(nullable=value is None), value=value)


def bigint(value: int) -> Literal:
    return Literal(type=NOT_NULL_BIGINT, value=value)


def choose(kind: t.LogicalType, *args: Expr) -> Call:
    """CASE WHEN args[0] THEN args[1] ... ELSE args[-1] END."""
    return Call(type=kind, function="CASE", args=args)


def column(node: n.LogicalNode, index: int) -> InputRef:
    return InputRef(type=node.fields[index].type, index=index)


def columns(node: n.LogicalNode, count: int | None = None) -> tuple[InputRef, ...]:
    """The first ``count`` columns of ``node``, or all columns."""
    return tuple(column(node, i) for i in range(len(node.fields) if count is None else count))


def named(names: Sequence[str], expressions: Sequence[Expr]) -> tuple[t.Field, ...]:
    """Fields for ``expressions``. A repeated name gets a number."""
    used: set[str] = set()
    fields = []
    for name, expr in zip(names, expressions, strict=True):
        unique, attempt = name, 0
        while unique in used:
            unique, attempt = f"{name}{attempt}", attempt + 1
        used.add(unique)
        fields.append(t.Field(unique, expr.type))
    return tuple(fields)


def one_row() -> n.Values:
    """One row with a constant column."""
    zero = Literal(type=t.IntType(nullable=False), value=0)
    return n.Values(fields=(t.Field("ZERO", zero.type),), rows=((zero,),))


def project(source: n.LogicalNode, expressions: Sequence[Expr], names: Sequence[str]) -> n.Project:
    return n.Project(fields=named(names, expressions), input=source, expressions=tuple(expressions))


def join(left: n.LogicalNode, right: n.LogicalNode, kind: n.JoinKind, condition: Expr) -> n.Join:
    """A join whose fields fit its kind: nullable, renamed, or only the left side's."""
    if kind in (n.JoinKind.SEMI, n.JoinKind.ANTI):
        return n.Join(fields=left.fields, left=left, right=right, kind=kind, condition=condition)
    left_null = kind in (n.JoinKind.RIGHT, n.JoinKind.FULL)
    right_null = kind in (n.JoinKind.LEFT, n.JoinKind.FULL)
    padded = [
        *(InputRef(type=_padded(f.type, left_null), index=0) for f in left.fields),
        *(InputRef(type=_padded(f.type, right_null), index=0) for f in right.fields),
    ]
    names = [*(f.name for f in left.fields), *(f.name for f in right.fields)]
    return n.Join(fields=named(names, padded), left=left, right=right, kind=kind, condition=condition)


def _padded(kind: t.LogicalType, missing: bool) -> t.LogicalType:
    return kind.with_nullable(True) if missing else kind
