"""GroupAggregate: aggregation by key; with the parts of it that readers or keys share."""

from __future__ import annotations

from collections.abc import Callable

from tidemill.operators.aggregates.declaration import Direction
from tidemill.operators.aggregates.registry import declared
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.distinct_reuse import share_distinct, shared_input
from tidemill.physical.digests import canonical, hashed, joined, settled_text
from tidemill.physical.explain.attributes.dispatch import attributes, hints, node_name
from tidemill.physical.explain.attributes.texts import Attributes, bracket, call_texts, group_by, ttl_hints
from tidemill.physical.explain.notes import (
    BY_AGGREGATION,
    Notes,
    Pairs,
    combined_node,
    counted_once,
    note_of_above,
    notes_beside,
    paired_inputs,
    stands_above,
)
from tidemill.physical.explain.printer import Form, Printer
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, computed
from tidemill.physical.running import running
from tidemill.physical.traits.arrival import Arrival, arrival_of, as_source
from tidemill.physical.traits.changelog_mode import (
    CHANGES,
    INSERT_UPDATE,
    Kinds,
    insert_only,
    kinds_of_inputs,
    modifications,
    needs_both,
    needs_same_form,
    satisfied,
)
from tidemill.physical.traits.keys import Keys, derived_keys
from tidemill.physical.traits.mini_batch import always, folds
from tidemill.physical.traits.monotonicity import Moves, directions, never_negative
from tidemill.plan.expressions import AggregateCall
from tidemill.types.logical import INTEGER_TYPES, DecimalType

_MOVES = {Direction.UP: Moves.UP, Direction.DOWN: Moves.DOWN, Direction.ANY: Moves.ANYHOW}


@modifications.register
def _(node: p.GroupAggregate) -> Kinds:
    return INSERT_UPDATE if insert_only(node.input) and not node.split else CHANGES


satisfied.register(p.GroupAggregate, needs_both)


@arrival_of.register
def _(node: p.GroupAggregate) -> Arrival:
    """An aggregation can emit the change of every row, but shared distinct values are counted by epoch."""
    return Arrival.UNTOLD if node.reuse is not None else as_source(node.input)


@directions.register
def _(node: p.GroupAggregate) -> tuple[Moves, ...]:
    keys = (Moves.NOT,) * len(node.keys)
    if node.split or not insert_only(node.input):
        return (*keys, *(Moves.ANYHOW for _ in node.calls))
    return (*keys, *(_moves(c, node.input) for c in node.calls))


def _moves(call: AggregateCall, source: p.PhysicalNode) -> Moves:
    function = declared(call.function)
    if function is None:
        return Moves.ANYHOW
    if function.direction is not Direction.UP_IF_POSITIVE:
        return _MOVES[function.direction]
    exact = isinstance(call.type, (*INTEGER_TYPES, DecimalType))
    return Moves.UP if exact and never_negative(source, call.args[0]) else Moves.ANYHOW


@derived_keys.register
def _(node: p.GroupAggregate, inputs: tuple[Keys, ...]) -> Keys:
    return frozenset({frozenset(range(len(node.keys)))})


folds.register(p.GroupAggregate, always)


@running.register
def _(node: p.GroupAggregate) -> p.PhysicalNode:
    return share_distinct(node)


@settled_text.register
def _(node: p.GroupAggregate, text: Callable[[object], str]) -> str:
    """The fields that the first digests had."""
    parts = [text(x) for x in (node.fields, node.keys, node.calls, node.state_ttl)]
    return joined("GroupAggregate", [*parts, *["versions"] * node.versions, text(node.input)])


@lineage_of.register
def _(node: p.GroupAggregate, lineages: Lineages) -> Lineage:
    below = lineages.of(node.input)
    keys = [below.columns[k] for k in node.keys]
    shared = [canonical(node.reuse)] * (node.reuse is not None)
    settings = [str(node.state_ttl), *shared, *["versions"] * node.versions]
    rows = hashed(joined("Group", [below.rows, *keys, *settings]))
    marks = ["mark"] * node.marked
    own = [*(lineages.call(call, below.columns) for call in node.calls), *marks]
    stored = [*(lineages.stored_call(call, below) for call in node.calls), *marks]
    texts = [*lineages.call_texts(node.calls, node.input), *["changed calls"] * node.marked]
    return computed(below, node.keys, rows, own, texts, stored)


@node_name.register
def _(node: p.GroupAggregate) -> str:
    return "PythonGroupAggregate" if any(c.user for c in node.calls) else "GroupAggregate"


@attributes.register
def _(node: p.GroupAggregate, form: Form) -> Attributes:
    return [*group_by(node.input, node.keys), ("select", bracket(selected(node)))]


def selected(node: p.GroupAggregate) -> list[str]:
    """The texts of the keys and calls."""
    printer = Printer.over(node.input.fields)
    return [*(printer.column(k) for k in node.keys), *call_texts(node.input, node.calls)]


@hints.register
def _(node: p.GroupAggregate) -> Attributes:
    return ttl_hints(node.ttl_hints)


@combined_node.register
def _(runs: p.GroupAggregate) -> p.PhysicalNode:
    return runs


@paired_inputs.register
def _(shown: p.GroupAggregate, runs: p.PhysicalNode) -> Pairs:
    assert isinstance(runs, p.GroupAggregate)
    return [(shown.input, runs.input) if runs.reuse is None else (read_once(shown), shared_input(runs))]


def read_once(node: p.GroupAggregate) -> p.PhysicalNode:
    """The input of an aggregation whose keys share distinct values: GROUPING SETS need no Expand then."""
    return node.source.inputs[0] if node.reuse is not None and node.reuse.expanded else node.source


@notes_beside.register
def _(shown: p.GroupAggregate, runs: p.PhysicalNode, is_combined: bool) -> Notes:
    assert isinstance(runs, p.GroupAggregate)
    return notes_of_sharing(shown, shown, runs)


def notes_of_sharing(shown: p.GroupAggregate, whole: p.GroupAggregate, runs: p.GroupAggregate) -> Notes:
    """``whole``: the aggregation whose last phase is shown."""
    if runs.reuse is not None:
        yield shown, counted_once(runs.reuse)
        if read_once(whole) is not whole.source:
            yield whole.source, BY_AGGREGATION


modifications.register(p.AggregatePart, kinds_of_inputs)
satisfied.register(p.AggregatePart, needs_same_form)
stands_above.register(p.AggregatePart, lambda runs, shown: True)


@lineage_of.register
def _(node: p.AggregatePart, lineages: Lineages) -> Lineage:
    below = lineages.of(node.input)
    columns, texts, carried = (
        tuple(all_[c] for c in node.columns) for all_ in (below.columns, below.texts, below.carried)
    )
    return Lineage(below.rows, columns, texts, carried)


@note_of_above.register
def _(runs: p.AggregatePart) -> str:
    """Names the calls of a shared aggregation that belong to other readers."""
    whole = runs.input
    assert isinstance(whole, p.GroupAggregate)
    texts = call_texts(whole.input, whole.calls)
    others = [text for index, text in enumerate(texts) if not runs.calls & (1 << index)]
    return f"one with {', '.join(others)} of other readers" if others else "one for other readers, too"


modifications.register(p.SharedDistinct, kinds_of_inputs)
satisfied.register(p.SharedDistinct, needs_same_form)


@attributes.register(p.AggregatePart)
@attributes.register(p.SharedDistinct)
def _(node: p.AggregatePart | p.SharedDistinct, form: Form) -> Attributes:
    return [("select", bracket([f.name for f in node.fields]))]
