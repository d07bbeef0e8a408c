"""Aggregations of a batch plan: hash or sort based, in one phase or two, DISTINCT in two levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.config.optimizer_options import AGG_PHASE_STRATEGY
from tidemill.config.option import Configuration
from tidemill.physical.accumulators import accumulators
from tidemill.physical.batch_nodes import BatchNode, above, ascending, bracketed, exchange, sort
from tidemill.physical.digest import Printer, call_text
from tidemill.plan.expressions import AggregateCall
from tidemill.types import logical as t
from tidemill.types.logical import Field

_FIXED_WIDTH = frozenset({"COUNT", "SUM", "$SUM0", "AVG", "MIN", "MAX"})
_ONE_PHASE = frozenset({"FIRST_VALUE", "LAST_VALUE", "JSON_ARRAYAGG", "SINGLE_VALUE"})


def batch_aggregate(
    child: BatchNode,
    keys: tuple[int, ...],
    calls: tuple[AggregateCall, ...],
    fields: tuple[Field, ...],
    config: Configuration,
) -> BatchNode:
    if any(c.distinct for c in calls):
        child, keys, calls = _distinct_first(child, keys, calls, config)
    hashed = _can_hash(calls) and not (child.sized and keys)
    name = "HashAggregate" if hashed else "SortAggregate"
    if _in_one_phase(child, keys, calls, config):
        return _one_phase(name, child, keys, calls, fields)
    return _two_phases(name, child, keys, calls, fields)


def _can_hash(calls: Sequence[AggregateCall]) -> bool:
    """Hash aggregation updates its buffers in place: they must have a fixed width."""
    variable = (t.LengthType, t.ArrayType, t.MapType, t.MultisetType, t.RowType)
    return all(c.function in _FIXED_WIDTH and not isinstance(c.type, variable) for c in calls)


def _in_one_phase(
    child: BatchNode, keys: tuple[int, ...], calls: Sequence[AggregateCall], config: Configuration
) -> bool:
    strategy = config.read(AGG_PHASE_STRATEGY).upper()
    if strategy == "ONE_PHASE" or any(c.function in _ONE_PHASE for c in calls):
        return True
    if keys and child.partitioned and set(child.partitioned) <= set(keys):
        return True
    return strategy == "AUTO" and bool(keys) and child.sized and child.reduced


def _prepared(name: str, node: BatchNode, keys: tuple[int, ...]) -> BatchNode:
    return sort(node, ascending(keys)) if name.endswith("SortAggregate") and keys else node


def _grouping(node: BatchNode, keys: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    names = ", ".join(node.fields[k].name for k in keys)
    return (("groupBy", f"[{names}]"),) if keys else ()


def _finished(
    name: str,
    node: BatchNode,
    grouping: tuple[int, ...],
    select: list[str],
    fields: tuple[Field, ...],
    merge: bool,
) -> BatchNode:
    merging = ("isMerge", f"[{str(merge).lower()}]")
    attributes = (merging, *_grouping(node, grouping), ("select", bracketed(select)))
    done = above(node, name, attributes, fields)
    return replace(done, reduced=True, partitioned=tuple(range(len(grouping))))


def _one_phase(
    name: str,
    child: BatchNode,
    keys: tuple[int, ...],
    calls: tuple[AggregateCall, ...],
    fields: tuple[Field, ...],
) -> BatchNode:
    printer = Printer.over(child.fields)
    select = [printer.column(k) for k in keys] + [call_text(c, printer, retract=False) for c in calls]
    kept = bool(child.partitioned) and set(child.partitioned) <= set(keys)
    moved = child if kept else exchange(child, keys)
    return _finished(name, _prepared(name, moved, keys), keys, select, fields, merge=False)


def _two_phases(
    name: str,
    child: BatchNode,
    keys: tuple[int, ...],
    calls: tuple[AggregateCall, ...],
    fields: tuple[Field, ...],
) -> BatchNode:
    found = accumulators(calls, Printer.over(child.fields), retract=False)
    key_names = [child.fields[k].name for k in keys]
    ready = _prepared(name, child, keys)
    partial = [f"Partial_{x}" for x in found.local]
    attributes = (*_grouping(ready, keys), ("select", bracketed([*key_names, *partial])))
    local_fields = (*(child.fields[k] for k in keys), *(Field(x, t.BIGINT) for x in found.names))
    local = above(ready, f"Local{name}", attributes, local_fields)
    own = tuple(range(len(keys)))
    pairs = zip(calls, found.names, strict=True)
    final = [f"Final_{c.function}({x.strip('()')}) AS {c.name}" for c, x in pairs]
    moved = _prepared(name, exchange(local, own), own)
    return _finished(name, moved, own, [*key_names, *final], fields, merge=True)


def _distinct_first(
    child: BatchNode, keys: tuple[int, ...], calls: tuple[AggregateCall, ...], config: Configuration
) -> tuple[BatchNode, tuple[int, ...], tuple[AggregateCall, ...]]:
    """The rows that DISTINCT leaves, and the aggregation over them without it.

    One set of distinct columns is grouped by directly; several, or other calls beside them, take an
    Expand with one copy of the rows each.
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
    inner = batch_aggregate(child, inner_keys, tuple(plain), fields, config)
    if not single:
        inner = above(inner, "Calc", (("select", bracketed([f.name for f in fields])),))
        inner = replace(inner, reduced=False, sized=source.sized)
    place = {k: i for i, k in enumerate(inner_keys)}
    first = len(inner_keys)
    merged = []
    for call in calls:
        if call.distinct:
            moved = replace(call, distinct=False, filter=None, args=tuple(place[a] for a in call.args))
        else:
            moved = replace(call, function="MIN", filter=None, args=(first + plain.index(call),))
        merged.append(moved)
    return inner, tuple(range(len(keys))), tuple(merged)


def _expanded(child: BatchNode, copies: int) -> BatchNode:
    names = ", ".join(f.name for f in child.fields)
    rows = [f"{{{names}, {i + 1} AS $e}}" for i in range(copies)]
    fields = (*child.fields, Field("$e", t.INT))
    return above(child, "Expand", (("projects", bracketed(rows)),), fields)
