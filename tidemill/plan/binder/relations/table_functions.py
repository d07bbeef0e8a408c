"""Functions in FROM: UNNEST of a column on the left, user table functions, window table functions.

UNNEST appends the element's columns to the row: the fields of a ROW, KEY and VALUE of a MAP, otherwise one
column. WITH ORDINALITY adds a last INT column that counts from 1.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from sqlglot import exp

from tidemill.catalog.table import CatalogTable
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.functions.signatures import calcite_text
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions import user_functions
from tidemill.plan.binder.expressions.binding import Clause, QueryBinder
from tidemill.plan.binder.expressions.function_hints import function_hint
from tidemill.plan.binder.naming import column_aliases, with_column_names
from tidemill.plan.binder.relations import table_columns
from tidemill.plan.binder.relations.built_in import built_in
from tidemill.plan.binder.relations.joins import ON, kind_of, padded_scope
from tidemill.plan.binder.relations.tables import Source, named_source
from tidemill.plan.binder.scope import Relation, Scope, unique_name
from tidemill.plan.expressions import Expr, OuterRef
from tidemill.plan.predicates import TRUE
from tidemill.plan.rules.construct import one_row
from tidemill.plan.rules.determinism import has_subquery, has_user_call
from tidemill.sql.expressions import Descriptor, FunctionTable, TableArgument
from tidemill.sql.positions import position_of
from tidemill.types import logical as t
from tidemill.user_functions.calls import BoundTable

UNNEST = Clause(name="UNNEST")
TABLE_FUNCTION = Clause(name="TABLE FUNCTION")
ORDINALITY = t.Field("ORDINALITY", t.IntType(nullable=False))


def join_unnest(binder: QueryBinder, left: Source, join: exp.Expr, context: Context) -> Source:
    """``left, UNNEST(c)``, ``left CROSS|LEFT|INNER JOIN UNNEST(c) AS t(x) [ON condition]``."""
    kind = _lateral_kind(join, "UNNEST")
    node = join.this
    collection = _collection(binder, left.scope, node, context)
    outer = kind is n.JoinKind.LEFT
    fields = _element_fields(collection.type, node)
    ordinality = bool(node.args.get("offset"))
    plan = _unnest(left.plan, collection, fields, outer=outer, ordinality=ordinality)
    right = Scope(relations=(_relation(node, fields, ordinality),))
    scope = left.scope.beside(padded_scope(right, outer))
    source = Source(plan=plan, scope=scope)
    if outer and join.args.get("on") is not None:
        inner = left.scope.beside(right)
        condition = binder.expressions(context, inner, ON).condition(join.args["on"])
        if _is_plain(condition):
            return source if condition == TRUE else replace(source, plan=replace(plan, condition=condition))
    return _with_condition(binder, source, join, context, outer=outer)


def _is_plain(condition: Expr) -> bool:
    """Whether the condition reads only the row and its element, without subqueries and user functions."""
    return not (has_subquery(condition) or has_user_call(condition)) and not any(
        isinstance(x, OuterRef) for x in condition.walk()
    )


def _lateral_kind(join: exp.Expr, feature: str) -> n.JoinKind:
    kind = kind_of(join)
    if kind not in (n.JoinKind.INNER, n.JoinKind.LEFT):
        raise NotSupportedError(f"{kind.value} with {feature} is not supported", position=position_of(join))
    return kind


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
            "LEFT JOIN LATERAL TABLE with a condition other than TRUE is not supported, nor LEFT JOIN UNNEST "
            "with a subquery or a user-defined function in its condition",
            position=position_of(on),
        )
    plan = n.Filter(fields=source.plan.fields, input=source.plan, condition=condition)
    return Source(plan=plan, scope=source.scope)


def bind_unnest(binder: QueryBinder, node: exp.Expr, context: Context) -> Source:
    """UNNEST as the first item of FROM: it reads one row without visible columns."""
    collection = _collection(binder, Scope(), node, context)
    fields = _element_fields(collection.type, node)
    ordinality = bool(node.args.get("offset"))
    plan = _unnest(one_row(), collection, fields, outer=False, ordinality=ordinality)
    relation = _relation(node, fields, ordinality, offset=1)
    return Source(plan=plan, scope=Scope(relations=(Relation(alias="", fields=(), offset=0), relation)))


def _collection(binder: QueryBinder, scope: Scope, node: exp.Expr, context: Context) -> Expr:
    if len(node.expressions) != 1:
        raise NotSupportedError("UNNEST of several collections is not supported", position=position_of(node))
    return binder.expressions(context, scope, UNNEST).bind(node.expressions[0])


def _unnest(
    source: n.LogicalNode, collection: Expr, fields: tuple[t.Field, ...], *, outer: bool, ordinality: bool
) -> n.Unnest:
    added = (*fields, *((ORDINALITY,) if ordinality else ()))
    return n.Unnest(
        fields=_appended(source, added, outer=outer),
        input=source,
        collection=collection,
        outer=outer,
        ordinality=ordinality,
    )


def _appended(source: n.LogicalNode, fields: tuple[t.Field, ...], *, outer: bool) -> tuple[t.Field, ...]:
    """The source's fields, then ``fields`` under unique names. ``outer``: a row may lack them: nullable."""
    used = {f.name for f in source.fields}
    added = []
    for f in fields:
        name = unique_name(f.name, used)
        used.add(name)
        added.append(t.Field(name, f.type.with_nullable(f.type.nullable or outer)))
    return (*source.fields, *added)


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
    fields = _columns(kind)
    if not fields:
        forms = "'UNNEST(<MULTISET>)'\n'UNNEST(<ARRAY>)'\n'UNNEST(<MAP>)'"
        raise ValidationError(
            f"Cannot apply 'UNNEST' to arguments of type 'UNNEST(<{calcite_text(kind)}>)'."
            f" Supported form(s): {forms}",
            position=position_of(node),
        )
    return fields


