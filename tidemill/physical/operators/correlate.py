"""Correlate: UNNEST, or a table function per row."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.conversion import PlannerContext, convert, convert_node
from tidemill.physical.explain.attributes.dispatch import attributes, node_name
from tidemill.physical.explain.attributes.texts import Attributes
from tidemill.physical.explain.printer import Form, Printer, record_text
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
from tidemill.physical.traits.mini_batch import always, folds
from tidemill.plan import nodes as n


@convert_node.register
def _(node: n.Unnest, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return finish(
        p.Correlate(
            fields=node.fields,
            input=child,
            function="UNNEST",
            args=(node.collection,),
            outer=node.outer,
            ordinality=node.ordinality,
            condition=node.condition,
        )
    )


@convert_node.register
def _(node: n.TableFunction, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return finish(
        p.Correlate(
            fields=node.fields,
            input=child,
            function=node.function.name,
            args=node.args,
            outer=node.outer,
            user=node.function,
        )
    )


modifications.register(p.Correlate, kinds_of_inputs)
satisfied.register(p.Correlate, needs_same_form)
producer.register(p.Correlate, producer_below)
arrival_of.register(p.Correlate, as_inputs)
passes_watermarks.register(p.Correlate, always)
folds.register(p.Correlate, always)


@node_name.register
def _(node: p.Correlate) -> str:
    return "Correlate" if node.user is None else "PythonCorrelate"


@attributes.register
def _(node: p.Correlate, form: Form) -> Attributes:
    outer = Printer(tuple(f"$cor0.{f.name}" for f in node.input.fields))
    function = "$UNNEST_ROWS$1" if node.function == "UNNEST" else node.function
    call = f"{function}({', '.join(outer.text(a) for a in node.args)})"
    return [
        ("invocation", f"[{call}]"),
        ("correlate", f"[table({call})]"),
        ("select", f"[{','.join(f.name for f in node.fields)}]"),
        ("rowType", f"[{record_text(node.fields)}]"),
        ("joinType", "[LEFT]" if node.outer else "[INNER]"),
        *(() if node.condition is None else (("condition", f"[{_chosen(node, form)}]"),)),
    ]


def _chosen(node: p.Correlate, form: Form) -> str:
    assert node.condition is not None
    return Printer.over(node.fields, form).text(node.condition)
