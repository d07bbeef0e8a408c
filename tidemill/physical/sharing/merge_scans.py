"""Merges nodes that differ only in their columns into one node with all columns.

    before:  Scan(t, [a, b]) and Scan(t, [a, c])
    after:   Scan(t, [a, b, c])

Column pruning gives each reader of a view its own scan and projection, so one view becomes several plans.
This module merges them again if they read the same rows under the same conditions: equal plans, scans of a
table, and the watermarks and projections above them. Cost: a pass over the merged nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidemill.physical import nodes as p
from tidemill.physical.digests import Digests, table_digest
from tidemill.physical.finish import references, with_keys
from tidemill.physical.sharing.family import free_name
from tidemill.physical.traits.event_time import reads_watermark
from tidemill.plan.expressions import Expr
from tidemill.plan.rewrite import move_inputs
from tidemill.plan.rules.determinism import is_deterministic
from tidemill.types.logical import Field

Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MergedScan:
    """``positions``: for each merged node the index of each of its columns in ``node``."""

    node: p.PhysicalNode
    positions: tuple[Positions, ...]


def merge_scans(nodes: Sequence[p.PhysicalNode], digests: Digests) -> MergedScan | None:
    """The merged node; None if ``nodes`` differ in more than columns."""
    first = nodes[0]
    if len({digests.of(node) for node in nodes}) == 1:
        return MergedScan(first, (tuple(range(len(first.fields))),) * len(nodes))
    scans = [node for node in nodes if isinstance(node, p.TableSourceScan)]
    if len(scans) == len(nodes):
        return _scans(scans)
    marked = [node for node in nodes if isinstance(node, p.WatermarkAssigner)]
    if len(marked) == len(nodes):
        return _watermarks(marked, digests)
    if any(isinstance(node, p.Calc) for node in nodes):
        return _calcs([_as_calc(node) for node in nodes], digests)
    return None


def origin(node: p.PhysicalNode, digests: Digests) -> str:
    """A text that is equal for nodes that might be merged; cheap."""
    while isinstance(node, p.Calc | p.WatermarkAssigner):
        node = node.input
    if isinstance(node, p.TableSourceScan):
        return table_digest(node.table, dict(node.options))
    return digests.of(node)


def _scans(scans: list[p.TableSourceScan]) -> MergedScan | None:
    first = scans[0]
    if len({(table_digest(s.table, dict(s.options)), s.traits.kinds) for s in scans}) > 1:
        return None
    types = {c: f.type for s in scans for c, f in zip(s.columns, s.fields, strict=True)}
    columns = tuple(c.name for c in first.table.columns if c.name in types)
    whole = with_keys(
        replace(
            first,
            columns=columns,
            fields=tuple(Field(c, types[c]) for c in columns),
            filters=(),
            projected=columns != tuple(c.name for c in first.table.physical_columns),
        )
    )
    return MergedScan(whole, tuple(tuple(map(columns.index, s.columns)) for s in scans))


def _watermarks(nodes: list[p.WatermarkAssigner], digests: Digests) -> MergedScan | None:
    below = merge_scans([node.input for node in nodes], digests)
    if below is None:
        return None
    pairs = list(zip(nodes, below.positions, strict=True))
    marks = {(positions[node.rowtime], _moved(node.watermark, positions)) for node, positions in pairs}
    if len(marks) > 1:
        return None
    ((rowtime, watermark),) = marks
    fields = list(below.node.fields)
    fields[rowtime] = replace(fields[rowtime], type=nodes[0].fields[nodes[0].rowtime].type)
    whole = replace(nodes[0], fields=tuple(fields), input=below.node, rowtime=rowtime, watermark=watermark)
    return MergedScan(with_keys(whole), below.positions)


def _as_calc(node: p.PhysicalNode) -> p.Calc:
    if isinstance(node, p.Calc):
        return node
    return p.Calc(fields=node.fields, traits=node.traits, input=node, projections=references(node.fields))


def _calcs(calcs: list[p.Calc], digests: Digests) -> MergedScan | None:
    if not all(map(_is_plain, calcs)):
        return None
    below = merge_scans([calc.input for calc in calcs], digests)
    if below is None:
        return None
    pairs = list(zip(calcs, below.positions, strict=True))
    conditions = {None if c.condition is None else _moved(c.condition, positions) for c, positions in pairs}
    if len(conditions) > 1:
        return None
    columns: dict[tuple[Expr, str], Field] = {}
    columns_by_calc: list[Positions] = []
    for calc, positions in pairs:
        moved = [_moved(x, positions) for x in calc.projections]
        keys = [(x, str(f.type)) for x, f in zip(moved, calc.fields, strict=True)]
        for key, field in zip(keys, calc.fields, strict=True):
            if key not in columns:
                name = free_name(field.name, (f.name for f in columns.values()))
                columns[key] = replace(field, name=name)
        order = list(columns)
        columns_by_calc.append(tuple(map(order.index, keys)))
    whole = replace(
        calcs[0],
        fields=tuple(columns.values()),
        input=below.node,
        projections=tuple(expression for expression, _ in columns),
        condition=next(iter(conditions)),
    )
    return MergedScan(with_keys(whole), tuple(columns_by_calc))


def _is_plain(calc: p.Calc) -> bool:
    parts = (*calc.projections, *(() if calc.condition is None else (calc.condition,)))
    return not reads_watermark(calc) and all(map(is_deterministic, parts))


def _moved(expression: Expr, positions: Positions) -> Expr:
    return move_inputs(expression, lambda column: positions[column])
