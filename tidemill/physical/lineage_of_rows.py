"""Lineages of operators that keep rows: of their keys, conditions and orders, but not of carried columns.

    SELECT o.id, c.name FROM o JOIN c ON o.c = c.id              kept: o and c by o.c = c.id
    SELECT o.id, c.name, c.city FROM o JOIN c ON o.c = c.id      the same rows, one more column

A Top-N keeps the same rows whatever it shows of them, so its range is in ``rows`` and not in ``kept``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.digests import canonical, hashed, joined
from tidemill.physical.lineage_text import Columns, Lineage, computed, text_of
from tidemill.physical.ranks import share_operator
from tidemill.physical.sinks import keeps_greatest_row, may_conflict_across_tasks
from tidemill.plan.nodes import JoinKind

_FILTERS = (JoinKind.SEMI, JoinKind.ANTI)
SIDES = ("l.", "r.")
"""What columns of the two sides of a join begin with."""


def row_keepers(node: p.PhysicalNode, inputs: Sequence[Lineage]) -> Lineage | None:
    """The lineage of ``node`` over its inputs' lineages; None if ``node`` keeps no rows."""
    match node:
        case p.Join():
            return _join(node, *inputs)
        case p.Rank():
            return _rank(node, *inputs)
        case p.SortLimit():
            return _limit(node, *inputs)
        case p.ChangelogNormalize():
            return _normalize(node, *inputs)
        case p.OverAggregate():
            return _over(node, *inputs)
        case p.Match():
            return _match(node, *inputs)
        case p.Sink() if node.materialize or may_conflict_across_tasks(node):
            return _sink(node, *inputs)
    return None


def sides_of(left: Columns, right: Columns) -> Columns:
    """The columns of both sides of a join, marked by side."""
    sides = zip(SIDES, (left, right), strict=True)
    return tuple(f"{side}{column}" for side, columns in sides for column in columns)


def _join(node: p.Join, left: Lineage, right: Lineage) -> Lineage:
    both = sides_of(left.columns, right.columns)
    keys = zip(node.left_keys, node.right_keys, strict=True)
    pairs = [
        joined("Equal", [left.columns[a], right.columns[b], *_of_key(node, index)])
        for index, (a, b) in enumerate(keys)
    ]
    settings = [canonical(x) for x in (node.kind, node.left_ttl, node.right_ttl)]
    residual = "" if node.residual is None else text_of(node.residual, both)
    parts = [left.rows, right.rows, *settings, residual, *sorted(pairs), *_by_time(node, left, right)]
    rows = hashed(joined(type(node).__name__, parts))
    filters = node.kind in _FILTERS
    shown_columns, texts = (
        (both[: len(left.columns)], left.texts) if filters else (both, left.texts + right.texts)
    )
    hidden = _hidden(node)
    carried = sides_of(left.carried, right.carried)[: len(shown_columns)]
    columns, stored = (
        tuple(f"#{hashed(joined(rows, [c]))}" for i, c in enumerate(given) if i != hidden)
        for given in (shown_columns, carried)
    )
    return Lineage(rows, columns, tuple(text for i, text in enumerate(texts) if i != hidden), stored)


def _hidden(node: p.Join) -> int | None:
    """The index of the column that a temporal join does not output; None if there is none."""
    if not isinstance(node, p.TemporalJoin) or node.alive is None:
        return None
    return len(node.left.fields) + node.alive


def _of_key(node: p.Join, index: int) -> list[str]:
    by_identity = bool(node.by_identity) and node.by_identity[index]
    return [canonical(x) for x in (node.null_safe[index], by_identity, index < node.null_aware)]


def _by_time(node: p.Join, left: Lineage, right: Lineage) -> list[str]:
    if isinstance(node, p.IntervalJoin):
        bounds = node.bounds
        settings = [canonical(x) for x in (bounds.rowtime, bounds.lower, bounds.upper)]
        return [left.columns[bounds.left], right.columns[bounds.right], *settings]
    if isinstance(node, p.TemporalJoin):
        alive = "" if node.alive is None else right.columns[node.alive]
        versions = sorted(right.columns[c] for c in node.version_key)
        times = [left.columns[node.left_time], right.columns[node.right_time]]
        return [*times, alive, canonical(node.latest), *versions]
    if isinstance(node, p.WindowJoin):
        return [*_window(node.left_window, left), *_window(node.right_window, right), canonical(node.emit)]
    return []


