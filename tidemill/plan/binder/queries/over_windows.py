"""OVER: window specifications, frames, and the Over node that computes the calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.columns import Columns, column_name
from tidemill.plan.binder.context import is_streaming
from tidemill.plan.binder.expressions import calls, literals, user_functions
from tidemill.plan.binder.expressions.binding import Clause, ExpressionBinder, Handler
from tidemill.plan.binder.expressions.functions import aggregate_arguments, separator_option
from tidemill.plan.binder.naming import all_columns
from tidemill.plan.binder.queries.ordering import direction
from tidemill.plan.binder.queries.pending import OverExpr, OverOrder
from tidemill.plan.binder.scope import unique_name
from tidemill.plan.expressions import Expr, FrameBound, InputRef, OverCall, SortKey
from tidemill.plan.rewrite import map_down
from tidemill.sql.positions import position_of
from tidemill.types import logical as t
from tidemill.user_functions.kinds import UserAggregateFunction

BIGINT = t.BigIntType(nullable=False)
DOUBLE = t.DoubleType(nullable=False)
RANKING: dict[str, t.LogicalType] = {
    "ROW_NUMBER": BIGINT,
    "RANK": BIGINT,
    "DENSE_RANK": BIGINT,
    "PERCENT_RANK": DOUBLE,
    "CUME_DIST": DOUBLE,
    "NTILE": BIGINT,
}
SHIFTS = ("LAG", "LEAD")
UNBOUNDED_PRECEDING = FrameBound(offset=None, preceding=True)
UNBOUNDED_FOLLOWING = FrameBound(offset=None, preceding=False)
CURRENT_ROW = FrameBound(offset=0, preceding=False)


def named(tree: exp.Expr) -> Mapping[str, exp.Expr]:
    """The WINDOW clause's windows by name."""
    return {w.this.name: w for w in tree.args.get("windows") or ()}


