"""Calls by name: scalar functions, aggregates with DISTINCT and FILTER, GROUPING, OVER windows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.functions.api import AggregateFunction
from tidemill.functions.session import CURRENT_DATABASE
from tidemill.plan.binder.expressions import calls, user_functions
from tidemill.plan.binder.expressions.binding import Clause, ExpressionBinder, Handler
from tidemill.plan.binder.queries import group_windows
from tidemill.plan.binder.queries.pending import AggregateExpr, GroupingExpr
from tidemill.plan.expressions import Expr, Literal
from tidemill.sql.positions import position_of
from tidemill.types import logical as t
from tidemill.user_functions.kinds import UserAggregateFunction, UserFunction

GROUPING_NAMES = ("GROUPING", "GROUPING_ID", "GROUP_ID")
WINDOW_ONLY = ("ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "NTILE", "PERCENT_RANK", "CUME_DIST")
ARGUMENT = Clause(name="AGGREGATE ARGUMENT")
FILTER = Clause(name="FILTER")


def _call_by_name(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """A call ``NAME(args)``: by name an aggregate, GROUPING or a scalar function."""
    name = str(node.this).upper()
    position = position_of(node)
    if name in GROUPING_NAMES:
        return _grouping(binder, name, node)
    if name in WINDOW_ONLY:
        raise ValidationError("OVER clause is necessary for window functions", position=position)
    declared = user_functions.find(binder.context, node)
    if declared is not None:
        return _user_call(binder, declared, node)
    function = binder.context.environment.aggregate_function(name)
    if function is not None:
        return aggregate(binder, function, node)
    if group_windows.is_auxiliary_name(name):
        return group_windows.bind_auxiliary(binder, name, node)
    if group_windows.is_window_name(name):
        raise group_windows.misplaced_window(node)
    is_scalar = binder.context.environment.scalar_function(name) is not None
    if is_scalar:
        _check_not_distinct(node)
    args, options = scalar_arguments(binder, _without_outer_parens(node.expressions))
    written = str(node.this)
    environment = binder.context.environment
    scalar_call = calls.call(environment, name, args, position, options, written=written)
    if name == CURRENT_DATABASE:
        return Literal(type=scalar_call.type, value=environment.current_database)
    return scalar_call


def _user_call(binder: ExpressionBinder, declared: UserFunction, node: exp.Expr) -> Expr:
    if isinstance(declared, UserAggregateFunction):
        return _user_aggregate(binder, declared, node)
    _check_not_distinct(node)
    args = binder.bind_all(node.expressions)
    return user_functions.scalar(binder.context, declared, node, args)


def _user_aggregate(binder: ExpressionBinder, declared: UserAggregateFunction, node: exp.Expr) -> Expr:
    _check_allowed(binder, position_of(node))
    filter_node = binder.filter
    bound_args = binder.narrowed(ARGUMENT).bind_all(_without_outer_parens(node.expressions))
    condition = None if filter_node is None else binder.narrowed(FILTER).condition(filter_node)
    bound, args = user_functions.aggregate(binder.context, declared, node, bound_args)
    return AggregateExpr(
        type=bound.result,
        function=bound.name,
        args=args,
        distinct=any(isinstance(a, exp.Distinct) for a in node.expressions),
        filter=condition,
        user=bound,
    )


def _check_not_distinct(node: exp.Expr) -> None:
    if any(isinstance(a, exp.Distinct) for a in node.expressions):
        name = str(node.this).upper()
        raise ValidationError(f"DISTINCT/ALL not allowed with {name} function", position=position_of(node))


def _without_outer_parens(nodes: list[exp.Expr]) -> list[exp.Expr]:
    return [x for n in nodes for x in (n.expressions if isinstance(n, exp.Distinct) else [n])]


def scalar_arguments(
    binder: ExpressionBinder, nodes: list[exp.Expr]
) -> tuple[tuple[Expr, ...], calls.Options]:
    """The arguments of a call. A bare unit, such as DAY, becomes the option ``unit``."""
    units = [n.name.upper() for n in nodes if isinstance(n, exp.Var)]
    args = binder.bind_all([n for n in nodes if not isinstance(n, exp.Var)])
    return args, tuple(("unit", u) for u in units)


def aggregate(
    binder: ExpressionBinder,
    function: AggregateFunction,
    node: exp.Expr,
    options: calls.Options = (),
) -> Expr:
    """An aggregate call by name, as a pending expression."""
    nodes, distinct = aggregate_arguments(function, node)
    if nodes and isinstance(nodes[-1], exp.IgnoreNulls | exp.RespectNulls):
        options = (*options, *_null_treatment(function.name, nodes[-1]))
        nodes = [*nodes[:-1], nodes[-1].this]
    return bound_aggregate(binder, function, nodes, node, distinct=distinct, options=options)


def bound_aggregate(
    binder: ExpressionBinder,
    function: AggregateFunction,
    nodes: list[exp.Expr],
    node: exp.Expr,
    *,
    distinct: bool = False,
    options: calls.Options = (),
) -> Expr:
    """An aggregate of ``nodes`` with the binder's FILTER condition."""
    _check_allowed(binder, position_of(node))
    filter_node = binder.filter
    args = binder.narrowed(ARGUMENT).bind_all(nodes)
    condition = None if filter_node is None else binder.narrowed(FILTER).condition(filter_node)
    grouped = binder.clause.grouped and condition is None
    kind, cast = calls.aggregate_types(function, args, options, position_of(node), grouped=grouped)
    cast, options = separator_option(function, cast, options)
    return AggregateExpr(
        type=kind, function=function.name, args=cast, distinct=distinct, filter=condition, options=options
    )


