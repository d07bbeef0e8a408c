"""WatermarkAssigner: the watermark of a table."""

from __future__ import annotations

from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.conversion import PlannerContext, convert, convert_node
from tidemill.physical.digests import hashed, joined
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes
from tidemill.physical.explain.notes import runs_otherwise
from tidemill.physical.explain.printer import Form, Printer
from tidemill.physical.finish import finish
from tidemill.physical.identities import without_delay
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, text_of
from tidemill.physical.sinks import producer, producer_below
from tidemill.physical.traits.arrival import arrival_of, as_inputs
from tidemill.physical.traits.changelog_mode import (
    kinds_of_inputs,
    modifications,
    needs_same_form,
    satisfied,
)
from tidemill.physical.traits.event_time import needs_arrival_order, passes_watermarks
from tidemill.physical.traits.keys import derived_keys, keys_of_input
from tidemill.physical.traits.mini_batch import always, folds, starts_bundles
from tidemill.physical.traits.monotonicity import directions, directions_below
from tidemill.plan import nodes as n


@convert_node.register
def _(node: n.Watermark, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    return finish(
        p.WatermarkAssigner(fields=node.fields, input=child, rowtime=node.rowtime, watermark=node.expression)
    )


modifications.register(p.WatermarkAssigner, kinds_of_inputs)
satisfied.register(p.WatermarkAssigner, needs_same_form)
producer.register(p.WatermarkAssigner, producer_below)
directions.register(p.WatermarkAssigner, directions_below)
arrival_of.register(p.WatermarkAssigner, as_inputs)
derived_keys.register(p.WatermarkAssigner, keys_of_input)
passes_watermarks.register(p.WatermarkAssigner, always)
folds.register(p.WatermarkAssigner, always)
starts_bundles.register(p.WatermarkAssigner, always)


@lineage_of.register
def _(node: p.WatermarkAssigner, lineages: Lineages) -> Lineage:
    below = lineages.of(node.input)
    late = text_of(without_delay(node.watermark), below.columns)
    rows = hashed(joined("Watermark", [below.rows, below.columns[node.rowtime], late]))
    return replace(below, rows=rows)


@attributes.register
def _(node: p.WatermarkAssigner, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    return [
        ("rowtime", f"[{node.fields[node.rowtime].name}]"),
        ("watermark", f"[{printer.text(node.watermark)}]"),
    ]


@runs_otherwise.register
def _(shown: p.WatermarkAssigner, runs: p.PhysicalNode) -> list[str]:
    return ["in one partition, where rows are as they came"] if needs_arrival_order(shown) else []
