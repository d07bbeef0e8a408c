"""Window table functions, aggregation by window, and the windows that rows carry.

``GROUP BY window_start, window_end, ...`` over a window table function works on what the function reads:
rows go to slices, no row is copied for its windows. Where the windows were needed in between (a filter on
them, an aggregate by window below), rows come with their window, and its end says when they are due."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidemill.config.option import Configuration
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.known_keys import known_keys_of_windows
from tidemill.physical.aggregates.parts import is_averaged, split_buckets
from tidemill.physical.conditions import columns
from tidemill.physical.emit import emit
from tidemill.physical.finish import PENDING, exchange, finish, references, select
from tidemill.physical.names import free_name
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Expr, InputRef
from tidemill.plan.windows import WindowColumns, window_columns
from tidemill.types import logical as t
from tidemill.types.logical import Field

_ROLES = ("start", "end", "time")


def window_of(function: n.WindowTableFunction) -> p.Window:
    kind = function.input.fields[function.time].type
    return p.Window(
        kind=function.kind,
        size=function.size,
        slide=function.slide,
        offset=function.offset,
        months=function.months,
        zoned=isinstance(kind, t.LocalZonedTimestampType),
        group=function.group,
        proctime=kind.time_attribute == "PROCTIME",
    )


def attached_window(found: WindowColumns, columns: Iterable[int]) -> p.AttachedWindow:
    """The window as rows carry it in ``columns``."""
    chosen = frozenset(columns)
    return p.AttachedWindow(
        window=window_of(found.function), start=min(chosen & found.starts), end=min(chosen & found.ends)
    )


def plan_window_function(
    node: n.WindowTableFunction, child: p.PhysicalNode, state_ttl: int
) -> p.PhysicalNode:
    check_time_attribute(node)
    if node.kind.made_by_rows:
        if window_of(node).proctime:
            raise NotSupportedError(
                f"{node.kind.name} by processing time is supported below an aggregation by its window alone",
                position=node.position,
            )
        return finish(
            p.WindowsOfRows(
                fields=node.fields,
                traits=PENDING,
                input=exchange(child, node.partition),
                window=_with_ttl(window_of(node), state_ttl),
                time=node.time,
                partition=node.partition,
            )
        )
    return finish(
        p.WindowTableFunction(
            fields=node.fields,
            traits=PENDING,
            input=child,
            window=window_of(node),
            time=node.time,
            partition=node.partition,
        )
    )


def _with_ttl(window: p.Window, state_ttl: int) -> p.Window:
    """``window``, of which nothing but ``state_ttl`` ends one without gap."""
    return window if window.size else replace(window, state_ttl=state_ttl)


def check_time_attribute(node: n.WindowTableFunction) -> None:
    """A stream has windows only by a time that says when they are complete."""
    field = node.input.fields[node.time]
    if not field.type.time_attribute:
        raise ValidationError(
            f"The window function requires the timecol is a time attribute type, but is {field.type}.",
            position=node.position,
            hint=f"Declare WATERMARK FOR {field.name} AS ... in the table, and hand the column on as it is.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowedAggregate:
    """``input``: what the aggregation reads; ``time``, ``keys`` (without the window's) and ``calls`` are
    over its fields; ``roles``: per key of the aggregate which column of the window it is, or ''."""

    function: n.WindowTableFunction
    input: n.LogicalNode
    time: int
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    roles: tuple[str, ...]
    attached: bool


def windowed_aggregate(node: n.Aggregate) -> WindowedAggregate | None:
    """How ``node`` goes window by window; None where it does not."""
    found = window_columns(node.input)
    if found is None or not found.tell_window(node.keys):
        return None
    roles = tuple(_role(found, key) for key in node.keys)
    merged = _merged(node, found, roles)
    if merged is not None:
        return merged
    if found.function.kind.made_by_rows:
        # Two of them may end at one time, and have not begun at one.
        roles = tuple("" if role == "start" else role for role in roles)
    end = min(found.ends)
    keys = tuple(k for k, role in zip(node.keys, roles, strict=True) if not role)
    return WindowedAggregate(
        function=found.function,
        input=node.input,
        time=end,
        keys=keys,
        calls=node.calls,
        roles=roles,
        attached=True,
    )


def _role(found: WindowColumns, column: int) -> str:
    sets = (found.starts, found.ends, found.times)
    return next((role for role, members in zip(_ROLES, sets, strict=True) if column in members), "")


def _merged(node: n.Aggregate, found: WindowColumns, roles: tuple[str, ...]) -> WindowedAggregate | None:
    """The aggregation over what the window table function reads, if nothing else looks at the windows."""
    function, below = found.function, node.input
    width = len(function.input.fields)
    expressions: tuple[Expr, ...] = tuple(
        InputRef(type=f.type, index=i) for i, f in enumerate(function.fields)
    )
    if isinstance(below, n.Project):
        expressions, below = below.expressions, below.input
    if below is not function:
        return None
    needed = [k for k, role in zip(node.keys, roles, strict=True) if not role]
    needed += [a for c in node.calls for a in (*c.args, *([] if c.filter is None else [c.filter]))]
    if any(i >= width for k in needed for i in columns(expressions[k])):
        return None
    plain = [expressions[k] for k, role in zip(node.keys, roles, strict=True) if not role]
    if function.kind.made_by_rows and not _are(plain, function.partition):
        return None
    kept = list(dict.fromkeys(needed))
    fields = [node.input.fields[k] for k in kept]
    time = function.input.fields[function.time]
    time = Field(free_name(time.name, (f.name for f in fields)), time.type)
    projected = n.Project(
        fields=(*fields, time),
        input=function.input,
        expressions=(*(expressions[k] for k in kept), InputRef(type=time.type, index=function.time)),
    )
    places = {k: i for i, k in enumerate(kept)}
    return WindowedAggregate(
        function=function,
        input=projected,
        time=len(kept),
        keys=tuple(places[k] for k, role in zip(node.keys, roles, strict=True) if not role),
        calls=tuple(_moved(c, places) for c in node.calls),
        roles=roles,
        attached=False,
    )


def _are(expressions: list[Expr], columns: tuple[int, ...]) -> bool:
    """Whether ``expressions`` are these columns, in any order."""
    indexes = {x.index if isinstance(x, InputRef) else -1 for x in expressions}
    return indexes == set(columns)


def _moved(call: AggregateCall, places: dict[int, int]) -> AggregateCall:
    filter_ = None if call.filter is None else places[call.filter]
    return replace(call, args=tuple(places[a] for a in call.args), filter=filter_)


def plan_window_aggregate(
    node: n.Aggregate,
    windowed: WindowedAggregate,
    child: p.PhysicalNode,
    config: Configuration,
    state_ttl: int,
) -> p.PhysicalNode:
    """WindowAggregate, and a Calc that brings its fields into the aggregate's order. ``state_ttl`` is for
    windows that nothing else ends."""
    check_time_attribute(windowed.function)
    keys = [f for f, role in zip(node.fields, windowed.roles, strict=False) if not role]
    results = node.fields[len(node.keys) :]
    asked = [(role, f) for f, role in zip(node.fields, windowed.roles, strict=False) if role]
    window = _with_ttl(window_of(windowed.function), state_ttl)
    emitted = emit(config, rowtime=not window.proctime)
    whole = p.WindowAggregate(
        fields=(*keys, *results, *(f for _, f in asked)),
        traits=PENDING,
        input=exchange(child, windowed.keys),
        keys=windowed.keys,
        calls=windowed.calls,
        window=window,
        time=windowed.time,
        properties=tuple(role for role, _ in asked),
        attached=windowed.attached,
        emit=emitted,
        split=0 if emitted is not None else _split_buckets(window, windowed, config),
        reuse=known_keys_of_windows(windowed.input, windowed.keys, windowed.calls, config),
    )
    aggregate: p.PhysicalNode = finish(whole)
    if is_averaged(whole):
        # Flink makes the averages here. The identities of the operators above count this Calc.
        refs = references(aggregate.fields)
        calc = p.Calc(fields=aggregate.fields, traits=PENDING, input=aggregate, projections=refs)
        aggregate = finish(calc)
    order = tuple(aggregate.fields.index(f) for f in node.fields)
    return select(aggregate, order, node.fields)


def _split_buckets(window: p.Window, windowed: WindowedAggregate, config: Configuration) -> int:
    """Flink splits what it plans over window table functions by event time that are no sessions."""
    if window.proctime or window.group or window.kind.made_by_rows:
        return 0
    return split_buckets(windowed.calls, windowed.keys, config)
