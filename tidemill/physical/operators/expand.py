"""Expand: copies of rows."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.conversion import PlannerContext, convert, convert_node
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes, bracket
from tidemill.physical.explain.printer import Form, Printer
from tidemill.physical.finish import finish
from tidemill.physical.sinks import producer, producer_below
from tidemill.physical.traits.arrival import arrival_of, as_inputs
from tidemill.physical.traits.changelog_mode import (
    kinds_of_inputs,
    modifications,
    needs_same_form,
    satisfied,
)
from tidemill.physical.traits.event_time import passes_watermarks
from tidemill.physical.traits.mini_batch import always
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, Literal


@convert_node.register
def _(node: n.Expand, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return finish(p.Expand(fields=node.fields, input=child, projections=node.projections))


modifications.register(p.Expand, kinds_of_inputs)
satisfied.register(p.Expand, needs_same_form)
producer.register(p.Expand, producer_below)
arrival_of.register(p.Expand, as_inputs)
passes_watermarks.register(p.Expand, always)


@attributes.register
def _(node: p.Expand, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    texts = [
        "{" + ", ".join(_expanded(x, f.name, printer) for x, f in zip(row, node.fields, strict=True)) + "}"
        for row in node.projections
    ]
    return [("projects", bracket(texts))]


def _expanded(expr: Expr, name: str, printer: Printer) -> str:
    if isinstance(expr, Literal):
        return f"{'null' if expr.value is None else expr.value} AS {name}"
    return printer.named(expr, name)
