"""One node that gives what several give: their columns, where only these tell them apart.

Column pruning leaves to each reader of a view its own scan and projection, so what is one in the text
becomes several plans. Here they are one again, if they read the same rows under the same conditions: equal
plans, scans of a table, and the watermarks and projections above these. Cost: a pass over what is united.
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

Places = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class United:
    """``places``: per node that was united, where each of its columns stands in ``node``."""

    node: p.PhysicalNode
    places: tuple[Places, ...]


def merge_scans(nodes: Sequence[p.PhysicalNode], digests: Digests) -> United | None:
    """None where the ``nodes`` differ in more than columns."""
    first = nodes[0]
    if len({digests.of(node) for node in nodes}) == 1:
        return United(first, (tuple(range(len(first.fields))),) * len(nodes))
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
    """Equal for nodes that may be united; cheap."""
    while isinstance(node, p.Calc | p.WatermarkAssigner):
        node = node.input
    if isinstance(node, p.TableSourceScan):
        return table_digest(node.table, dict(node.options))
    return digests.of(node)


def _scans(scans: list[p.TableSourceScan]) -> United | None:
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
    return United(whole, tuple(tuple(map(columns.index, s.columns)) for s in scans))


def _watermarks(nodes: list[p.WatermarkAssigner], digests: Digests) -> United | None:
    below = merge_scans([node.input for node in nodes], digests)
    if below is None:
        return None
    pairs = list(zip(nodes, below.places, strict=True))
    marks = {(places[node.rowtime], _moved(node.watermark, places)) for node, places in pairs}
    if len(marks) > 1:
        return None
    ((rowtime, watermark),) = marks
    fields = list(below.node.fields)
    fields[rowtime] = replace(fields[rowtime], type=nodes[0].fields[nodes[0].rowtime].type)
    whole = replace(nodes[0], fields=tuple(fields), input=below.node, rowtime=rowtime, watermark=watermark)
    return United(with_keys(whole), below.places)


def _as_calc(node: p.PhysicalNode) -> p.Calc:
    if isinstance(node, p.Calc):
        return node
    return p.Calc(fields=node.fields, traits=node.traits, input=node, projections=references(node.fields))


def _calcs(calcs: list[p.Calc], digests: Digests) -> United | None:
    if not all(map(_is_plain, calcs)):
        return None
    below = merge_scans([calc.input for calc in calcs], digests)
    if below is None:
        return None
    pairs = list(zip(calcs, below.places, strict=True))
    conditions = {None if c.condition is None else _moved(c.condition, places) for c, places in pairs}
    if len(conditions) > 1:
        return None
    columns: dict[tuple[Expr, str], Field] = {}
    found: list[Places] = []
    for calc, places in pairs:
        moved = [_moved(x, places) for x in calc.projections]
        keys = [(x, str(f.type)) for x, f in zip(moved, calc.fields, strict=True)]
        for key, field in zip(keys, calc.fields, strict=True):
            if key not in columns:
                name = free_name(field.name, (f.name for f in columns.values()))
                columns[key] = replace(field, name=name)
        order = list(columns)
        found.append(tuple(map(order.index, keys)))
    whole = replace(
        calcs[0],
        fields=tuple(columns.values()),
        input=below.node,
        projections=tuple(expression for expression, _ in columns),
        condition=next(iter(conditions)),
    )
    return United(with_keys(whole), tuple(found))


def _is_plain(calc: p.Calc) -> bool:
    parts = (*calc.projections, *(() if calc.condition is None else (calc.condition,)))
    return not reads_watermark(calc) and all(map(is_deterministic, parts))


def _moved(expression: Expr, places: Places) -> Expr:
    return move_inputs(expression, lambda column: places[column])
