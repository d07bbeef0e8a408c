"""What EXPLAIN says beside a node that does not run as Flink's operator of that name does.

The shown plan and the one that runs are one tree, but for nodes that only say where rows go and for
ChangelogNormalize, which Flink leaves out above an upsert source whose consumer overwrites by key.
"""

from __future__ import annotations

from functools import singledispatch

from tidemill.errors import InternalError
from tidemill.physical import nodes as p
from tidemill.physical.identity import PASSING
from tidemill.physical.ranks import share_operator
from tidemill.physical.traits.changelog_mode import changelog_text

Runs = dict[int, str]
"""How nodes run, by the id of the shown node."""


def differences(shown: p.PhysicalNode, runs: p.PhysicalNode) -> Runs:
    """Per node of ``shown`` that runs otherwise how it does."""
    found: Runs = {}
    _compare(shown, runs, found)
    return found


def _compare(
    shown: p.PhysicalNode, runs: p.PhysicalNode, found: Runs, above: p.PhysicalNode | None = None
) -> None:
    """``above``: the node over ``runs``."""
    shown, runs = _through(shown), _through(runs)
    notes: list[str] = []
    if isinstance(above, p.OverAggregate) and isinstance(runs, p.OverAggregate):
        notes += ["with the one above"] if share_operator(above, runs) else []
    if isinstance(runs, p.ChangelogNormalize) and not isinstance(shown, p.ChangelogNormalize):
        notes.append("ChangelogNormalize above it")
        runs = _through(runs.input)
    if len(shown.inputs) != len(runs.inputs) or not isinstance(shown, type(runs)):
        raise InternalError(f"{type(shown).__name__} is shown where {type(runs).__name__} runs")
    notes += [*_own(shown), *_other(shown, runs)]
    if shown.traits.kinds != runs.traits.kinds:
        notes.append(f"changelogMode=[{changelog_text(runs.traits.kinds)}]")
    if notes:
        found[id(shown)] = ", ".join(notes)
    for below, run in zip(shown.inputs, runs.inputs, strict=True):
        _compare(below, run, found, runs)


def _through(node: p.PhysicalNode) -> p.PhysicalNode:
    while isinstance(node, PASSING):
        node = node.input
    return node


def _own(node: p.PhysicalNode) -> list[str]:
    """What kernels do in another way, whatever the plan."""
    if isinstance(node, p.LocalGroupAggregate):
        return ["by the writer of the exchange, while it makes rows fewer"]
    if isinstance(node, p.IncrementalGroupAggregate):
        return ["by the aggregation above"]
    if isinstance(node, p.Calc | p.Expand) and node.phase:
        return ["by the aggregation above"]
    if isinstance(node, p.GroupAggregate | p.GlobalGroupAggregate) and node.core is None:
        return ["by the aggregation above"]
    if isinstance(node, p.Join) and node.counts_nulls:
        return ["partitioned by key, NULLs counted in every partition"]
    return []


@singledispatch
def _other(shown: p.PhysicalNode, runs: p.PhysicalNode) -> list[str]:
    return []


@_other.register
def _(shown: p.IntervalJoin, runs: p.PhysicalNode) -> list[str]:
    return ["Join without bounds"]


@_other.register
def _(shown: p.Rank, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.Rank)
    notes = [] if shown.strategy == runs.strategy else [f"strategy=[{runs.strategy}]"]
    return [*notes, "corrected by later rows"] if shown.insert_only and not runs.insert_only else notes


@_other.register
def _(shown: p.SortLimit, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.SortLimit)
    return [] if shown.strategy == runs.strategy else [f"strategy=[{runs.strategy}]"]


@_other.register
def _(shown: p.OverAggregate, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.OverAggregate)
    return ["corrected by later rows"] if shown.time and not runs.time else []


@_other.register
def _(shown: p.Sink, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.Sink)
    return (
        []
        if shown.materialize == runs.materialize
        else [f"upsertMaterialize=[{str(runs.materialize).lower()}]"]
    )
