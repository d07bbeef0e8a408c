"""Match: MATCH_RECOGNIZE, over an exchange by its partition."""

from __future__ import annotations

from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.physical.conversion import PlannerContext, convert, convert_node
from tidemill.physical.digests import canonical, hashed, joined
from tidemill.physical.explain.attributes.dispatch import attributes, node_name
from tidemill.physical.explain.attributes.texts import Attributes, order_by
from tidemill.physical.explain.patterns import pattern_attributes
from tidemill.physical.explain.printer import Form, Printer
from tidemill.physical.finish import exchange, finish
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, computed, text_of
from tidemill.physical.traits.arrival import Arrival, arrival_of
from tidemill.physical.traits.changelog_mode import (
    insert_only,
    modifications,
    needs_both,
    only_inserts,
    satisfied,
)
from tidemill.physical.traits.mini_batch import always, folds, needs_watermark
from tidemill.physical.tree import visible
from tidemill.plan import nodes as n


@convert_node.register
def _(node: n.MatchRecognize, context: PlannerContext) -> p.PhysicalNode:
    child = convert(node.input, context)
    if not insert_only(child):
        raise NotSupportedError(
            "Match Recognize doesn't support consuming update and delete changes which is produced by node"
            f" {node_name(visible(child))}: a match that was given cannot be taken back",
            hint="Match over a table that only grows.",
        )
    return finish(
        p.Match(
            fields=node.fields,
            input=exchange(child, node.partition),
            partition=node.partition,
            order=node.order,
            pattern=node.pattern,
            definitions=node.definitions,
            measures=node.measures,
        )
    )


modifications.register(p.Match, only_inserts)
satisfied.register(p.Match, needs_both)
folds.register(p.Match, always)


@arrival_of.register
def _(node: p.Match) -> Arrival:
    """It emits rows at times that its watermark does not determine."""
    return Arrival.UNTOLD


@needs_watermark.register
def _(node: p.Match) -> bool:
    return node.input.fields[node.order[0].index].type.time_attribute == "ROWTIME"


@attributes.register
def _(node: p.Match, form: Form) -> Attributes:
    inputs = node.input.fields
    by = Printer.over(inputs).columns(node.partition)
    return [
        *([("partitionBy", f"[{by}]")] if node.partition else []),
        ("orderBy", order_by(node.order, node.input)),
        *pattern_attributes(node.pattern, node.definitions, node.measures, node.fields, inputs),
    ]


@lineage_of.register
def _(node: p.Match, lineages: Lineages) -> Lineage:
    """Measures only show what is kept."""
    below = lineages.of(node.input)
    settings = [canonical(node.pattern), *(below.columns[key] for key in node.partition)]
    order = [text_of(key, below.columns) for key in node.order]
    definitions = sorted(node.definitions, key=lambda definition: definition[0])
    conditions = [joined(str(number), [text_of(x, below.columns)]) for number, x in definitions]
    rows = hashed(joined("Match", [below.rows, *settings, *order, *conditions]))
    own = [text_of(measure, below.columns) for measure in node.measures]
    texts = [field.name for field in node.fields[len(node.partition) :]]
    return computed(below, node.partition, rows, own, texts)