def separator_option(
    function: AggregateFunction, args: tuple[Expr, ...], options: calls.Options
) -> tuple[tuple[Expr, ...], calls.Options]:
    """LISTAGG's separator must be constant, so it becomes an option instead of an input column."""
    if function.name == "LISTAGG" and len(args) == 2 and isinstance(args[1], Literal):
        return args[:1], (*options, ("SEPARATOR", str(args[1].value)))
    return args, options


def aggregate_arguments(function: AggregateFunction, node: exp.Expr) -> tuple[list[exp.Expr], bool]:
    """The arguments, none for COUNT(*), and whether they are DISTINCT."""
    nodes = list(node.expressions)
    distinct = any(isinstance(a, exp.Distinct) for a in nodes)
    if distinct:
        nodes = _without_outer_parens(nodes)
    if len(nodes) == 1 and isinstance(nodes[0], exp.Star):
        if function.name != "COUNT" or distinct:
            raise ValidationError("Unknown identifier '*'", position=position_of(nodes[0]))
        return [], distinct
    if function.name == "COUNT":
        _check_count(nodes, node)
    return nodes, distinct


def _check_count(nodes: list[exp.Expr], node: exp.Expr) -> None:
    if not nodes:
        raise ValidationError(
            "Invalid number of arguments to function 'COUNT'. Was expecting 1 arguments",
            position=position_of(node),
        )
    if len(nodes) > 1:
        raise NotSupportedError("We now only support the count of one field.", position=position_of(node))


def _check_allowed(binder: ExpressionBinder, position: Position | None) -> None:
    if binder.clause.aggregates:
        return
    if binder.clause is ARGUMENT:
        raise ValidationError("Aggregate expressions cannot be nested", position=position)
    if binder.clause is FILTER:
        raise ValidationError("FILTER must not contain aggregate expression", position=position)
    raise ValidationError(
        f"Aggregate expression is illegal in {binder.clause.name} clause", position=position
    )


def _grouping(binder: ExpressionBinder, name: str, node: exp.Expr) -> Expr:
    if not (binder.clause.aggregates and binder.clause.group_by):
        raise ValidationError(
            f"{name} operator may only occur in an aggregate query", position=position_of(node)
        )
    args = binder.narrowed(replace(binder.clause, aggregates=False)).bind_all(node.expressions)
    return GroupingExpr(
        type=t.BigIntType(nullable=False),
        args=args,
        repeat=name == "GROUP_ID",
        position=position_of(node),
    )


def _filter(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """aggregate(...) FILTER (WHERE condition)."""
    bound = replace(binder, filter=node.expression.this).bind(node.this)
    if not isinstance(bound, AggregateExpr):
        raise ValidationError("FILTER must be applied to an aggregate function", position=position_of(node))
    return bound


def _aggregate_named(binder: ExpressionBinder, node: exp.Expr) -> AggregateFunction | None:
    name = str(node.this).upper() if isinstance(node, exp.Anonymous) else ""
    return binder.context.environment.aggregate_function(name)


def _nulls(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """aggregate(...) IGNORE NULLS or RESPECT NULLS."""
    function = _aggregate_named(binder, node.this)
    name = function.name if function is not None else str(node.this.this).upper()
    options = _null_treatment(name, node)
    assert function is not None
    return aggregate(binder, function, node.this, options)


def _null_treatment(name: str, node: exp.Expr) -> calls.Options:
    """The option for IGNORE or RESPECT NULLS. Only ARRAY_AGG has the choice."""
    if name == "ARRAY_AGG":
        return (("NULLS", "IGNORE NULLS"),) if isinstance(node, exp.IgnoreNulls) else ()
    message = f"Cannot specify IGNORE NULLS or RESPECT NULLS following '{name}'"
    raise ValidationError(message, position=position_of(node))


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Anonymous: _call_by_name,
    exp.Filter: _filter,
    exp.IgnoreNulls: _nulls,
    exp.RespectNulls: _nulls,
}
