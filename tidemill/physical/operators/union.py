"""Union: UNION ALL."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.digests import hashed, joined
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes, names
from tidemill.physical.explain.costs import Cost, own_cost
from tidemill.physical.explain.printer import Form
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage
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

modifications.register(p.Union, kinds_of_inputs)
satisfied.register(p.Union, needs_same_form)
producer.register(p.Union, producer_below)
arrival_of.register(p.Union, as_inputs)
passes_watermarks.register(p.Union, always)


@lineage_of.register
def _(node: p.Union, lineages: Lineages) -> Lineage:
    inputs = sorted((lineages.of(i) for i in node.inputs), key=lambda branch: branch.rows)
    rows = hashed(joined("Union", [i.rows for i in inputs]))
    columns, carried = (
        tuple(f"#{hashed(joined(rows, list(c)))}" for c in zip(*branches, strict=True))
        for branches in ([i.columns for i in inputs], [i.carried for i in inputs])
    )
    return Lineage(rows, columns, inputs[0].texts, carried)


@attributes.register
def _(node: p.Union, form: Form) -> Attributes:
    return [("all", "[true]"), ("union", f"[{names(node)}]")]


@own_cost.register
def _(node: p.Union, rows: tuple[float, ...]) -> Cost:
    count = sum(rows)
    return Cost(count, count, count)
