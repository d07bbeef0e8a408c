"""Lineages of operators that keep rows: their keys, conditions and orders, without the columns they only
carry.

    SELECT o.id, c.name FROM o JOIN c ON o.c = c.id              kept: o and c by o.c = c.id
    SELECT o.id, c.name, c.city FROM o JOIN c ON o.c = c.id      the same rows, one more column

A Top-N keeps the same rows whatever it shows of them, so its range is in ``rows`` and not in ``kept``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.physical import nodes as p
from tidemill.physical.digests import canonical, hashed, joined
from tidemill.physical.lineage_text import Columns, Lineage, computed, text_of
from tidemill.physical.ranks import share_operator
from tidemill.physical.sinks import goes_by_columns, meets_in_disorder
from tidemill.plan.nodes import JoinKind

_FILTERS = (JoinKind.SEMI, JoinKind.ANTI)
SIDES = ("l.", "r.")
"""What columns of the two sides of a join begin with."""


def row_keepers(node: p.PhysicalNode, inputs: Sequence[Lineage]) -> Lineage | None:
    """The lineage of ``node`` over those of its inputs; None of a node that is not such an operator."""
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
        case p.Sink() if node.materialize or meets_in_disorder(node):
            return _sink(node, *inputs)
    return None


def sides_of(left: Columns, right: Columns) -> Columns:
    """The columns of both sides of a join, told apart."""
    sides = zip(SIDES, (left, right), strict=True)
    return tuple(f"{side}{column}" for side, columns in sides for column in columns)


def _join(node: p.Join, left: Lineage, right: Lineage) -> Lineage:
    both = sides_of(left.columns, right.columns)
    keys = zip(node.left_keys, node.right_keys, strict=True)
    pairs = [
        joined("Equal", [left.columns[a], right.columns[b], *_of_key(node, place)])
        for place, (a, b) in enumerate(keys)
    ]
    said = [canonical(x) for x in (node.kind, node.left_ttl, node.right_ttl)]
    residual = "" if node.residual is None else text_of(node.residual, both)
    parts = [left.rows, right.rows, *said, residual, *sorted(pairs), *_by_time(node, left, right)]
    rows = hashed(joined(type(node).__name__, parts))
    filters = node.kind in _FILTERS
    shown, texts = (both[: len(left.columns)], left.texts) if filters else (both, left.texts + right.texts)
    hidden = _hidden(node)
    columns = tuple(f"#{hashed(joined(rows, [c]))}" for i, c in enumerate(shown) if i != hidden)
    return Lineage(rows, columns, tuple(text for i, text in enumerate(texts) if i != hidden))


def _hidden(node: p.Join) -> int | None:
    """The place of the column that a temporal join does not give."""
    if not isinstance(node, p.TemporalJoin) or node.alive is None:
        return None
    return len(node.left.fields) + node.alive


def _of_key(node: p.Join, place: int) -> list[str]:
    by_identity = bool(node.by_identity) and node.by_identity[place]
    return [canonical(x) for x in (node.null_safe[place], by_identity, place < node.null_aware)]


def _by_time(node: p.Join, left: Lineage, right: Lineage) -> list[str]:
    if isinstance(node, p.IntervalJoin):
        bounds = node.bounds
        said = [canonical(x) for x in (bounds.rowtime, bounds.lower, bounds.upper)]
        return [left.columns[bounds.left], right.columns[bounds.right], *said]
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
    said = [
        canonical(x) for x in (node.function, node.time, node.keeps_latest, node.versions, node.state_ttl)
    ]
    if isinstance(node, p.WindowRank):
        said += [*_window(node.attached, below), canonical(node.emit), *_apart(node.keys, below)]
    order = [text_of(key, below.columns) for key in node.order]
    kept = hashed(joined(type(node).__name__, [below.rows, *said, *order, *_apart(node.partition, below)]))
    rows = hashed(joined(kept, [str(node.start), str(node.end)]))
    every = range(len(below.columns))
    rank = ["rank"] * node.with_rank
    found = computed(below, every, rows, rank, rank)
    return Lineage(rows, found.columns, found.texts, kept)


def _limit(node: p.SortLimit, below: Lineage) -> Lineage:
    order = [text_of(key, below.columns) for key in node.order]
    kept = hashed(joined("Limit", [below.rows, canonical(node.state_ttl), *order]))
    rows = hashed(joined(kept, [canonical(node.offset), canonical(node.fetch)]))
    return Lineage(rows, below.columns, below.texts, kept)


def _normalize(node: p.ChangelogNormalize, below: Lineage) -> Lineage:
    condition = "" if node.condition is None else text_of(node.condition, below.columns)
    said = [canonical(x) for x in (node.versions, node.state_ttl)]
    rows = hashed(joined("Normalize", [below.rows, condition, *said, *_apart(node.keys, below)]))
    return Lineage(rows, below.columns, below.texts)


def _over(node: p.OverAggregate, below: Lineage) -> Lineage:
    """Every row of the input is there, with results. An operator that has all rows of a partition computes
    any call anew; by time it goes on from what it has computed, so its calls are a part of its state."""
    calls = [text_of(call, below.columns) for call in node.calls]
    partition = _apart(node.calls[0].partition, below)
    said = [canonical(x) for x in (node.time, node.state_ttl)]
    under = node.input.input if isinstance(node.input, p.Exchange) else node.input
    is_over = isinstance(under, p.OverAggregate)
    if node.time:
        rows = kept = hashed(joined("OverTime", [below.rows, *said, *partition, *sorted(calls)]))
    elif isinstance(under, p.OverAggregate) and share_operator(node, under):
        rows, kept = below.rows, below.kept
    else:
        rows = below.rows
        kept = hashed(joined("Over", [rows, *said, *partition, *[below.kept] * is_over]))
    texts = [f"{call.function} OVER" for call in node.calls]
    own = [joined(call, partition) for call in calls]
    found = computed(below, range(len(below.columns)), rows, own, texts)
    return Lineage(rows, found.columns, found.texts, kept)


def _sink(node: p.Sink, below: Lineage) -> Lineage:
    """The rows of an upsert sink by its primary key."""
    places = {c.name: place for place, c in enumerate(node.table.written_columns)}
    keys = [f"{key}={below.columns[places[key]]}" for key in sorted(node.table.primary_key)]
    said = [canonical(x) for x in (node.conflict, node.state_ttl)]
    every = below.columns if goes_by_columns(node) else ()
    rows = hashed(joined("Sink", [below.rows, *said, *keys, *every]))
    return Lineage(rows, below.columns, below.texts)


def _apart(keys: Sequence[int], below: Lineage) -> list[str]:
    """Columns whose order tells nothing."""
    return sorted({below.columns[key] for key in keys})
