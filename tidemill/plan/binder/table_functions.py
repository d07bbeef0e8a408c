"""Functions in FROM: UNNEST of a column of the row so far, and the window table functions.

UNNEST appends the element's columns to the row: a ROW's fields, KEY and VALUE of a MAP, else one column;
with ORDINALITY a last INT column counts from 1.
"""

from __future__ import annotations

from functools import singledispatch

from sqlglot import exp

from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.functions.signatures import calcite_text
from tidemill.plan import nodes as n
from tidemill.plan.binder import literals, window_functions
from tidemill.plan.binder.calls import unknown_function
from tidemill.plan.binder.context import Context, QueryBinder
from tidemill.plan.binder.expressions import Clause
from tidemill.plan.binder.joins import ON, kind_of, padded
from tidemill.plan.binder.naming import column_aliases
from tidemill.plan.binder.scope import Relation, Scope, unique_name
from tidemill.plan.binder.tables import Source
from tidemill.plan.expressions import Expr, Literal
from tidemill.plan.predicates import TRUE
from tidemill.sql.expressions import FunctionTable
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

UNNEST = Clause(name="UNNEST")
ORDINALITY = t.Field("ORDINALITY", t.IntType(nullable=False))


def join_unnest(binder: QueryBinder, left: Source, join: exp.Expr, context: Context) -> Source:
    """``left, UNNEST(c)``, ``left CROSS|LEFT|INNER JOIN UNNEST(c) AS t(x) [ON condition]``."""
    kind = kind_of(join)
    if kind not in (n.JoinKind.INNER, n.JoinKind.LEFT):
        raise NotSupportedError(f"{kind.value} with UNNEST is not supported", position=position_of(join))
    node = join.this
    collection = _collection(binder, left.scope, node, context)
    outer = kind is n.JoinKind.LEFT
    fields = _element_fields(collection.type, node)
    ordinality = bool(node.args.get("offset"))
    plan = _unnest(left.plan, collection, fields, outer=outer, ordinality=ordinality)
    right = Scope(relations=(_relation(node, fields, ordinality),))
    scope = left.scope.beside(padded(right, outer))
    return _with_condition(binder, Source(plan=plan, scope=scope), join, context, outer=outer)


def _with_condition(
    binder: QueryBinder, source: Source, join: exp.Expr, context: Context, *, outer: bool
) -> Source:
    on = join.args.get("on")
    if on is None:
        return source
    condition = binder.expressions(context, source.scope, ON).condition(on)
    if condition == TRUE:
        return source
    if outer:
        raise NotSupportedError(
            "LEFT JOIN UNNEST with a condition other than TRUE is not supported", position=position_of(on)
        )
    plan = n.Filter(fields=source.plan.fields, input=source.plan, condition=condition)
    return Source(plan=plan, scope=source.scope)


def bind_unnest(binder: QueryBinder, node: exp.Expr, context: Context) -> Source:
    """UNNEST as the first item of FROM: over one row without columns that anybody sees."""
    zero = literals.integer(0)
    empty = n.Values(fields=(t.Field("ZERO", zero.type),), rows=((zero,),))
    collection = _collection(binder, Scope(), node, context)
    fields = _element_fields(collection.type, node)
    ordinality = bool(node.args.get("offset"))
    plan = _unnest(empty, collection, fields, outer=False, ordinality=ordinality)
    relation = _relation(node, fields, ordinality, offset=1)
    return Source(plan=plan, scope=Scope(relations=(Relation(alias="", fields=(), offset=0), relation)))


def _collection(binder: QueryBinder, scope: Scope, node: exp.Expr, context: Context) -> Expr:
    if len(node.expressions) != 1:
        raise NotSupportedError("UNNEST of several collections is not supported", position=position_of(node))
    return binder.expressions(context, scope, UNNEST).bind(node.expressions[0])


def _unnest(
    source: n.LogicalNode, collection: Expr, fields: tuple[t.Field, ...], *, outer: bool, ordinality: bool
) -> n.LogicalNode:
    used = {f.name for f in source.fields}
    added = []
    for f in (*fields, *((ORDINALITY,) if ordinality else ())):
        name = unique_name(f.name, used)
        used.add(name)
        added.append(t.Field(name, f.type.with_nullable(f.type.nullable or outer)))
    return n.Unnest(
        fields=(*source.fields, *added),
        input=source,
        collection=collection,
        outer=outer,
        ordinality=ordinality,
    )


def _relation(node: exp.Expr, fields: tuple[t.Field, ...], ordinality: bool, offset: int = 0) -> Relation:
    visible = (*fields, *((ORDINALITY,) if ordinality else ()))
    names = column_aliases(node)
    alias = node.alias
    if not names and alias and len(fields) == 1 and fields[0].name == "EXPR$0":
        names = [alias, *(f.name for f in visible[1:])]
    if names and len(names) != len(visible):
        listed = ", ".join(f"'{f.name}'" for f in visible)
        raise ValidationError(
            "List of column aliases must have same degree as table; table has"
            f" {len(visible)} columns ({listed}), whereas alias list has {len(names)} columns",
            position=position_of(node),
        )
    renamed = tuple(t.Field(x, f.type) for x, f in zip(names, visible, strict=True)) if names else visible
    return Relation(alias=alias, fields=renamed, offset=offset)


def _element_fields(kind: t.LogicalType, node: exp.Expr) -> tuple[t.Field, ...]:
    found = _columns(kind)
    if not found:
        forms = "'UNNEST(<MULTISET>)'\n'UNNEST(<ARRAY>)'\n'UNNEST(<MAP>)'"
        raise ValidationError(
            f"Cannot apply 'UNNEST' to arguments of type 'UNNEST(<{calcite_text(kind)}>)'."
            f" Supported form(s): {forms}",
            position=position_of(node),
        )
    return found


@singledispatch
def _columns(kind: t.LogicalType) -> tuple[t.Field, ...]:
    """The columns of one element; none for what is no collection."""
    return ()


@_columns.register(t.ArrayType)
@_columns.register(t.MultisetType)
def _(kind: t.ArrayType | t.MultisetType) -> tuple[t.Field, ...]:
    element = kind.element
    if isinstance(element, t.RowType):
        return tuple(t.Field(f.name, f.type) for f in element.fields)
    return (t.Field("EXPR$0", element),)


@_columns.register
def _(kind: t.MapType) -> tuple[t.Field, ...]:
    return (t.Field("KEY", kind.key), t.Field("VALUE", kind.value))


def bind_function(binder: QueryBinder, node: exp.Expr, context: Context) -> Source:
    """TABLE(f(...)) that reads nothing of its neighbours: the window table functions."""
    assert isinstance(node, FunctionTable)
    call = node.this
    if str(call.this).upper() in window_functions.KINDS:
        return window_functions.bind(binder, node, context)
    raise _unknown(context, call, position_of(node))


def join_function(binder: QueryBinder, left: Source, join: exp.Expr, context: Context) -> Source | None:
    """LATERAL TABLE(f(columns of the left)); None for a function that needs no left row."""
    call = join.this.this
    if str(call.this).upper() in window_functions.KINDS:
        return None
    raise _unknown(context, call, position_of(join))


def _unknown(context: Context, call: exp.Expr, position: Position | None) -> ValidationError:
    args: tuple[Expr, ...] = tuple(Literal(type=t.CharType(length=1), value="") for _ in call.expressions)
    return unknown_function(context.environment, str(call.this), args, position)