@singledispatch
def _columns(kind: t.LogicalType) -> tuple[t.Field, ...]:
    """The columns of one element; none if ``kind`` is no collection."""
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
    """TABLE(f(...)) that reads no column of its neighbours: a built-in function of a table, or a user's
    function of constants."""
    assert isinstance(node, FunctionTable)
    if _is_built_in(node):
        return built_in()[_name(node)](binder, node, context)
    table = _module_table(node, context)
    if table is not None:
        query = with_column_names(table_columns.scan(binder, table, (), context), column_aliases(node), node)
        return named_source(query, node.alias or table.path.name)
    bound, args = _user_function(binder, Scope(), node, context)
    relation = _relation(node, bound.columns.fields, False, offset=1)
    plan = _correlated(one_row(), bound, args, outer=False)
    return Source(plan=plan, scope=Scope(relations=(Relation(alias="", fields=(), offset=0), relation)))


def _module_table(node: exp.Expr, context: Context) -> CatalogTable | None:
    """The table of a module's table function with one text argument; None for other functions."""
    name, values = str(node.this.this), _values(node.this)
    argument = values[0] if len(values) == 1 else None
    text = argument.this if isinstance(argument, exp.Literal) and argument.is_string else None
    table = context.environment.function_table(name, text or "")
    if table is None:
        return None
    position = position_of(node.this)
    if text is None:
        raise ValidationError(f"{name} takes one constant: the path of a savepoint", position=position)
    context.environment.check_table(table, table.options, position)
    return table


def join_function(binder: QueryBinder, left: Source, join: exp.Expr, context: Context) -> Source | None:
    """LATERAL TABLE(f(columns of the left)); None if the function reads no left row."""
    node = join.this
    if _is_built_in(node) or not node.args.get("lateral"):
        return None
    kind = _lateral_kind(join, "LATERAL TABLE")
    bound, args = _user_function(binder, left.scope, node, context)
    outer = kind is n.JoinKind.LEFT
    plan = _correlated(left.plan, bound, args, outer=outer)
    right = Scope(relations=(_relation(node, bound.columns.fields, False),))
    source = Source(plan=plan, scope=left.scope.beside(padded_scope(right, outer)))
    return _with_condition(binder, source, join, context, outer=outer)


def _is_built_in(node: exp.Expr) -> bool:
    return _name(node) in built_in()


def _name(node: exp.Expr) -> str:
    return str(node.this.this).upper()


def _user_function(
    binder: QueryBinder, scope: Scope, node: exp.Expr, context: Context
) -> tuple[BoundTable, tuple[Expr, ...]]:
    call = node.this
    declared = user_functions.find(context, call)
    if declared is None and str(call.this).upper() == "SNAPSHOT":
        raise NotSupportedError("The table function SNAPSHOT is not supported", position=position_of(call))
    if declared is None and any(isinstance(a, TableArgument | Descriptor) for a in _values(call)):
        raise ValidationError(
            f"No match found for function signature {call.this}(<TABLE>, ...)",
            position=position_of(call),
            hint=function_hint(str(call.this), built_in()),
        )
    args = binder.expressions(context, scope, TABLE_FUNCTION).bind_all(call.expressions)
    return user_functions.table(context, declared, call, args)


def _values(call: exp.Expr) -> list[exp.Expr]:
    """The arguments without their names."""
    return [a.expression if isinstance(a, exp.Kwarg) else a for a in call.expressions]


def _correlated(
    source: n.LogicalNode, bound: BoundTable, args: tuple[Expr, ...], *, outer: bool
) -> n.LogicalNode:
    fields = _appended(source, bound.columns.fields, outer=outer)
    return n.TableFunction(fields=fields, input=source, function=bound, args=args, outer=outer)
