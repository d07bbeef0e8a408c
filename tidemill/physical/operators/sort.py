"""Sort: ORDER BY of a whole input; TemporalSort if it is by time; SortLimit if it has a LIMIT."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.conversion import PlannerContext, convert, convert_node, state_ttl
from tidemill.physical.explain.attributes.dispatch import attributes, node_name
from tidemill.physical.explain.attributes.texts import Attributes, order_by
from tidemill.physical.explain.printer import Form
from tidemill.physical.finish import exchange, finish
from tidemill.physical.traits.changelog_mode import kinds_of_inputs, modifications, needs_both, satisfied
from tidemill.physical.traits.keys import derived_keys, keys_of_input
from tidemill.physical.traits.mini_batch import always, folds, needs_watermark
from tidemill.plan import nodes as n


@convert_node.register
def _(node: n.Sort, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    if node.fetch == 0:
        return finish(p.Values(fields=node.fields, rows=()))
    input_ = exchange(child, ())
    if node.fetch is None and not node.offset:
        first = child.fields[node.keys[0].index].type if node.keys else None
        by_time = first is not None and first.time_attribute != "" and node.keys[0].ascending
        sort = p.Sort(fields=node.fields, input=input_, order=node.keys, by_time=by_time)
        return finish(sort) if node.keys else child
    return finish(
        p.SortLimit(
            fields=node.fields,
            input=input_,
            order=node.keys,
            offset=node.offset,
            fetch=node.fetch,
            state_ttl=state_ttl(context),
        )
    )


modifications.register(p.Sort, kinds_of_inputs)
satisfied.register(p.Sort, needs_both)
derived_keys.register(p.Sort, keys_of_input)
folds.register(p.Sort, always)


@needs_watermark.register
def _(node: p.Sort) -> bool:
    return node.by_time and node.fields[node.order[0].index].type.time_attribute == "ROWTIME"


@node_name.register
def _(node: p.Sort) -> str:
    return "TemporalSort" if node.by_time else "Sort"


@attributes.register
def _(node: p.Sort, form: Form) -> Attributes:
    return [("orderBy", order_by(node.order, node))]
