"""Window table functions, aggregation by window, and the windows that rows carry.

``GROUP BY window_start, window_end, ...`` over a window table function reads the function's input: rows go to
slices, and no row is copied per window. If a node between needs the windows (a filter on them, an aggregate
by window), rows carry their window, and its end tells when the result is due."""

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
from tidemill.physical.finish import exchange, finish, references, select
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


def attached_window(columns_of_window: WindowColumns, columns: Iterable[int]) -> p.AttachedWindow:
    """The window that rows carry in ``columns``."""
    chosen = frozenset(columns)
    return p.AttachedWindow(
        window=window_of(columns_of_window.function),
        start=min(chosen & columns_of_window.starts),
        end=min(chosen & columns_of_window.ends),
    )


def plan_window_function(
    node: n.WindowTableFunction, child: p.PhysicalNode, state_ttl: int
) -> p.PhysicalNode:
    check_time_attribute(node)
    if node.kind.is_data_driven:
        if window_of(node).proctime:
            raise NotSupportedError(
                f"{node.kind.name} by processing time is supported below an aggregation by its window alone",
                position=node.position,
            )
        return finish(
            p.WindowsOfRows(
                fields=node.fields,
                input=exchange(child, node.partition),
                window=_with_ttl(window_of(node), state_ttl),
                time=node.time,
                partition=node.partition,
            )
        )
    return finish(
        p.WindowTableFunction(
            fields=node.fields,
            input=child,
            window=window_of(node),
            time=node.time,
            partition=node.partition,
        )
    )


def _with_ttl(window: p.Window, state_ttl: int) -> p.Window:
    """``window`` with ``state_ttl`` if it has no gap, because only expiry ends it."""
    return window if window.size else replace(window, state_ttl=state_ttl)


def check_time_attribute(node: n.WindowTableFunction) -> None:
    """ValidationError if the window's time is no time attribute: a stream could not tell when it is
    complete."""
    field = node.input.fields[node.time]
    if not field.type.time_attribute:
        raise ValidationError(
            f"The window function requires the timecol is a time attribute type, but is {field.type}.",
            position=node.position,
            hint=f"Declare WATERMARK FOR {field.name} AS ... in the table, and hand the column on as it is.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowedAggregate:
    """``input``: of the aggregation. ``time``, ``keys`` (without the window's) and ``calls`` are over its
    fields. ``roles``: for each key of the aggregate its role in the window (start, end, time), or ''."""

    function: n.WindowTableFunction
    input: n.LogicalNode
    time: int
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    roles: tuple[str, ...]
    attached: bool


def windowed_aggregate(node: n.Aggregate) -> WindowedAggregate | None:
    """The aggregation by window for ``node``; None if it does not group by a window."""
    windows = window_columns(node.input)
    if windows is None or not windows.tell_window(node.keys):
        return None
    roles = tuple(_role(windows, key) for key in node.keys)
    merged = _merged(node, windows, roles)
    if merged is not None:
        return merged
    if windows.function.kind.is_data_driven:
        # Two windows may have the same end but different starts.
        roles = tuple("" if role == "start" else role for role in roles)
    end = min(windows.ends)
    keys = tuple(k for k, role in zip(node.keys, roles, strict=True) if not role)
    return WindowedAggregate(
        function=windows.function,
        input=node.input,
        time=end,
        keys=keys,
        calls=node.calls,
        roles=roles,
        attached=True,
    )


def _role(windows: WindowColumns, column: int) -> str:
    sets = (windows.starts, windows.ends, windows.times)
    return next((role for role, members in zip(_ROLES, sets, strict=True) if column in members), "")


def _merged(node: n.Aggregate, windows: WindowColumns, roles: tuple[str, ...]) -> WindowedAggregate | None:
    """The aggregation over the window table function's input, if no node between reads the windows."""
    function, below = windows.function, node.input
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
    if function.kind.is_data_driven and not _are_columns(plain, function.partition):
        return None
    input_columns = list(dict.fromkeys(needed))
    fields = [node.input.fields[k] for k in input_columns]
    time = function.input.fields[function.time]
    time = Field(free_name(time.name, (f.name for f in fields)), time.type)
    projected = n.Project(
        fields=(*fields, time),
        input=function.input,
        expressions=(*(expressions[k] for k in input_columns), InputRef(type=time.type, index=function.time)),
    )
    positions = {k: i for i, k in enumerate(input_columns)}
    return WindowedAggregate(
        function=function,
        input=projected,
        time=len(input_columns),
        keys=tuple(positions[k] for k, role in zip(node.keys, roles, strict=True) if not role),
        calls=tuple(_moved(c, positions) for c in node.calls),
        roles=roles,
        attached=False,
    )


def _are_columns(expressions: list[Expr], columns: tuple[int, ...]) -> bool:
    """Whether ``expressions`` are these columns, in any order."""
    indexes = {x.index if isinstance(x, InputRef) else -1 for x in expressions}
    return indexes == set(columns)


def _moved(call: AggregateCall, positions: dict[int, int]) -> AggregateCall:
    filter_ = None if call.filter is None else positions[call.filter]
    return replace(call, args=tuple(positions[a] for a in call.args), filter=filter_)


def plan_window_aggregate(
    node: n.Aggregate,
    windowed: WindowedAggregate,
    child: p.PhysicalNode,
    config: Configuration,
    state_ttl: int,
) -> p.PhysicalNode:
    """WindowAggregate, and a Calc that orders its fields as the aggregate's. ``state_ttl``: for windows
    without an end."""
    check_time_attribute(windowed.function)
    keys = [f for f, role in zip(node.fields, windowed.roles, strict=False) if not role]
    results = node.fields[len(node.keys) :]
    properties = [(role, f) for f, role in zip(node.fields, windowed.roles, strict=False) if role]
    window = _with_ttl(window_of(windowed.function), state_ttl)
    emitted = emit(config, rowtime=not window.proctime)
    whole = p.WindowAggregate(
        fields=(*keys, *results, *(f for _, f in properties)),
        input=exchange(child, windowed.keys),
        keys=windowed.keys,
        calls=windowed.calls,
        window=window,
        time=windowed.time,
        properties=tuple(role for role, _ in properties),
        attached=windowed.attached,
        emit=emitted,
        split=0 if emitted is not None else _split_buckets(window, windowed, config),
        reuse=known_keys_of_windows(windowed.input, windowed.keys, windowed.calls, config),
    )
    aggregate: p.PhysicalNode = finish(whole)
    if is_averaged(whole):
        # Flink computes averages in this Calc. It counts in the identities of the operators above.
        refs = references(aggregate.fields)
        calc = p.Calc(fields=aggregate.fields, input=aggregate, projections=refs)
        aggregate = finish(calc)
    order = tuple(aggregate.fields.index(f) for f in node.fields)
    return select(aggregate, order, node.fields)


def _split_buckets(window: p.Window, windowed: WindowedAggregate, config: Configuration) -> int:
    """The buckets of split DISTINCT: Flink splits only over window table functions by event time, not
    sessions."""
    if window.proctime or window.group or window.kind.is_data_driven:
        return 0
    return split_buckets(windowed.calls, windowed.keys, config)
