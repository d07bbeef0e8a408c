"""Flink's view of aggregations: hash or sort based, in one phase or two, DISTINCT in two levels.

One operator runs them. The local phase and the inner level of DISTINCT are Steps, because Spark's planner
adds both to any aggregation by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidemill.config.optimizer_options import AGG_PHASE_STRATEGY
from tidemill.config.option import Configuration
from tidemill.operators.aggregates.registry import declared
from tidemill.physical.aggregates.parts import mergeable
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.view.nodes import Aggregate, Traits, ViewNode
from tidemill.physical.batch.view.steps import WITHIN, ascending, bracketed, exchange, sort, step
from tidemill.physical.explain.printer import Printer, call_text
from tidemill.physical.explain.view.accumulators import accumulators
from tidemill.plan.expressions import AggregateCall
from tidemill.types import logical as t
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True)
class _Shape:
    """The texts of an aggregation. ``input`` is exchanged and sorted; ``groups`` and ``select`` are over its
    fields."""

    input: ViewNode
    hashed: bool
    merges: bool
    groups: tuple[str, ...]
    select: tuple[str, ...]
    keys: int

    def step(self, fields: tuple[Field, ...]) -> ViewNode:
        """As the inner level of another aggregation."""
        merging = ("isMerge", f"[{str(self.merges).lower()}]")
        grouping = (("groupBy", bracketed(self.groups)),) if self.groups else ()
        name = "HashAggregate" if self.hashed else "SortAggregate"
        select = ("select", bracketed(self.select))
        level = step(self.input, name, WITHIN, (merging, *grouping, select), fields)
        return ViewNode(level.node, _grouped(level.traits, self.keys))


def aggregate_view(node: b.Aggregate, child: ViewNode, config: Configuration) -> ViewNode:
    shape = _shape(child, node.keys, node.calls, config)
    view_node = Aggregate(
        fields=node.fields,
        input=shape.input.node,
        whole=node,
        hashed=shape.hashed,
        merges=shape.merges,
        groups=shape.groups,
        select=shape.select,
    )
    return ViewNode(view_node, _grouped(child.traits, len(node.keys)))


def _grouped(traits: Traits, keys: int) -> Traits:
    return replace(traits, reduced=True, partitioned=tuple(range(keys)))


def _shape(
    child: ViewNode, keys: tuple[int, ...], calls: tuple[AggregateCall, ...], config: Configuration
) -> _Shape:
    if any(c.distinct for c in calls):
        child, keys, calls = _distinct_first(child, keys, calls, config)
    hashed = _can_hash(calls) and not (child.traits.sized and keys)
    phases = _one_phase if _in_one_phase(child, keys, calls, config) else _two_phases
    return phases(child, keys, calls, hashed)


def _can_hash(calls: Sequence[AggregateCall]) -> bool:
    """Hash aggregation updates its buffers in place: they must have a fixed width."""
    variable = (t.LengthType, t.ArrayType, t.MapType, t.MultisetType, t.RowType)
    functions = [declared(c.function) for c in calls]
    fixed = all(x is not None and x.phases.fixed_width for x in functions)
    return fixed and not any(isinstance(c.type, variable) for c in calls)


def _in_one_phase(
    child: ViewNode, keys: tuple[int, ...], calls: Sequence[AggregateCall], config: Configuration
) -> bool:
    strategy = config.read(AGG_PHASE_STRATEGY).upper()
    if strategy == "ONE_PHASE" or not mergeable(calls):
        return True
    if keys and _in_place(child, keys):
        return True
    return strategy == "AUTO" and bool(keys) and child.traits.sized and child.traits.reduced


def _in_place(child: ViewNode, keys: tuple[int, ...]) -> bool:
    partitioned = child.traits.partitioned
    return bool(partitioned) and set(partitioned) <= set(keys)


def _prepared(hashed: bool, node: ViewNode, keys: tuple[int, ...]) -> ViewNode:
    return sort(node, ascending(keys)) if keys and not hashed else node


def _names(node: ViewNode, keys: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(node.fields[k].name for k in keys)


def _one_phase(
    child: ViewNode, keys: tuple[int, ...], calls: tuple[AggregateCall, ...], hashed: bool
) -> _Shape:
    printer = Printer.over(child.fields)
    groups = _names(child, keys)
    moved = child if _in_place(child, keys) else exchange(child, keys)
    select = (*groups, *(call_text(c, printer, retract=False) for c in calls))
    return _Shape(_prepared(hashed, moved, keys), hashed, False, groups, select, len(keys))


def _two_phases(
    child: ViewNode, keys: tuple[int, ...], calls: tuple[AggregateCall, ...], hashed: bool
) -> _Shape:
    buffers = accumulators(calls, Printer.over(child.fields), retract=False)
    groups = _names(child, keys)
    ready = _prepared(hashed, child, keys)
    grouping = (("groupBy", bracketed(groups)),) if groups else ()
    partial = [f"Partial_{x}" for x in buffers.local]
    local = step(
        ready,
        "LocalHashAggregate" if hashed else "LocalSortAggregate",
        WITHIN,
        (*grouping, ("select", bracketed([*groups, *partial]))),
        (*(child.fields[k] for k in keys), *(Field(x, t.BIGINT) for x in buffers.names)),
    )
    own = tuple(range(len(keys)))
    pairs = zip(calls, buffers.names, strict=True)
    final = [f"Final_{c.function}({x.strip('()')}) AS {c.name}" for c, x in pairs]
    moved = _prepared(hashed, exchange(local, own), own)
    return _Shape(moved, hashed, True, groups, (*groups, *final), len(keys))


def _distinct_first(
    child: ViewNode, keys: tuple[int, ...], calls: tuple[AggregateCall, ...], config: Configuration
) -> tuple[ViewNode, tuple[int, ...], tuple[AggregateCall, ...]]:
    """The rows after DISTINCT, and the keys and calls of the aggregation over them.

    If there is only one set of distinct columns, the rows are grouped by it. Otherwise an Expand makes a copy
    of the rows per set, and one copy for calls without DISTINCT.
    """
    sets = sorted({c.args for c in calls if c.distinct})
    plain = [c for c in calls if not c.distinct]
    single = len(sets) == 1 and not plain and all(c.filter is None for c in calls)
    columns = sorted({a for args in sets for a in args})
    inner_keys = (*keys, *columns)
    source = child
    if not single:
        child = _expanded(child, len(sets) + bool(plain))
        inner_keys = (*inner_keys, len(child.fields) - 1)
    fields = (*(child.fields[k] for k in inner_keys), *(Field(c.name, c.type) for c in plain))
    inner = _shape(child, inner_keys, tuple(plain), config).step(fields)
    if not single:
        inner = step(inner, "Calc", WITHIN, (("select", bracketed([f.name for f in fields])),))
        inner = ViewNode(inner.node, replace(inner.traits, reduced=False, sized=source.traits.sized))
    key_index = {k: i for i, k in enumerate(inner_keys)}
    first = len(inner_keys)
    merged = []
    for call in calls:
        if call.distinct:
            moved = replace(call, distinct=False, filter=None, args=tuple(key_index[a] for a in call.args))
        else:
            moved = replace(call, function="MIN", filter=None, args=(first + plain.index(call),))
        merged.append(moved)
    return inner, tuple(range(len(keys))), tuple(merged)


def _expanded(child: ViewNode, copies: int) -> ViewNode:
    names = ", ".join(f.name for f in child.fields)
    rows = [f"{{{names}, {i + 1} AS $e}}" for i in range(copies)]
    fields = (*child.fields, Field("$e", t.INT))
    return step(child, "Expand", WITHIN, (("projects", bracketed(rows)),), fields)
