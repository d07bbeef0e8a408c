"""ChangelogNormalize: the last row per key of an upsert changelog, or of one with repeated changes."""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import RowKind
from tidemill.physical import nodes as p
from tidemill.physical.digests import canonical, hashed, joined
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes
from tidemill.physical.explain.notes import stands_above
from tidemill.physical.explain.printer import Form, Printer
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, text_of, unordered_columns
from tidemill.physical.traits.arrival import arrival_of, as_inputs
from tidemill.physical.traits.changelog_mode import (
    Updates,
    all_changes,
    modifications,
    over,
    satisfied,
    satisfy,
    updates,
)
from tidemill.physical.traits.keys import Keys, derived_keys

modifications.register(p.ChangelogNormalize, all_changes)
arrival_of.register(p.ChangelogNormalize, as_inputs)


@satisfied.register
def _(node: p.ChangelogNormalize, update_form: Updates) -> p.PhysicalNode | None:
    source = node.input.inputs[0]
    upserts = updates(source) and RowKind.UPDATE_BEFORE not in source.traits.kinds
    if upserts and update_form is Updates.AFTER and node.condition is None:
        # The consumer overwrites by key as well: nothing to normalize.
        return satisfy(source, update_form)
    return over(node, update_form, (satisfy(node.input, Updates.AFTER),))


@derived_keys.register
def _(node: p.ChangelogNormalize, inputs: tuple[Keys, ...]) -> Keys:
    return frozenset({frozenset(node.keys)})


@lineage_of.register
def _(node: p.ChangelogNormalize, lineages: Lineages) -> Lineage:
    below = lineages.of(node.input)
    condition = "" if node.condition is None else text_of(node.condition, below.columns)
    settings = [canonical(x) for x in (node.versions, node.state_ttl)]
    parts = [below.rows, condition, *settings, *unordered_columns(node.keys, below)]
    return replace(below, rows=hashed(joined("Normalize", parts)), kept="")


@attributes.register
def _(node: p.ChangelogNormalize, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    condition = [] if node.condition is None else [("condition", f"[{printer.text(node.condition)}]")]
    return [("key", f"[{printer.columns(node.keys)}]"), *condition]


@stands_above.register
def _(runs: p.ChangelogNormalize, shown: p.PhysicalNode) -> bool:
    """Flink omits it above an upsert source if the consumer overwrites by key."""
    return not isinstance(shown, p.ChangelogNormalize)
