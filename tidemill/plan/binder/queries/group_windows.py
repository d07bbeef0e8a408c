"""Group windows: ``GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)`` and their auxiliary functions (``TUMBLE_START``).

A group window is another notation of a window table function. The binder puts the window table function below
the aggregation. The window's columns become keys of the aggregation, and the auxiliary functions these keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.operators.window.assigners import kinds
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions.binding import Clause, ExpressionBinder, GroupWindow, QueryBinder
from tidemill.plan.binder.relations.tables import Source
from tidemill.plan.binder.relations.window_functions import (
    Length,
    checked,
    length,
    millis,
    months,
    window_fields,
)
from tidemill.plan.expressions import Expr, InputRef, Literal
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

_COLUMNS = {"_START": 0, "_END": 1, "_ROWTIME": 2}
_SUFFIXES = (*_COLUMNS, "_PROCTIME")
_GROUP_BY = Clause(name="GROUP BY")


def bind(
    binder: QueryBinder, tree: exp.Expr, source: Source, context: Context
) -> tuple[Source, GroupWindow | None]:
    """The rows of ``source`` with the window that GROUP BY names; ``source`` itself without a window."""
    calls = list(_calls(tree.args.get("group")))
    if not calls:
        return source, None
    expressions = binder.expressions(context, source.scope, _GROUP_BY)
    bound = {_arguments(expressions, call): call for call in calls}
    if len(bound) > 1:
        message = "Only a single window group function in GROUP BY is supported"
        raise ValidationError(message, position=position_of(calls[-1]))
    ((arguments, call),) = bound.items()
    plan, time = _with_time(source.plan, arguments.time)
    kind = kinds()[arguments.name]
    window = n.WindowTableFunction(
        fields=(*plan.fields, *_window_columns(plan.fields, arguments.time.type)),
        input=plan,
        kind=kind,
        time=time,
        size=millis(arguments.sizes, "size"),
        slide=millis(arguments.sizes, "slide"),
        offset=millis(arguments.sizes, "offset"),
        months=months(kind, call, arguments.sizes, ("size", "slide", "offset")),
        group=True,
        position=position_of(call),
    )
    width = len(plan.fields)
    keys = tuple(InputRef(type=window.fields[width + i].type, index=width + i) for i in range(3))
    return replace(source, plan=checked(window)), GroupWindow(arguments=arguments, columns=keys)


def _window_columns(fields: tuple[t.Field, ...], time: t.LogicalType) -> tuple[t.Field, ...]:
    """Start, end and time of the window. The time is nullable if the rows' time is."""
    *bounds, last = window_fields(fields, time)
    return (*bounds, replace(last, type=replace(last.type, nullable=time.nullable)))


def partition_data_driven_window(
    plan: n.LogicalNode, keys: tuple[Expr, ...], window: GroupWindow
) -> n.LogicalNode:
    """Partitions a data-driven window by the other GROUP BY keys, if these are columns. For computed keys
    ``aggregates.lower`` does so."""
    if not isinstance(plan, n.WindowTableFunction) or not plan.kind.is_data_driven:
        return plan
    others = [k for k in keys if k not in window.columns]
    return replace(plan, partition=tuple(k.index for k in others if isinstance(k, InputRef)))


def is_window_name(name: str) -> bool:
    """Whether ``name`` is a group window, such as TUMBLE."""
    return name in kinds()


def is_auxiliary_name(name: str) -> bool:
    """Whether ``name`` is an auxiliary function, such as TUMBLE_START."""
    return name.endswith(_SUFFIXES) and _window_of(name) in kinds()


def _window_of(name: str) -> str:
    return next(name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix))


