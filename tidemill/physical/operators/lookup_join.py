"""LookupJoin: a join with the rows that a table has now."""

from __future__ import annotations

from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.digests import canonical, hashed, incidental, joined
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes, bracket, names
from tidemill.physical.explain.notes import runs_otherwise
from tidemill.physical.explain.printer import Form, Printer
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, computed, text_of
from tidemill.physical.running import running
from tidemill.physical.traits.arrival import arrival_of, as_inputs
from tidemill.physical.traits.changelog_mode import (
    Updates,
    insert_only,
    kinds_of_inputs,
    modifications,
    needs_both,
    needs_same_form,
    satisfied,
    updates,
)
from tidemill.physical.traits.event_time import passes_watermarks
from tidemill.physical.traits.keys import NO_KEYS, Keys, derived_keys
from tidemill.physical.traits.mini_batch import always
from tidemill.types.widening import family_of, kind_of

modifications.register(p.LookupJoin, kinds_of_inputs)
arrival_of.register(p.LookupJoin, as_inputs)
passes_watermarks.register(p.LookupJoin, always)
incidental(p.LookupJoin, "options", "retry", "overwrites")


@satisfied.register
def _(node: p.LookupJoin, update_form: Updates) -> p.PhysicalNode | None:
    """A retraction needs the old row's values. A +U that finds no rows, or other rows than before, needs its
    -U, too."""
    if not updates(node.input) or node.overwrites:
        return needs_same_form(node, update_form)
    if update_form is Updates.AFTER and not node.keeps_rows:
        return None
    return needs_both(node, update_form)


@derived_keys.register
def _(node: p.LookupJoin, inputs: tuple[Keys, ...]) -> Keys:
    """The input's keys, if the table has at most one row per key."""
    return inputs[0] if node.finds_one else NO_KEYS


@running.register
def _(node: p.LookupJoin) -> p.PhysicalNode:
    return replace(node, overwrites=False)


@attributes.register
def _(node: p.LookupJoin, form: Form) -> Attributes:
    printer = Printer.over(node.fields, form)
    keys = [f"{node.columns[column]}={node.input.fields[own].name}" for own, column in node.keys]
    where = [] if node.condition is None else [("where", f"[{printer.text(node.condition)}]")]
    return [
        ("table", f"[{node.table.path}]"),
        ("joinType", f"[{node.kind.value}]"),
        ("lookup", bracket(keys)),
        *where,
        ("select", f"[{names(node)}]"),
    ]


@runs_otherwise.register
def _(shown: p.LookupJoin, runs: p.PhysicalNode) -> list[str]:
    return [] if insert_only(runs.inputs[0]) else ["keeps the rows that were found"]


@lineage_of.register
def _(node: p.LookupJoin, lineages: Lineages) -> Lineage:
    """A lookup finds whole rows, whatever the query shows of them."""
    below = lineages.of(node.input)
    table = lineages.identities.table(node.table, dict(node.options))
    types = [str(f.type.with_nullable(True)) for f in node.fields[len(below.columns) :]]
    found, stored = (
        [joined(c, [table, kind(text)]) for c, text in zip(node.columns, types, strict=True)]
        for kind in (kind_of, family_of)
    )
    keys = sorted(joined(node.columns[column], [below.columns[own]]) for own, column in node.keys)
    both = (*below.columns, *found)
    condition = "" if node.condition is None else text_of(node.condition, both)
    settings = [canonical(node.kind), canonical(node.retry), condition]
    rows = hashed(joined("Lookup", [below.rows, table, *settings, *keys]))
    return computed(below, range(len(below.columns)), rows, found, node.columns, stored)
