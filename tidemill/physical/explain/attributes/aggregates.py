"""Attributes of aggregations by key."""

from __future__ import annotations

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.names import Attributes, bracket
from tidemill.physical.explain.printer import Form, Printer, call_text
from tidemill.physical.explain.view import nodes as v


def group_by(node: p.PhysicalNode, keys: tuple[int, ...], phase: str = "") -> Attributes:
    entries: Attributes = []
    if keys:
        entries.append(("groupBy", f"[{Printer.over(node.fields).columns(keys)}]"))
    if phase:
        entries.append(("partialFinalType", f"[{phase}]"))
    return entries


@attributes.register
def _(node: p.GroupAggregate, form: Form) -> Attributes:
    return [*group_by(node.input, node.keys), ("select", bracket(_select(node)))]


@attributes.register
def _(node: v.PhasedGroupAggregate, form: Form) -> Attributes:
    select = node.select if v.is_global(node) else _select(node)
    return [*group_by(node.input, node.keys, node.phase), ("select", bracket(select))]


def _select(node: p.GroupAggregate) -> list[str]:
    printer = Printer.over(node.input.fields)
    retract = node.input.traits.kinds != INSERT_ONLY
    calls = [call_text(c, printer, retract=retract) for c in node.calls]
    return [*(printer.column(k) for k in node.keys), *calls]


@attributes.register
def _(node: v.LocalGroupAggregate, form: Form) -> Attributes:
    return [*group_by(node.input, node.keys, node.phase), ("select", bracket(node.select))]


@attributes.register(p.AggregatePart)
@attributes.register(p.SharedDistinct)
def _(node: p.AggregatePart | p.SharedDistinct, form: Form) -> Attributes:
    return [("select", bracket([f.name for f in node.fields]))]


@attributes.register
def _(node: v.IncrementalGroupAggregate, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    return [
        ("partialAggGrouping", f"[{printer.columns(node.partial_keys)}]"),
        ("finalAggGrouping", f"[{printer.columns(node.final_keys)}]"),
        ("select", bracket(node.select)),
    ]
