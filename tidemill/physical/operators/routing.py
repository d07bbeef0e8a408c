"""Exchange, MiniBatchAssigner and DropUpdateBefore, which pass on their input's rows."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes, distribution
from tidemill.physical.explain.costs import Cost, own_cost, row_bytes
from tidemill.physical.explain.printer import Form
from tidemill.physical.sinks import producer, producer_below
from tidemill.physical.traits.arrival import arrival_of, as_inputs
from tidemill.physical.traits.changelog_mode import (
    kinds_of_inputs,
    modifications,
    needs_same_form,
    satisfied,
)
from tidemill.physical.traits.event_time import passes_watermarks
from tidemill.physical.traits.keys import Keys, derived_keys, keeps_within, keys_of_input, upsert_keys
from tidemill.physical.traits.mini_batch import always
from tidemill.physical.traits.monotonicity import directions, directions_below, never_negative

_SERIALIZE, _HASH = 160, 8

for _node in (p.Exchange, p.MiniBatchAssigner, p.DropUpdateBefore):
    modifications.register(_node, kinds_of_inputs)
    satisfied.register(_node, needs_same_form)
    directions.register(_node, directions_below)
    arrival_of.register(_node, as_inputs)
    derived_keys.register(_node, keys_of_input)
    passes_watermarks.register(_node, always)

producer.register(p.Exchange, producer_below)


@never_negative.register
def _(node: p.Exchange, column: int) -> bool:
    return never_negative(node.input, column)


@upsert_keys.register
def _(node: p.Exchange) -> Keys:
    return keeps_within(node.input.traits.upsert_keys, node.keys)


@attributes.register
def _(node: p.Exchange, form: Form) -> Attributes:
    return [("distribution", f"[{distribution(node.input, node.keys)}]")]


@own_cost.register
def _(node: p.Exchange, rows: tuple[float, ...]) -> Cost:
    cpu = _SERIALIZE + (_HASH * len(node.keys) if node.keys else 1)
    return Cost(rows[0], rows[0], rows[0] * cpu, 0.0, rows[0] * row_bytes(node))


@attributes.register
def _(node: p.MiniBatchAssigner, form: Form) -> Attributes:
    return [("interval", f"[{node.interval}ms]"), ("mode", f"[{node.mode}]")]


@attributes.register
def _(node: p.DropUpdateBefore, form: Form) -> Attributes:
    return []
