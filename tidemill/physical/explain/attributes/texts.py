"""Texts of attributes that several nodes have."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.explain.printer import Form, Printer, call_text, order_text
from tidemill.plan.expressions import AggregateCall, SortKey
from tidemill.plan.nodes import Months

Attributes = list[tuple[str, str]]


def joined(pairs: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in pairs)


def names(node: p.PhysicalNode) -> str:
    return ", ".join(f.name for f in node.fields)


def bracket(parts: Sequence[str]) -> str:
    return f"[{', '.join(parts)}]"


def ttl_hints(ttl: Sequence[tuple[str, str]]) -> Attributes:
    if not ttl:
        return []
    options = ", ".join(f"{side}={text}" for side, text in sorted(ttl))
    return [("stateTtlHints", f"[[[STATE_TTL options:{{{options}}}]]]")]


def group_by(node: p.PhysicalNode, keys: tuple[int, ...]) -> Attributes:
    """``keys`` of ``node``, the input of an aggregation."""
    return [("groupBy", f"[{Printer.over(node.fields).columns(keys)}]")] if keys else []


def call_texts(node: p.PhysicalNode, calls: Sequence[AggregateCall], form: Form = Form.PREFIX) -> list[str]:
    """``calls`` over ``node``, the input of an aggregation."""
    printer, retract = Printer.over(node.fields, form), node.traits.kinds != INSERT_ONLY
    return [call_text(c, printer, retract=retract) for c in calls]


def distribution(node: p.PhysicalNode, keys: tuple[int, ...]) -> str:
    return f"hash[{Printer.over(node.fields).columns(keys)}]" if keys else "single"


def order_by(order: tuple[SortKey, ...], node: p.PhysicalNode) -> str:
    printer = Printer.over(node.fields)
    return bracket([order_text(k, printer) for k in order])


def _span(milliseconds: int, months: int = 0) -> str:
    """A window's size as Flink prints durations: in the largest unit that divides it."""
    if months:
        return f"{months // 12} y" if months % 12 == 0 else f"{months} mo"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"


def window_text(window: p.Window, times: str, partition: Sequence[str] = ()) -> str:
    """``TUMBLE(time_col=[ts], size=[10 s])``. ``times``: the text of the time column."""
    months = window.months or Months()
    sizes = {"size": (window.size, months.size), "slide": (window.slide, months.slide)}
    parts = [f"{label}=[{_span(*sizes[role])}]" for label, role in window.kind.explained if any(sizes[role])]
    if window.offset or months.offset:
        parts.append(f"offset=[{_span(window.offset, months.offset)}]")
    if partition:
        parts.append(f"partition keys={bracket(list(partition))}")
    return f"{window.kind.name}({', '.join([times, *parts])})"


def emit_attributes(emit: p.Emit | None) -> Attributes:
    if emit is None:
        return []
    parts = [
        f"{kind} no delay" if delay == 0 else f"{kind} delay {delay} millisecond"
        for kind, delay in (("early", emit.early), ("late", emit.late))
        if delay is not None
    ]
    return [("emit", bracket(parts))]


def attached(window: p.AttachedWindow, node: p.PhysicalNode) -> str:
    start, end = node.fields[window.start].name, node.fields[window.end].name
    return window_text(window.window, f"win_start=[{start}], win_end=[{end}]")
