"""The names, attributes and notes of the nodes that only Flink's view has."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.aggregates.salted_distinct import bucket_part
from tidemill.physical.explain.attributes.dispatch import attributes, node_name
from tidemill.physical.explain.attributes.texts import Attributes, bracket, group_by, window_text
from tidemill.physical.explain.notes import (
    BY_AGGREGATION,
    BY_WRITER,
    Notes,
    Pairs,
    notes_beside,
    paired_inputs,
)
from tidemill.physical.explain.printer import Form, Printer
from tidemill.physical.explain.view import nodes as v
from tidemill.physical.operators.group_aggregate import notes_of_sharing, selected
from tidemill.physical.operators.window_aggregate import time_text, window_attributes

_SLICES = {False: ("slice_end", "$slice_end"), True: ("win_end", "$window_end")}
"""The attribute and the column of a global phase, by whether rows already carry their window."""


def _phase(phase: str) -> Attributes:
    return [("partialFinalType", f"[{phase}]")] if phase else []


@node_name.register
def _(node: v.PhasedGroupAggregate) -> str:
    return "GlobalGroupAggregate" if v.is_global(node) else node_name.dispatch(p.GroupAggregate)(node)


@attributes.register
def _(node: v.PhasedGroupAggregate, form: Form) -> Attributes:
    select = node.select if v.is_global(node) else selected(node)
    return [*group_by(node.input, node.keys), *_phase(node.phase), ("select", bracket(select))]


@attributes.register
def _(node: v.LocalGroupAggregate, form: Form) -> Attributes:
    return [*group_by(node.input, node.keys), *_phase(node.phase), ("select", bracket(node.select))]


@attributes.register
def _(node: v.IncrementalGroupAggregate, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    return [
        ("partialAggGrouping", f"[{printer.columns(node.partial_keys)}]"),
        ("finalAggGrouping", f"[{printer.columns(node.final_keys)}]"),
        ("select", bracket(node.select)),
    ]


@paired_inputs.register
def _(shown: v.PhasedGroupAggregate, runs: p.PhysicalNode) -> Pairs:
    return paired_inputs.dispatch(p.GroupAggregate)(_whole(shown), runs)


@notes_beside.register
def _(shown: v.PhasedGroupAggregate, runs: p.PhysicalNode, is_combined: bool) -> Notes:
    """One kernel does all phases."""
    assert isinstance(runs, p.GroupAggregate)
    yield from notes_of_sharing(shown, _whole(shown), runs)
    for phase in v.phases(shown):
        local = isinstance(phase, v.LocalGroupAggregate) and is_combined
        yield phase, BY_WRITER if local else BY_AGGREGATION


def _whole(shown: v.PhasedGroupAggregate) -> p.GroupAggregate:
    """The shown aggregation before it was split into phases."""
    return shown.whole or shown


@node_name.register
def _(node: v.PhasedWindowAggregate) -> str:
    if v.is_global(node) and not node.window.group:
        return "GlobalWindowAggregate"
    return node_name.dispatch(p.WindowAggregate)(node)


@attributes.register
def _(node: v.PhasedWindowAggregate, form: Form) -> Attributes:
    if not v.is_global(node):
        return attributes.dispatch(p.WindowAggregate)(node, form)
    name, column = _SLICES[node.attached]
    return window_attributes(node, list(node.merged), f"{name}=[{column}]")


@attributes.register
def _(node: v.LocalWindowAggregate, form: Form) -> Attributes:
    keys = [node.input.fields[k].name for k in node.keys]
    times = time_text(node.input, node.time, node.attached)
    return [
        *group_by(node.input, node.keys),
        ("window", f"[{window_text(node.window, times)}]"),
        ("select", bracket([*keys, *node.select, f"slice_end('w$) AS {_SLICES[node.attached][1]}"])),
    ]


@paired_inputs.register
def _(shown: v.PhasedWindowAggregate, runs: p.PhysicalNode) -> Pairs:
    return paired_inputs.dispatch(p.WindowAggregate)(shown.whole or shown, runs)


@notes_beside.register
def _(shown: v.PhasedWindowAggregate, runs: p.PhysicalNode, is_combined: bool) -> Notes:
    """The writer of the exchange does the local phase. If the aggregation is spread over buckets, a second
    aggregation runs."""
    yield from notes_beside.dispatch(p.WindowAggregate)(shown, runs, is_combined)
    spread = bucket_part(runs) is not None
    phases = [x for x in v.phases(shown) if isinstance(x, p.WindowAggregate | v.LocalWindowAggregate)]
    for phase in phases:
        local = isinstance(phase, v.LocalWindowAggregate)
        if local or not spread:
            writer = local and is_combined and phase is phases[-1]
            yield phase, BY_WRITER if writer else BY_AGGREGATION


@node_name.register
def _(node: v.BundledJoin) -> str:
    return "Join"


@attributes.register
def _(node: v.BundledJoin, form: Form) -> Attributes:
    return [*attributes.dispatch(p.Join)(node, form), ("miniBatch", "[true]")]