def bind_auxiliary(binder: ExpressionBinder, name: str, node: exp.Expr) -> Expr:
    """``TUMBLE_START(ts, ...)``: the column of the window that GROUP BY names by the same arguments."""
    window, kind = binder.group_window, _window_of(name)
    position = position_of(node)
    if window is None or _arguments(binder, node, kind) != window.arguments:
        raise ValidationError(
            f"Group window function {kind} must be in GROUP BY: {name} needs it there,"
            " with the same arguments",
            position=position,
        )
    suffix = name.removeprefix(kind)
    by_clock = window.arguments.time.type.time_attribute == "PROCTIME"
    if suffix == "_PROCTIME" and not by_clock:
        # As in Flink, a window by event time has no TUMBLE_PROCTIME, though its type is the window time's.
        return Literal(type=replace(window.columns[_COLUMNS["_ROWTIME"]].type, nullable=True), value=None)
    if suffix == "_PROCTIME":
        return binder.call("PROCTIME", (), node)
    if suffix == "_ROWTIME" and by_clock:
        raise ValidationError(
            "A proctime window cannot provide a rowtime attribute.",
            position=position,
            hint=f"Use {kind}_PROCTIME.",
        )
    return window.columns[_COLUMNS[suffix]]


def is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and is_window_name(str(node.this).upper())


def misplaced_window(node: exp.Expr) -> ValidationError:
    """The error for a group window outside of GROUP BY."""
    name = str(node.this).upper()
    message = f"Group window function {name} is only allowed in GROUP BY"
    return ValidationError(message, position=position_of(node))


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a window; equal for calls of the same window."""

    name: str
    time: Expr
    lengths: tuple[tuple[str, Length], ...]

    @property
    def sizes(self) -> dict[str, Length]:
        return dict(self.lengths)


def _calls(group: exp.Expr | None) -> Iterator[exp.Expr]:
    if group is not None:
        yield from (node for node in group.find_all(exp.Anonymous) if is_window(node))


def _arguments(binder: ExpressionBinder, call: exp.Expr, name: str = "") -> Arguments:
    name = name or str(call.this).upper()
    parameters, required = kinds()[name].grouped, kinds()[name].required
    call_args = call.expressions
    if not 1 + required <= len(call_args) <= 1 + len(parameters):
        form = ", ".join(("timecol", *parameters))
        raise ValidationError(f"Supported form(s): {name}({form})", position=position_of(call))
    time = binder.bind(call_args[0])
    if not isinstance(time.type, t.TIMESTAMP_TYPES):
        raise ValidationError(
            "Window aggregate can only be defined over a time attribute column,"
            f" but {time.type} encountered.",
            position=position_of(call_args[0]),
        )
    _refuse_alignment(binder, name, call_args[1:])
    sizes = [(p, length(binder, node)) for p, node in zip(parameters, call_args[1:], strict=False)]
    for parameter, (_, size) in sizes:
        if parameter != "offset" and size <= 0:
            raise ValidationError(f"{name} requires a positive {parameter}", position=position_of(call))
    return Arguments(name, time, tuple(sizes))


def _refuse_alignment(binder: ExpressionBinder, name: str, sizes: list[exp.Expr]) -> None:
    """NotSupportedError for a TIME as offset: Flink's grammar has it, its planner refuses it."""
    for node in sizes[1:]:
        if isinstance(binder.bind(node).type, t.TimeType):
            raise NotSupportedError(
                f"{name} window with alignment is not supported yet.",
                position=position_of(node),
                hint="Give the offset as an INTERVAL.",
            )


def _with_time(plan: n.LogicalNode, time: Expr) -> tuple[n.LogicalNode, int]:
    """``plan`` with ``time`` as a field, and its index. A computed time becomes an extra column."""
    if isinstance(time, InputRef):
        return plan, time.index
    name = "$time"
    while name in {f.name for f in plan.fields}:
        name += "$"
    refs = tuple(InputRef(type=f.type, index=i) for i, f in enumerate(plan.fields))
    fields = (*plan.fields, t.Field(name, time.type))
    return n.Project(fields=fields, input=plan, expressions=(*refs, time)), len(refs)
