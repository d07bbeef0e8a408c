"""TableSourceScan, DataFrameScan and Values: rows from outside, and constant rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.changelog.rowkind import RowKind
from tidemill.physical import nodes as p
from tidemill.physical.digests import hashed, incidental, joined
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes, bracket, names
from tidemill.physical.explain.costs import TABLE_ROWS, Cost, own_cost, row_bytes
from tidemill.physical.explain.notes import runs_otherwise
from tidemill.physical.explain.printer import Form, Printer, record_text, rows_text
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage
from tidemill.physical.traits.arrival import Arrival, arrival_of
from tidemill.physical.traits.changelog_mode import (
    BEFORE,
    Kinds,
    Updates,
    modifications,
    needs_same_form,
    only_inserts,
    satisfied,
    updates,
)
from tidemill.physical.traits.event_time import passes_watermarks
from tidemill.physical.traits.keys import NO_KEYS, Keys, derived_keys
from tidemill.physical.traits.mini_batch import always, starts_bundles
from tidemill.plan.expressions import Expr
from tidemill.types.widening import family_of, kind_of


@arrival_of.register(p.TableSourceScan)
@arrival_of.register(p.DataFrameScan)
@arrival_of.register(p.Values)
def _(node: p.PhysicalNode) -> Arrival:
    return Arrival.SOURCE


@modifications.register
def _(node: p.TableSourceScan) -> Kinds:
    return node.traits.kinds - BEFORE


@satisfied.register
def _(node: p.TableSourceScan, update_form: Updates) -> p.PhysicalNode | None:
    has_before = RowKind.UPDATE_BEFORE in node.traits.kinds
    if update_form is Updates.BOTH and updates(node) and not has_before:
        return None
    if update_form is Updates.AFTER and has_before:
        return _without_before(node)
    return node


def _without_before(node: p.TableSourceScan) -> p.PhysicalNode:
    traits = replace(node.traits, kinds=node.traits.kinds - BEFORE)
    return p.DropUpdateBefore(fields=node.fields, traits=traits, input=node)


@derived_keys.register
def _(node: p.TableSourceScan, inputs: tuple[Keys, ...]) -> Keys:
    key = node.table.primary_key
    if not key or not set(key) <= set(node.columns):
        return NO_KEYS
    return frozenset({frozenset(node.columns.index(c) for c in key)})


passes_watermarks.register(p.TableSourceScan, always)
starts_bundles.register(p.TableSourceScan, always)
incidental(p.TableSourceScan, "options", "filters", "projected")


@lineage_of.register
def _(node: p.TableSourceScan, lineages: Lineages) -> Lineage:
    rows = lineages.identities.table(node.table, dict(node.options))
    metadata = {c.name: c.metadata_key or "" for c in node.table.columns}
    columns, carried = (
        tuple(
            f"{c}#{hashed(joined(c, [rows, metadata.get(c, ''), kind(str(f.type))]))}"
            for c, f in zip(node.columns, node.fields, strict=True)
        )
        for kind in (kind_of, family_of)
    )
    return Lineage(rows, columns, node.columns, carried)


@attributes.register
def _(node: p.TableSourceScan, form: Form) -> Attributes:
    path = node.table.path
    parts = [path.catalog, path.database, path.name]
    if node.filters:
        parts.append(f"filter=[{_conjunction(node.filters, Printer.over(node.fields))}]")
    if node.projected:
        physical = {c.name for c in node.table.physical_columns}
        texts = [c for c in node.columns if c in physical]
        metadata = [c for c in node.columns if c not in physical]
        parts += [f"project={bracket(texts)}", f"metadata={bracket(metadata)}"]
    return [("table", f"[[{', '.join(parts)}]]"), ("fields", f"[{names(node)}]")]


def _conjunction(filters: Sequence[Expr], printer: Printer) -> str:
    texts = [printer.text(f) for f in filters]
    while len(texts) > 1:
        texts[:2] = [f"and({texts[0]}, {texts[1]})"]
    return texts[0]


@own_cost.register(p.TableSourceScan)
@own_cost.register(p.DataFrameScan)
def _(node: p.PhysicalNode, rows: tuple[float, ...]) -> Cost:
    return Cost(TABLE_ROWS, TABLE_ROWS, TABLE_ROWS, TABLE_ROWS * row_bytes(node))


@runs_otherwise.register
def _(shown: p.TableSourceScan, runs: p.PhysicalNode) -> list[str]:
    return ["filter=[] in the source"] if shown.filters else []


modifications.register(p.DataFrameScan, only_inserts)
satisfied.register(p.DataFrameScan, needs_same_form)
starts_bundles.register(p.DataFrameScan, always)


@attributes.register
def _(node: p.DataFrameScan, form: Form) -> Attributes:
    return [("table", f"[[{node.key}]]"), ("fields", f"[{names(node)}]")]


modifications.register(p.Values, only_inserts)
satisfied.register(p.Values, needs_same_form)


@attributes.register
def _(node: p.Values, form: Form) -> Attributes:
    tuples = ("tuples", rows_text(node.rows))
    return [tuples] if form is Form.INFIX else [("type", f"[{record_text(node.fields)}]"), tuples]


@own_cost.register
def _(node: p.Values, rows: tuple[float, ...]) -> Cost:
    count = float(len(node.rows))
    return Cost(count, count, 1.0)
