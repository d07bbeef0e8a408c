"""Rank: Top-N of a partition, and deduplication."""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.digests import canonical, hashed, incidental, joined
from tidemill.physical.explain.attributes.dispatch import attributes, execution_name, node_name
from tidemill.physical.explain.attributes.texts import Attributes, bracket, names
from tidemill.physical.explain.costs import Cost, own_cost
from tidemill.physical.explain.notes import CORRECTED, runs_otherwise
from tidemill.physical.explain.printer import Form, Printer, order_text
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, computed, text_of, unordered_columns
from tidemill.physical.running import running
from tidemill.physical.traits.arrival import Arrival, arrival_of, as_source, by_event_time
from tidemill.physical.traits.changelog_mode import (
    CHANGES,
    Kinds,
    Updates,
    insert_only,
    modifications,
    over,
    satisfied,
    satisfy,
)
from tidemill.physical.traits.event_time import (
    emits_at_their_time,
    emits_if_timed,
    has_watermark,
    passes_watermarks,
)
from tidemill.physical.traits.keys import Keys, derived_keys, keeps_within, upsert_keys
from tidemill.physical.traits.mini_batch import always, folds, needs_watermark
from tidemill.physical.traits.monotonicity import FirstRows, first_rows


@modifications.register
def _(node: p.Rank) -> Kinds:
    return INSERT_ONLY if node.insert_only else CHANGES


def follows_by_key(node: p.Rank | p.SortLimit, update_form: Updates) -> p.PhysicalNode | None:
    """A Top-N keeps rows by their values, so it needs each -U, unless an upsert key tells its rows apart."""
    if node.upsert_key is not None:
        child = satisfy(node.input, Updates.AFTER)
        if child is not None:
            return over(node, update_form, (child,))
        node = replace(node, upsert_key=None)
    wish = Updates.AFTER if insert_only(node.input) else Updates.BOTH
    return over(node, update_form, (satisfy(node.input, wish),))


satisfied.register(p.Rank, follows_by_key)


@first_rows.register
def _(node: p.Rank) -> FirstRows:
    return FirstRows(node.partition, node.order, lambda key: replace(node, upsert_key=key))


@arrival_of.register
def _(node: p.Rank) -> Arrival:
    return by_event_time(node) if node.waits_for_first else as_source(node.input)


@upsert_keys.register
def _(node: p.Rank) -> Keys:
    return derived_keys(node, (keeps_within(node.input.traits.upsert_keys, node.partition),))


@derived_keys.register
def _(node: p.Rank, inputs: tuple[Keys, ...]) -> Keys:
    number = node.function == "ROW_NUMBER"
    keys = set(inputs[0])
    if number and node.start == node.end == 1:
        keys.add(frozenset(node.partition))
    if number and node.with_rank:
        keys.add(frozenset({*node.partition, len(node.fields) - 1}))
    return frozenset(keys)


folds.register(p.Rank, always)


@needs_watermark.register
def _(node: p.Rank) -> bool:
    return node.is_deduplicate and node.time == "ROWTIME"


@passes_watermarks.register
def _(node: p.Rank) -> bool:
    return node.versions or node.waits_for_first


@emits_at_their_time.register
def _(node: p.Rank) -> bool:
    """Also a deduplication that keeps first rows. With mini-batch it emits a row at once, and retracts the
    row if an earlier one comes; this counts, too."""
    first = node.is_deduplicate and node.keeps_first and node.time == "ROWTIME"
    return first or emits_if_timed(node)


@running.register
def _(node: p.Rank) -> p.PhysicalNode:
    """By arrival the first row stays the first, with or without bundles; by event time only if it is waited
    for."""
    append = insert_only(node.input)
    top_one = node.start == node.end == 1 and node.function == "ROW_NUMBER"
    first = top_one and node.time == "PROCTIME" and node.order[0].ascending
    waits = node.waits_for_first and has_watermark(node.input)
    return replace(
        node,
        time=node.time if append else "",
        insert_only=append and (waits or first),
    )


incidental(p.Rank, "upsert_key", "insert_only")


@lineage_of.register
def _(node: p.Rank, lineages: Lineages) -> Lineage:
    return rank_lineage(node, lineages.of(node.input))


def rank_lineage(node: p.Rank, below: Lineage, *more: str) -> Lineage:
    """``more``: settings beyond a Rank's."""
    settings = [
        canonical(x) for x in (node.function, node.time, node.keeps_latest, node.versions, node.state_ttl)
    ]
    order = [text_of(key, below.carried) for key in node.order]
    parts = [below.rows, *settings, *more, *order, *unordered_columns(node.partition, below)]
    kept_rows = hashed(joined(type(node).__name__, parts))
    rows = hashed(joined(kept_rows, [str(node.start), str(node.end)]))
    every = range(len(below.columns))
    rank = ["rank"] * node.with_rank
    ranked = computed(below, every, rows, rank, rank)
    return replace(ranked, kept=kept_rows)


@execution_name.register
def _(node: p.Rank) -> str:
    return "Deduplicate" if node.is_deduplicate else node_name(node)


@attributes.register
def _(node: p.Rank, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    if form is Form.INFIX and node.is_deduplicate:
        return [
            ("keep", "[FirstRow]" if node.keeps_first else "[LastRow]"),
            ("key", f"[{printer.columns(node.partition)}]"),
            ("order", f"[{node.time}]"),
            ("outputInsertOnly", f"[{str(node.insert_only).lower()}]"),
        ]
    order = [order_text(k, printer) for k in node.order]
    if node.time == "ROWTIME":
        order[0] = f"ROWTIME {order[0]}"
    return [
        ("strategy", f"[{strategy(node)}]"),
        ("rankType", f"[{node.function}]"),
        ("rankRange", f"[rankStart={node.start}, rankEnd={node.end}]"),
        ("partitionBy", f"[{printer.columns(node.partition)}]"),
        ("orderBy", bracket(order)),
        ("select", f"[{names(node)}]"),
    ]


def strategy(node: p.Rank | p.SortLimit) -> str:
    """Flink's name of the way in which a Top-N follows updates."""
    if node.upsert_key is not None:
        return f"UpdateFastStrategy[{','.join(map(str, node.upsert_key))}]"
    return "AppendFastStrategy" if insert_only(node.input) else "RetractStrategy"


@own_cost.register
def _(node: p.Rank, rows: tuple[float, ...]) -> Cost:
    return Cost(rows[0] / 10 if node.partition else float(node.end), rows[0], rows[0])


@runs_otherwise.register
def _(shown: p.Rank, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.Rank)
    return [*strategy_notes(shown, runs), *corrected(shown, runs)]


def strategy_notes(shown: p.Rank | p.SortLimit, runs: p.Rank | p.SortLimit) -> list[str]:
    return [] if strategy(shown) == strategy(runs) else [f"strategy=[{strategy(runs)}]"]


def corrected(shown: p.Rank, runs: p.Rank) -> list[str]:
    return [CORRECTED] if shown.insert_only and not runs.insert_only else []
