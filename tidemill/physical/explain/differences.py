"""The notes of EXPLAIN beside nodes that do not run as Flink's operator of that name does.

The shown plan and the running plan are the same tree, with three exceptions: nodes that only route rows;
ChangelogNormalize, which Flink omits above an upsert source if the consumer overwrites by key; and joins
whose kernel cannot compute the condition.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import TypeVar

from tidemill.errors import InternalError
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.distinct_reuse import shared_input
from tidemill.physical.aggregates.salted_distinct import bucket_part, copies_of
from tidemill.physical.digests import PASSING, Digests
from tidemill.physical.explain.attributes.orders import strategy
from tidemill.physical.explain.printer import Printer, call_text
from tidemill.physical.explain.view import nodes as v
from tidemill.physical.joins.by_pairs import inner_join, is_joined_by_pairs
from tidemill.physical.ranks import share_operator
from tidemill.physical.sinks import keeps_greatest_row, may_conflict_across_tasks
from tidemill.physical.traits.changelog_mode import changelog_text, insert_only
from tidemill.physical.traits.determinism import keeps_values
from tidemill.physical.traits.event_time import emits_each_change, needs_arrival_order, reads_watermark
from tidemill.plan.expressions import InputRef

Runs = dict[int, str]
"""How nodes run, by the id of the shown node."""
_Aggregate = TypeVar("_Aggregate", p.GroupAggregate, p.WindowAggregate)
_Notes = Iterator[tuple[p.PhysicalNode, str]]
_COMBINED = (p.GroupAggregate, p.WindowAggregate)
_BY_WRITER = "by the writer of the exchange, while it makes rows fewer"
_BY_AGGREGATION = "by the aggregation above"
_BY_PAIRS = "pairs by an inner join and a Calc above it, then rows by whether they are in a pair"
_CANDIDATES = "pairs by one operator, a Calc above it, then rows without a pair by another"
_COLUMNS = "one with the columns of other readers"


@dataclass(frozen=True, slots=True)
class Pair:
    """A shown node and the node that runs for it, each with the nodes above that only pass on its rows."""

    shown: p.PhysicalNode
    runs: p.PhysicalNode
    passing: tuple[p.PhysicalNode, ...]
    passing_runs: tuple[p.PhysicalNode, ...]


def differences(shown: p.PhysicalNode, runs: p.PhysicalNode, combined: Container[str] = ()) -> Runs:
    """For each node of ``shown`` that runs differently the text that says how. ``combined``: the digests of
    aggregations whose rows are combined before their exchange."""
    notes: dict[int, dict[str, None]] = {}
    digests = Digests()
    for pair in pairs(shown, runs):
        counting = bucket_part(pair.runs) or pair.runs
        is_combined = isinstance(counting, _COMBINED) and digests.of(counting) in combined
        for node, text in _notes(pair, is_combined):
            notes.setdefault(id(node), {})[text] = None
    return {key: ", ".join(texts) for key, texts in notes.items()}


def pairs(shown: p.PhysicalNode, runs: p.PhysicalNode) -> Iterator[Pair]:
    """Each shown node, top-down, with the node that runs for it; twice if two nodes run for it."""
    stack, visited = [(shown, runs)], set()
    while stack:
        (passing, node), (passing_runs, run) = map(_passed, stack.pop())
        if (id(node), id(run)) in visited:
            continue
        visited.add((id(node), id(run)))
        yield Pair(node, run, passing, passing_runs)
        if is_joined_by_pairs(node) and not isinstance(run, p.IntervalJoin):
            stack += reversed(_below(node, inner_join(run)))
            continue
        if _stands_above(run, node):
            passing_runs, run = _passed(run.inputs[0])
            yield Pair(node, run, (), passing_runs)
        if len(node.inputs) != len(run.inputs) or not isinstance(node, type(run)):
            raise InternalError(f"{type(node).__name__} is shown where {type(run).__name__} runs")
        stack += reversed(_below(node, run))


def _below(node: p.PhysicalNode, run: p.PhysicalNode) -> list[tuple[p.PhysicalNode, p.PhysicalNode]]:
    if isinstance(run, p.TemporalJoin) and isinstance(node, p.TemporalJoin) and _chooses(run):
        *_, source = _choosing(node, run)
        (_, versions) = _passed(run.right)
        assert isinstance(versions, p.Calc)
        return [(node.left, run.left), (source, versions.input)]
    if isinstance(run, p.GroupAggregate) and isinstance(node, p.GroupAggregate):
        whole = _whole(node)
        return [(_read_once(whole), shared_input(run)) if run.reuse is not None else (whole.input, run.input)]
    if isinstance(run, p.WindowAggregate) and isinstance(node, p.WindowAggregate):
        return [(_whole(node).input, _counted(run))]
    return list(zip(node.inputs, run.inputs, strict=True))


def _counted(run: p.WindowAggregate) -> p.PhysicalNode:
    """The input of a window aggregation, below the Expand that copies rows for it."""
    part = bucket_part(run)
    if part is None:
        return run.input
    copies = copies_of(part)
    return part.input if copies is None else copies.input


def _values(part: p.WindowAggregate, spread: p.Spread) -> str:
    """The names of the DISTINCT columns."""
    copies = copies_of(part)
    if copies is None:
        return ", ".join(part.input.fields[c].name for c in spread.columns)
    rows = [row[c] for c in spread.columns for row in copies.projections]
    column_indexes = dict.fromkeys(x.index for x in rows if isinstance(x, InputRef))
    return ", ".join(copies.input.fields[index].name for index in column_indexes)


def _whole(shown: _Aggregate) -> _Aggregate:
    """The shown aggregation before it was split into phases."""
    if isinstance(shown, v.PhasedGroupAggregate | v.PhasedWindowAggregate):
        return shown.whole or shown
    return shown


def _counted_once(reuse: p.DistinctReuse) -> str:
    mark = "a bit" if reuse.width else "a count"
    return f"each value once, with {mark} for each of {len(reuse.combinations)} keys"


def _read_once(node: p.GroupAggregate) -> p.PhysicalNode:
    """The input of an aggregation whose keys share distinct values: GROUPING SETS need no Expand then."""
    return node.source.inputs[0] if node.reuse is not None and node.reuse.expanded else node.source


def _chooses(run: p.TemporalJoin) -> bool:
    """Whether it runs over all input rows of the view, and chooses the versions itself."""
    return run.latest or run.alive is not None


def _choosing(shown: p.TemporalJoin, run: p.TemporalJoin) -> list[p.PhysicalNode]:
    """The shown nodes that choose versions, top-down, and the node below them."""
    chain = [_passed(shown.right)[1]]
    while isinstance(chain[-1], p.Calc | p.Rank):
        ranked = isinstance(chain[-1], p.Rank)
        chain.append(_passed(chain[-1].input)[1])
        if ranked or (not run.latest and not isinstance(chain[-1], p.Calc)):
            break
    return chain


def _stands_above(run: p.PhysicalNode, node: p.PhysicalNode) -> bool:
    """Whether ``run`` is not shown, because the node that runs for ``node`` is below it."""
    if isinstance(run, p.Calc):
        # A join's filter; a projection that another reader of an aggregation needs.
        return not isinstance(node, p.Calc)
    if isinstance(run, p.AggregatePart):
        return True
    return isinstance(run, p.ChangelogNormalize) and not isinstance(node, p.ChangelogNormalize)


def _passed(node: p.PhysicalNode) -> tuple[tuple[p.PhysicalNode, ...], p.PhysicalNode]:
    """The nodes from ``node`` downwards that only pass on rows, and the node below them."""
    passing: list[p.PhysicalNode] = []
    while isinstance(node, PASSING):
        passing.append(node)
        node = node.input
    return tuple(passing), node


def _notes(pair: Pair, is_combined: bool) -> _Notes:
    shown, runs = pair.shown, pair.runs
    if not any(isinstance(x, p.DropUpdateBefore) for x in pair.passing_runs):
        yield from ((x, "drops nothing") for x in pair.passing if isinstance(x, p.DropUpdateBefore))
    yield from _watermarks(pair)
    if isinstance(runs, p.AggregatePart):
        yield shown, _shared(runs)
        return
    if is_joined_by_pairs(shown):
        yield shown, _CANDIDATES if isinstance(runs, p.IntervalJoin) else _BY_PAIRS
        return
    if not isinstance(shown, type(runs)):
        chooses = isinstance(runs, p.Calc) and runs.condition is None
        yield shown, _COLUMNS if chooses else f"{type(runs).__name__} above it"
        return
    yield from ((shown, text) for text in (*_own_notes(shown), *_differing_notes(shown, runs)))
    if shown.traits.kinds != runs.traits.kinds:
        yield shown, f"changelogMode=[{changelog_text(runs.traits.kinds)}]"
    if isinstance(runs, p.GroupAggregate) and runs.reuse is not None:
        yield shown, _counted_once(runs.reuse)
    if emits_each_change(runs):
        yield shown, "every change for itself, as a version"
    if isinstance(shown, p.GroupAggregate) and isinstance(runs, p.GroupAggregate):
        whole = _whole(shown)
        if runs.reuse is not None and _read_once(whole) is not whole.source:
            yield whole.source, _BY_AGGREGATION
        yield from _phases(shown, is_combined)
    part = bucket_part(runs)
    if part is not None and part.spread is not None:
        yield shown, f"the sum of {part.spread.buckets} buckets by {_values(part, part.spread)}"
    if part is not None and part.reuse is not None:
        yield shown, _counted_once(part.reuse)
    if isinstance(shown, p.WindowAggregate):
        yield from _window_phases(shown, is_combined, spread=part is not None)
    if isinstance(shown, p.OverAggregate) and isinstance(runs, p.OverAggregate):
        yield from _windows(shown, runs)
    if isinstance(shown, p.TemporalJoin) and isinstance(runs, p.TemporalJoin) and _chooses(runs):
        yield from ((x, "by the TemporalJoin above") for x in _choosing(shown, runs)[:-1])


def _watermarks(pair: Pair) -> _Notes:
    """The note of a mini-batch by event time: it passes only the watermarks that windows need."""
    passes = [x.passes for x in pair.passing_runs if isinstance(x, p.MiniBatchAssigner)]
    for node in pair.passing:
        if isinstance(node, p.MiniBatchAssigner) and passes and passes[0] != node.interval:
            yield node, f"a watermark passes every {passes[0]} ms"


def _shared(runs: p.AggregatePart) -> str:
    """The calls of a shared aggregation that belong to other readers."""
    whole = runs.input
    assert isinstance(whole, p.GroupAggregate)
    printer = Printer.over(whole.input.fields)
    retract = not insert_only(whole.input)
    others = [
        call_text(call, printer, retract=retract)
        for index, call in enumerate(whole.calls)
        if not runs.calls & (1 << index)
    ]
    return f"one with {', '.join(others)} of other readers" if others else "one for other readers, too"


def _phases(shown: p.GroupAggregate, is_combined: bool) -> _Notes:
    """The notes of phases below an aggregation: one kernel does all of them."""
    for phase in v.phases(shown):
        local = isinstance(phase, v.LocalGroupAggregate) and is_combined
        yield phase, _BY_WRITER if local else _BY_AGGREGATION


def _window_phases(shown: p.WindowAggregate, is_combined: bool, *, spread: bool) -> _Notes:
    """The notes of phases below an aggregation by window. The writer of the exchange does the local phase. If
    the aggregation is ``spread``, a second aggregation runs."""
    phases = [x for x in v.phases(shown) if isinstance(x, p.WindowAggregate | v.LocalWindowAggregate)]
    for phase in phases:
        local = isinstance(phase, v.LocalWindowAggregate)
        if local or not spread:
            writer = local and is_combined and phase is phases[-1]
            yield phase, _BY_WRITER if writer else _BY_AGGREGATION


def _windows(shown: p.OverAggregate, runs: p.OverAggregate) -> _Notes:
    (_, below), (_, lower) = _passed(shown.input), _passed(runs.input)
    if isinstance(lower, p.OverAggregate) and share_operator(runs, lower):
        yield below, "with the one above"


def _own_notes(node: p.PhysicalNode) -> list[str]:
    """The notes that do not depend on the plan."""
    if isinstance(node, p.TableSourceScan) and node.filters:
        return ["filter=[] in the source"]
    if reads_watermark(node):
        return ["behind an exchange, where all rows before each are known"]
    if needs_arrival_order(node):
        return ["in one partition, where rows are as they came"]
    if isinstance(node, p.Join) and node.counts_nulls:
        return ["partitioned by key, NULLs counted in every partition"]
    return []


@singledispatch
def _differing_notes(shown: p.PhysicalNode, runs: p.PhysicalNode) -> list[str]:
    return []


@_differing_notes.register
def _(shown: p.IntervalJoin, runs: p.PhysicalNode) -> list[str]:
    return [] if isinstance(runs, p.IntervalJoin) else ["Join without bounds"]


@_differing_notes.register
def _(shown: p.Calc, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.Calc)
    return ["keeps the values that rows came with"] if keeps_values(runs) else []


@_differing_notes.register
def _(shown: p.LookupJoin, runs: p.PhysicalNode) -> list[str]:
    return [] if insert_only(runs.inputs[0]) else ["keeps the rows that were found"]


@_differing_notes.register
def _(shown: p.TemporalJoin, runs: p.PhysicalNode) -> list[str]:
    return [] if insert_only(runs.inputs[0]) else ["keeps the versions that were found"]


@_differing_notes.register
def _(shown: p.Rank, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.Rank)
    notes = [] if isinstance(shown, p.WindowRank) else _strategy(shown, runs)
    return [*notes, "corrected by later rows"] if shown.insert_only and not runs.insert_only else notes


@_differing_notes.register
def _(shown: p.SortLimit, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.SortLimit)
    return _strategy(shown, runs)


def _strategy(shown: p.Rank | p.SortLimit, runs: p.Rank | p.SortLimit) -> list[str]:
    return [] if strategy(shown) == strategy(runs) else [f"strategy=[{strategy(runs)}]"]


@_differing_notes.register
def _(shown: p.OverAggregate, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.OverAggregate)
    return ["corrected by later rows"] if shown.time and not runs.time else []


@_differing_notes.register
def _(shown: p.Sink, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.Sink)
    differs = shown.materialize != runs.materialize
    notes = [f"upsertMaterialize=[{str(runs.materialize).lower()}]"] if differs else []
    if keeps_greatest_row(runs):
        notes.append("of each key the greatest row by its columns")
    return [*notes, "of each key the last row of an epoch"] if may_conflict_across_tasks(runs) else notes