def bind(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """``function(...) OVER (...)`` or ``OVER name``, as a pending expression."""
    if not binder.clause.windows:
        raise ValidationError(
            f"Windowed aggregate expression is illegal in {binder.clause.name} clause",
            position=position_of(node),
        )
    inner = binder.narrowed(_inside(binder.clause))
    spec = _specification(binder, node)
    partition = inner.bind_all(spec.partition)
    order = inner.bind_all([o.this for o in spec.order])
    directions = tuple(OverOrder(ascending=a, nulls_first=f) for a, f in map(direction, spec.order))
    rows, lower, upper = _frame(inner, spec.frame, bool(order))
    function, args, kind, distinct, options = _function(inner, node.this)
    if rows and not order and is_streaming(binder.context):
        raise ValidationError(
            "The window can only be ordered by a single time column: a ROWS frame needs an ORDER BY",
            position=position_of(node),
        )
    if not order and function in (*RANKING, *SHIFTS):
        raise ValidationError(
            "RANK or DENSE_RANK functions require ORDER BY clause in window specification",
            position=position_of(node),
        )
    return OverExpr(
        type=kind,
        function=function,
        args=args,
        partition=partition,
        order=order,
        directions=directions,
        rows=rows,
        lower=lower,
        upper=upper,
        distinct=distinct,
        options=options,
    )


def _inside(clause: Clause) -> Clause:
    return Clause(name="OVER", aggregates=True, group_by=clause.group_by, grouped=clause.grouped)


@dataclass(frozen=True, slots=True)
class Specification:
    """A window's clauses as written; empty if absent."""

    partition: list[exp.Expr]
    order: list[exp.Expr]
    frame: exp.Expr | None


def _specification(binder: ExpressionBinder, node: exp.Expr) -> Specification:
    """The window's own clauses, completed with those of the named window that it refers to."""
    order = node.args.get("order")
    own = Specification(
        list(node.args.get("partition_by") or ()),
        list(order.expressions) if order is not None else [],
        node.args.get("spec"),
    )
    alias = node.args.get("alias")
    if alias is None:
        return own
    name = alias.name if isinstance(alias, exp.Expr) else str(alias)
    referenced = binder.windows.get(name)
    if referenced is None:
        raise ValidationError(f"Window '{name}' not found", position=position_of(node))
    base = _specification(binder, referenced)
    if own.partition or (own.order and base.order):
        message = f"Window '{name}' already has these clauses: add only clauses that it lacks"
        raise ValidationError(message, position=position_of(node))
    return Specification(base.partition, own.order or base.order, own.frame or base.frame)


Function = tuple[str, tuple[Expr, ...], t.LogicalType, bool, calls.Options]
"""Name, arguments, result type, DISTINCT, options."""


def _function(binder: ExpressionBinder, node: exp.Expr) -> Function:
    if not isinstance(node, exp.Anonymous):
        raise NotSupportedError(f"{type(node).__name__} OVER is not supported", position=position_of(node))
    name = str(node.this).upper()
    if name in RANKING:
        return name, binder.bind_all(node.expressions), RANKING[name], False, ()
    if name in SHIFTS:
        return _shift(binder, name, node)
    if isinstance(user_functions.find(binder.context, node), UserAggregateFunction):
        raise NotSupportedError(
            f"The user-defined aggregate function {node.this} with OVER is not supported",
            position=position_of(node),
        )
    function = binder.context.environment.aggregate_function(name)
    if function is None:
        raise ValidationError(
            f"OVER must be applied to aggregate function, not {name}", position=position_of(node)
        )
    plain = binder.narrowed(_inside(binder.clause))
    nodes, distinct = aggregate_arguments(function, node)
    args = plain.bind_all(nodes)
    kind, cast = calls.aggregate_types(function, args, (), position_of(node), grouped=True)
    cast, options = separator_option(function, cast, ())
    return function.name, cast, kind, distinct, options


def _shift(binder: ExpressionBinder, name: str, node: exp.Expr) -> Function:
    """LAG/LEAD(value [, offset [, default]])."""
    args = binder.bind_all(node.expressions)
    if not 1 <= len(args) <= 3:
        raise ValidationError(
            f"Invalid number of arguments to function '{name}'. Was expecting 1 to 3 arguments",
            position=position_of(node),
        )
    kind = args[0].type
    if len(args) < 3:
        return name, args, kind.with_nullable(True), False, ()
    default = calls.coerce(args[2], kind)
    nullable = kind.nullable or default.type.nullable
    return name, (*args[:2], default), kind.with_nullable(nullable), False, ()


def _frame(
    binder: ExpressionBinder, spec: exp.Expr | None, ordered: bool
) -> tuple[bool, FrameBound, FrameBound]:
    """(rows, lower, upper). Default: the whole partition; with ORDER BY up to the current row's peers."""
    if spec is None:
        return False, UNBOUNDED_PRECEDING, CURRENT_ROW if ordered else UNBOUNDED_FOLLOWING
    rows = str(spec.args.get("kind") or "").upper() == "ROWS"
    lower = _bound(binder, rows, spec.args.get("start"), spec.args.get("start_side"))
    end = spec.args.get("end")
    upper = CURRENT_ROW if end is None else _bound(binder, rows, end, spec.args.get("end_side"))
    _check_ends(spec, lower, upper)
    return rows, lower, upper


def _check_ends(spec: exp.Expr, lower: FrameBound, upper: FrameBound) -> None:
    """As in Flink, the numbers of a frame may make it empty, but its keywords may not."""
    if lower == UNBOUNDED_FOLLOWING:
        message = "UNBOUNDED FOLLOWING cannot be specified for the lower frame boundary"
    elif upper == UNBOUNDED_PRECEDING:
        message = "UNBOUNDED PRECEDING cannot be specified for the upper frame boundary"
    elif _SIDES.index(_side(upper)) < _SIDES.index(_side(lower)):
        message = f"Upper frame boundary cannot be {_side(upper)} when lower boundary is {_side(lower)}"
    else:
        return
    raise ValidationError(message, position=position_of(spec))


_SIDES = ("PRECEDING", "CURRENT ROW", "FOLLOWING")


def _side(bound: FrameBound) -> str:
    if bound == CURRENT_ROW:
        return "CURRENT ROW"
    return "PRECEDING" if bound.preceding else "FOLLOWING"


def _bound(binder: ExpressionBinder, rows: bool, value: object, side: object) -> FrameBound:
    preceding = str(side or "").upper() == "PRECEDING"
    if isinstance(value, exp.Expr) and not isinstance(value, exp.Var):
        offset = _distance(binder, rows, value)
        return FrameBound(offset=-offset if preceding else offset, preceding=preceding)
    text = (value.name if isinstance(value, exp.Var) else str(value or "")).upper()
    if text == "UNBOUNDED":
        return UNBOUNDED_PRECEDING if preceding else UNBOUNDED_FOLLOWING
    return CURRENT_ROW


def _distance(binder: ExpressionBinder, rows: bool, value: exp.Expr) -> int:
    distance = literals.whole_number(binder.bind(value))
    if distance is None and not rows:
        message = "A RANGE frame whose bound is not a constant whole number or interval is not supported"
        raise NotSupportedError(message, position=position_of(value))
    if distance is None or distance < 0:
        kind = "ROWS" if rows else "RANGE"
        message = f"{kind} value must be a non-negative integral constant"
        raise ValidationError(message, position=position_of(value))
    return distance


def lower(source: n.LogicalNode, roots: Sequence[Expr]) -> tuple[n.LogicalNode, Callable[[Expr], Expr]]:
    """``source`` under an Over node for the window calls in ``roots``, and a function that rewrites roots."""
    pending: dict[OverExpr, None] = {}
    for root in roots:
        for expr in root.walk():
            if isinstance(expr, OverExpr):
                pending.setdefault(expr)
    columns = Columns()
    for field, column in zip(source.fields, all_columns(source), strict=True):
        columns.append(column, field.name)
    over_calls = [_call(expr, number, columns, source) for number, expr in enumerate(pending)]
    plan = source if len(columns.fields) == len(source.fields) else columns.project(source)
    fields = (*plan.fields, *(t.Field(c.name, c.type) for c in over_calls))
    node = n.Over(fields=fields, input=plan, calls=tuple(over_calls))
    width = len(plan.fields)
    call_columns = {expr: InputRef(type=expr.type, index=width + i) for i, expr in enumerate(pending)}
    return node, lambda root: map_down(
        root, lambda x: call_columns.get(x) if isinstance(x, OverExpr) else None
    )


def _call(expr: OverExpr, number: int, columns: Columns, source: n.LogicalNode) -> OverCall:
    def put(arg: Expr) -> int:
        return columns.add(arg, column_name(arg, source.fields, columns.next_name()))

    order = tuple(
        SortKey(index=put(key), ascending=d.ascending, nulls_first=d.nulls_first)
        for key, d in zip(expr.order, expr.directions, strict=True)
    )
    return OverCall(
        function=expr.function,
        args=tuple(put(a) for a in expr.args),
        type=expr.type,
        name=unique_name(f"w{number}$o0", {f.name for f in source.fields}),
        partition=tuple(put(p) for p in expr.partition),
        order=order,
        rows=expr.rows,
        lower=expr.lower,
        upper=expr.upper,
        distinct=expr.distinct,
        options=expr.options,
    )


HANDLERS: dict[type[exp.Expr], Handler] = {exp.Window: bind}
