"""The notes of EXPLAIN beside nodes that do not run as Flink's operator of that name does.

The shown plan and the running plan are the same tree, with three exceptions: nodes that only route rows;
ChangelogNormalize, which Flink omits above an upsert source if the consumer overwrites by key; and joins
whose kernel cannot compute the condition.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from tidemill.errors import InternalError
from tidemill.physical import nodes as p
from tidemill.physical.digests import Digests
from tidemill.physical.explain.notes import (
    Notes,
    combined_node,
    note_of_above,
    notes_beside,
    paired_inputs,
    passed,
    runs_otherwise,
    stands_above,
)
from tidemill.physical.joins.by_pairs import inner_join, is_joined_by_pairs
from tidemill.physical.traits.changelog_mode import changelog_text
from tidemill.physical.traits.event_time import emits_each_change

Runs = dict[int, str]
"""How nodes run, by the id of the shown node."""
_BY_PAIRS = "pairs by an inner join and a Calc above it, then rows by whether they are in a pair"
_CANDIDATES = "pairs by one operator, a Calc above it, then rows without a pair by another"


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
        counting = combined_node(pair.runs)
        is_combined = counting is not None and digests.of(counting) in combined
        for node, text in _notes(pair, is_combined):
            notes.setdefault(id(node), {})[text] = None
    return {key: ", ".join(texts) for key, texts in notes.items()}


def pairs(shown: p.PhysicalNode, runs: p.PhysicalNode) -> Iterator[Pair]:
    """Each shown node, top-down, with the node that runs for it; twice if two nodes run for it."""
    stack, visited = [(shown, runs)], set()
    while stack:
        (passing, node), (passing_runs, run) = map(passed, stack.pop())
        if (id(node), id(run)) in visited:
            continue
        visited.add((id(node), id(run)))
        yield Pair(node, run, passing, passing_runs)
        if is_joined_by_pairs(node) and not isinstance(run, p.IntervalJoin):
            stack += reversed(paired_inputs(node, inner_join(run)))
            continue
        if stands_above(run, node):
            passing_runs, run = passed(run.inputs[0])
            yield Pair(node, run, (), passing_runs)
        if len(node.inputs) != len(run.inputs) or not isinstance(node, type(run)):
            raise InternalError(f"{type(node).__name__} is shown where {type(run).__name__} runs")
        stack += reversed(paired_inputs(node, run))


def _notes(pair: Pair, is_combined: bool) -> Notes:
    shown, runs = pair.shown, pair.runs
    if not any(isinstance(x, p.DropUpdateBefore) for x in pair.passing_runs):
        yield from ((x, "drops nothing") for x in pair.passing if isinstance(x, p.DropUpdateBefore))
    yield from _watermarks(pair)
    if is_joined_by_pairs(shown):
        yield shown, _CANDIDATES if isinstance(runs, p.IntervalJoin) else _BY_PAIRS
        return
    if not isinstance(shown, type(runs)):
        yield shown, note_of_above(runs)
        return
    yield from ((shown, text) for text in runs_otherwise(shown, runs))
    if shown.traits.kinds != runs.traits.kinds:
        yield shown, f"changelogMode=[{changelog_text(runs.traits.kinds)}]"
    if emits_each_change(runs):
        yield shown, "every change for itself, as a version"
    yield from notes_beside(shown, runs, is_combined)


def _watermarks(pair: Pair) -> Notes:
    """The note of a mini-batch by event time: it passes only the watermarks that windows need."""
    passes = [x.passes for x in pair.passing_runs if isinstance(x, p.MiniBatchAssigner)]
    for node in pair.passing:
        if isinstance(node, p.MiniBatchAssigner) and passes and passes[0] != node.interval:
            yield node, f"a watermark passes every {passes[0]} ms"
