"""Sink: the end of an INSERT."""

from __future__ import annotations

from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.digests import canonical, hashed, incidental, joined
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes, names
from tidemill.physical.explain.notes import runs_otherwise
from tidemill.physical.explain.printer import Form
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage
from tidemill.physical.sinks import keeps_greatest_row, may_conflict_across_tasks
from tidemill.physical.traits.changelog_mode import Kinds, Updates, modifications, satisfied, satisfy
from tidemill.physical.traits.keys import derived_keys, keys_of_input
from tidemill.physical.tree import visible, with_inputs, with_kinds


@modifications.register
def _(node: p.Sink) -> Kinds:
    return frozenset()


@satisfied.register
def _(node: p.Sink, update_form: Updates) -> p.PhysicalNode | None:
    child = satisfy(node.input, update_form)
    return None if child is None else with_kinds(with_inputs(node, (child,)), frozenset())


derived_keys.register(p.Sink, keys_of_input)
incidental(p.Sink, "options", "consumed", "retract", "materialize")


@lineage_of.register
def _(node: p.Sink, lineages: Lineages) -> Lineage:
    """Of an upsert sink that keeps rows by its primary key."""
    if not node.materialize and not may_conflict_across_tasks(node):
        return lineages.of_all_columns(node)
    below = lineages.of(node.input)
    positions = {c.name: index for index, c in enumerate(node.table.written_columns)}
    keys = [f"{key}={below.columns[positions[key]]}" for key in sorted(node.table.primary_key)]
    settings = [canonical(x) for x in (node.conflict, node.state_ttl)]
    every = below.columns if keeps_greatest_row(node) else ()
    rows = hashed(joined("Sink", [below.rows, *settings, *keys, *every]))
    return replace(below, rows=rows, kept="")


@attributes.register
def _(node: p.Sink, form: Form) -> Attributes:
    columns = [c.name for c in node.table.columns]
    targets = [columns.index(c) for c in node.target_columns]
    entries: Attributes = [("table", f"[{node.table.path}]")]
    if targets:
        entries.append(("targetColumns", "[" + ",".join(f"[{i}]" for i in targets) + "]"))
    entries.append(("fields", f"[{names(visible(node.input))}]"))
    if node.materialize:
        entries.append(("upsertMaterialize", "[true]"))
    return [*entries, ("conflictStrategy", f"[{node.conflict}]")] if node.conflict else entries


@runs_otherwise.register
def _(shown: p.Sink, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.Sink)
    differs = shown.materialize != runs.materialize
    notes = [f"upsertMaterialize=[{str(runs.materialize).lower()}]"] if differs else []
    if keeps_greatest_row(runs):
        notes.append("of each key the greatest row by its columns")
    return [*notes, "of each key the last row of an epoch"] if may_conflict_across_tasks(runs) else notes
