"""WindowAggregate: aggregation by key and window."""

from __future__ import annotations

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.salted_distinct import bucket_part, copies_of
from tidemill.physical.aggregates.window_reuse import share_distinct_of_windows
from tidemill.physical.digests import canonical, hashed, incidental, joined
from tidemill.physical.explain.attributes.dispatch import attributes, node_name
from tidemill.physical.explain.attributes.texts import (
    Attributes,
    bracket,
    call_texts,
    emit_attributes,
    group_by,
    window_text,
)
from tidemill.physical.explain.notes import (
    Notes,
    Pairs,
    combined_node,
    counted_once,
    notes_beside,
    paired_inputs,
)
from tidemill.physical.explain.printer import Form
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Columns, Lineage, computed
from tidemill.physical.running import reads_each_change, running
from tidemill.physical.traits.changelog_mode import (
    CHANGES,
    INSERT_UPDATE,
    Kinds,
    insert_only,
    modifications,
    needs_both,
    satisfied,
)
from tidemill.physical.traits.keys import Keys, derived_keys
from tidemill.physical.traits.mini_batch import (
    always,
    awaited_windows,
    folds,
    needs_all_watermarks,
    needs_watermark,
)
from tidemill.plan.expressions import InputRef


@modifications.register
def _(node: p.WindowAggregate) -> Kinds:
    """Data-driven windows that grow or merge change the windows already emitted."""
    if node.emit is None:
        return INSERT_ONLY
    grows = node.window.kind.is_data_driven
    return INSERT_UPDATE if insert_only(node.input) and not grows else CHANGES


satisfied.register(p.WindowAggregate, needs_both)


@derived_keys.register
def _(node: p.WindowAggregate, inputs: tuple[Keys, ...]) -> Keys:
    keys, first = range(len(node.keys)), len(node.keys) + len(node.calls)
    positions = {name: first + i for i, name in enumerate(node.properties)}
    telling = ("end", "time") if node.window.kind.cumulates else ("start", "end", "time")
    return frozenset(frozenset({*keys, positions[role]}) for role in telling if role in positions)


folds.register(p.WindowAggregate, always)
reads_each_change.register(p.WindowAggregate, always)


@needs_watermark.register
def _(node: p.WindowAggregate) -> bool:
    return not node.window.proctime


@needs_all_watermarks.register
def _(node: p.WindowAggregate) -> bool:
    return node.window.group


@awaited_windows.register
def _(node: p.WindowAggregate) -> tuple[p.Window, ...]:
    return (node.window,)


@running.register
def _(node: p.WindowAggregate) -> p.PhysicalNode:
    """DISTINCT is spread later, together with the changelog modes (``aggregates.salted_distinct``)."""
    return share_distinct_of_windows(node)


incidental(p.WindowAggregate, "split")


@lineage_of.register
def _(node: p.WindowAggregate, lineages: Lineages) -> Lineage:
    below = lineages.of(node.input)
    keys = [below.columns[k] for k in node.keys]
    texts = [*lineages.call_texts(node.calls, node.input), *(f"window_{role}" for role in node.properties)]
    settings = [canonical(x) for x in (node.window, node.attached, node.emit, node.reuse)]
    spread = [] if node.spread is None else _spread(node.spread, below.columns)
    rows = hashed(joined("Window", [below.rows, *keys, below.columns[node.time], *settings, *spread]))
    own = [*(lineages.call(call, below.columns) for call in node.calls), *node.properties]
    stored = [*(lineages.stored_call(call, below) for call in node.calls), *node.properties]
    return computed(below, node.keys, rows, own, texts, stored)


def _spread(spread: p.Spread, below: Columns) -> list[str]:
    itself = () if spread.itself is None else (spread.itself,)
    column_groups = (*spread.sets, spread.with_first, spread.flags, itself)
    return [str(spread.buckets), *(f"[{', '.join(below[c] for c in columns)}]" for columns in column_groups)]


@node_name.register
def _(node: p.WindowAggregate) -> str:
    return "GroupWindowAggregate" if node.window.group else "WindowAggregate"


@attributes.register
def _(node: p.WindowAggregate, form: Form) -> Attributes:
    calls = call_texts(node.input, node.calls, form)
    return window_attributes(node, calls, time_text(node.input, node.time, node.attached))


def window_attributes(node: p.WindowAggregate, calls: list[str], times: str) -> Attributes:
    """``times``: the text of the column that tells windows apart."""
    names = [f.name for f in node.fields]
    partition = [node.input.fields[k].name for k in node.keys] if node.window.kind.is_data_driven else []
    property_names = zip(node.properties, names[len(node.keys) + len(node.calls) :], strict=True)
    properties = [f"{_property(kind, node.window)}('w$) AS {name}" for kind, name in property_names]
    return [
        *group_by(node.input, node.keys),
        ("window", f"[{window_text(node.window, times, partition)}]"),
        *emit_attributes(node.emit),
        ("select", bracket([*names[: len(node.keys)], *calls, *properties])),
    ]


def _property(kind: str, window: p.Window) -> str:
    if kind != "time":
        return kind
    return "proctime" if window.proctime else "rowtime"


def time_text(node: p.PhysicalNode, time: int, attached: bool) -> str:
    """The field ``time`` of ``node``, the input. ``attached``: it is a window's end."""
    return f"{'win_end' if attached else 'time_col'}=[{node.fields[time].name}]"


@combined_node.register
def _(runs: p.WindowAggregate) -> p.PhysicalNode:
    return bucket_part(runs) or runs


@paired_inputs.register
def _(shown: p.WindowAggregate, runs: p.PhysicalNode) -> Pairs:
    assert isinstance(runs, p.WindowAggregate)
    return [(shown.input, counted_input(runs))]


def counted_input(runs: p.WindowAggregate) -> p.PhysicalNode:
    """The input of a window aggregation, below the Expand that copies rows for it."""
    part = bucket_part(runs)
    if part is None:
        return runs.input
    copies = copies_of(part)
    return part.input if copies is None else copies.input


@notes_beside.register
def _(shown: p.WindowAggregate, runs: p.PhysicalNode, is_combined: bool) -> Notes:
    part = bucket_part(runs)
    if part is not None and part.spread is not None:
        yield shown, f"the sum of {part.spread.buckets} buckets by {_values(part, part.spread)}"
    if part is not None and part.reuse is not None:
        yield shown, counted_once(part.reuse)


def _values(part: p.WindowAggregate, spread: p.Spread) -> str:
    """The names of the DISTINCT columns."""
    copies = copies_of(part)
    if copies is None:
        return ", ".join(part.input.fields[c].name for c in spread.columns)
    rows = [row[c] for c in spread.columns for row in copies.projections]
    column_indexes = dict.fromkeys(x.index for x in rows if isinstance(x, InputRef))
    return ", ".join(copies.input.fields[index].name for index in column_indexes)
