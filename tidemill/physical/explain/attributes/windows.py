"""Attributes of windows and of the aggregations by them."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes.aggregates import group_by
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.names import Attributes, bracket
from tidemill.physical.explain.printer import Form, Printer, call_text
from tidemill.physical.explain.view import nodes as v
from tidemill.plan.nodes import Months


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


@attributes.register(p.WindowTableFunction)
@attributes.register(p.WindowsOfRows)
def _(node: p.WindowTableFunction | p.WindowsOfRows, form: Form) -> Attributes:
    fields = node.input.fields
    partition = [fields[i].name for i in node.partition]
    return [("window", f"[{window_text(node.window, f'time_col=[{fields[node.time].name}]', partition)}]")]


@attributes.register
def _(node: p.WindowAggregate, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    names = [f.name for f in node.fields]
    partition = [node.input.fields[k].name for k in node.keys] if node.window.kind.is_data_driven else []
    retract = node.input.traits.kinds != INSERT_ONLY
    calls = [call_text(c, printer, retract=retract) for c in node.calls]
    property_names = zip(node.properties, names[len(node.keys) + len(node.calls) :], strict=True)
    properties = [f"{_property(kind, node.window)}('w$) AS {name}" for kind, name in property_names]
    times = _cut_by(node)
    if isinstance(node, v.PhasedWindowAggregate) and v.is_global(node):
        calls, times = list(node.merged), f"{_SLICES[node.attached][0]}=[{_SLICES[node.attached][1]}]"
    return [
        *group_by(node.input, node.keys),
        ("window", f"[{window_text(node.window, times, partition)}]"),
        *emit_attributes(node.emit),
        ("select", bracket([*names[: len(node.keys)], *calls, *properties])),
    ]


def emit_attributes(emit: p.Emit | None) -> Attributes:
    if emit is None:
        return []
    parts = [
        f"{kind} no delay" if delay == 0 else f"{kind} delay {delay} millisecond"
        for kind, delay in (("early", emit.early), ("late", emit.late))
        if delay is not None
    ]
    return [("emit", bracket(parts))]


@attributes.register
def _(node: v.LocalWindowAggregate, form: Form) -> Attributes:
    keys = [node.input.fields[k].name for k in node.keys]
    return [
        *group_by(node.input, node.keys),
        ("window", f"[{window_text(node.window, _cut_by(node))}]"),
        ("select", bracket([*keys, *node.select, f"slice_end('w$) AS {_SLICES[node.attached][1]}"])),
    ]


def _cut_by(node: p.WindowAggregate | v.LocalWindowAggregate) -> str:
    time = node.input.fields[node.time].name
    return f"win_end=[{time}]" if node.attached else f"time_col=[{time}]"


_SLICES = {False: ("slice_end", "$slice_end"), True: ("win_end", "$window_end")}
"""The attribute and the column of a global phase, by whether rows already carry their window."""


def _property(kind: str, window: p.Window) -> str:
    if kind != "time":
        return kind
    return "proctime" if window.proctime else "rowtime"


def attached(window: p.AttachedWindow, node: p.PhysicalNode) -> str:
    start, end = node.fields[window.start].name, node.fields[window.end].name
    return window_text(window.window, f"win_start=[{start}], win_end=[{end}]")