def _window(attached: p.AttachedWindow, below: Lineage) -> list[str]:
    return [canonical(attached.window), below.columns[attached.start], below.columns[attached.end]]


def _rank(node: p.Rank, below: Lineage) -> Lineage:
    settings = [
        canonical(x) for x in (node.function, node.time, node.keeps_latest, node.versions, node.state_ttl)
    ]
    if isinstance(node, p.WindowRank):
        settings += [
            *_window(node.attached, below),
            canonical(node.emit),
            *_unordered_columns(node.keys, below),
        ]
    order = [text_of(key, below.carried) for key in node.order]
    kept_rows = hashed(
        joined(
            type(node).__name__, [below.rows, *settings, *order, *_unordered_columns(node.partition, below)]
        )
    )
    rows = hashed(joined(kept_rows, [str(node.start), str(node.end)]))
    every = range(len(below.columns))
    rank = ["rank"] * node.with_rank
    ranked = computed(below, every, rows, rank, rank)
    return replace(ranked, kept=kept_rows)


def _limit(node: p.SortLimit, below: Lineage) -> Lineage:
    order = [text_of(key, below.carried) for key in node.order]
    kept_rows = hashed(joined("Limit", [below.rows, canonical(node.state_ttl), *order]))
    rows = hashed(joined(kept_rows, [canonical(node.offset), canonical(node.fetch)]))
    return replace(below, rows=rows, kept=kept_rows)


def _normalize(node: p.ChangelogNormalize, below: Lineage) -> Lineage:
    condition = "" if node.condition is None else text_of(node.condition, below.columns)
    settings = [canonical(x) for x in (node.versions, node.state_ttl)]
    rows = hashed(
        joined("Normalize", [below.rows, condition, *settings, *_unordered_columns(node.keys, below)])
    )
    return replace(below, rows=rows, kept="")


def _over(node: p.OverAggregate, below: Lineage) -> Lineage:
    """OVER outputs every input row with results. An operator that keeps all rows of a partition can compute
    any new call. By time it only keeps running results, so its calls are part of its state."""
    calls = [text_of(call, below.columns) for call in node.calls]
    partition = _unordered_columns(node.calls[0].partition, below)
    settings = [canonical(x) for x in (node.time, node.state_ttl)]
    under = node.input.input if isinstance(node.input, p.Exchange) else node.input
    is_over = isinstance(under, p.OverAggregate)
    if node.time:
        rows = kept_rows = hashed(joined("OverTime", [below.rows, *settings, *partition, *sorted(calls)]))
    elif isinstance(under, p.OverAggregate) and share_operator(node, under):
        rows, kept_rows = below.rows, below.kept
    else:
        rows = below.rows
        kept_rows = hashed(joined("Over", [rows, *settings, *partition, *[below.kept] * is_over]))
    texts = [f"{call.function} OVER" for call in node.calls]
    own = [joined(call, partition) for call in calls]
    lineage = computed(below, range(len(below.columns)), rows, own, texts)
    return replace(lineage, kept=kept_rows)


def _match(node: p.Match, below: Lineage) -> Lineage:
    """Measures only show what is kept."""
    settings = [canonical(node.pattern), *(below.columns[key] for key in node.partition)]
    order = [text_of(key, below.columns) for key in node.order]
    definitions = sorted(node.definitions, key=lambda definition: definition[0])
    conditions = [joined(str(number), [text_of(x, below.columns)]) for number, x in definitions]
    rows = hashed(joined("Match", [below.rows, *settings, *order, *conditions]))
    own = [text_of(measure, below.columns) for measure in node.measures]
    texts = [field.name for field in node.fields[len(node.partition) :]]
    return computed(below, node.partition, rows, own, texts)


def _sink(node: p.Sink, below: Lineage) -> Lineage:
    """The rows of an upsert sink by its primary key."""
    positions = {c.name: index for index, c in enumerate(node.table.written_columns)}
    keys = [f"{key}={below.columns[positions[key]]}" for key in sorted(node.table.primary_key)]
    settings = [canonical(x) for x in (node.conflict, node.state_ttl)]
    every = below.columns if keeps_greatest_row(node) else ()
    rows = hashed(joined("Sink", [below.rows, *settings, *keys, *every]))
    return replace(below, rows=rows, kept="")


def _unordered_columns(keys: Sequence[int], below: Lineage) -> list[str]:
    """The columns of ``keys``, sorted, because their order does not matter."""
    return sorted({below.columns[key] for key in keys})
