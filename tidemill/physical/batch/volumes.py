"""Estimates the bytes that a plan reads at most, and the bytes that its exchanges carry.

The second estimate only sets the initial width of exchanges. With too many partitions each task writes a file
per partition; with too few a task gets too many rows and spills. So the estimate is cautious. It is lower
than the table's size only if Spark skips most of a table's partitions: by a condition on partition columns
alone, or by a join of a partition column with filtered rows, which prunes partitions at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidemill.physical.batch.joins import key_columns
from tidemill.physical.batch.nodes import Aggregate, Join, OverAggregate, Rank, TableSourceScan
from tidemill.physical.nodes import Calc, DataFrameScan, PhysicalNode, Sort, Union
from tidemill.physical.tree import walk
from tidemill.plan import nodes as n
from tidemill.plan.expressions import InputRef

_PRUNED = 8
"""The assumed share of a table that is read if partitions are skipped is 1/8: between a month of a year and a
year of five."""

Read = TableSourceScan | DataFrameScan
Columns = frozenset[int]
_NONE: Columns = frozenset()


def read_bytes(root: PhysicalNode) -> int | None:
    """About how many bytes the tables have; None if the size of a table is not known."""
    return _sum(node.most for node in walk(root) if isinstance(node, Read))


def exchanged_bytes(root: PhysicalNode, prunes: bool) -> int | None:
    """About how many bytes of its tables a plan processes; None if the size of a table is not known.
    ``prunes``: whether Spark also skips partitions at run time."""
    order = _inputs_first(root)
    bound = dict.fromkeys(map(id, order), _NONE) if not prunes else _bound(order)
    return _sum(_estimated_read(node, bound[id(node)]) for node in order if isinstance(node, Read))


def _sum(sizes: Iterable[int | None]) -> int | None:
    all_sizes = list(sizes)
    return None if None in all_sizes else sum(size for size in all_sizes if size is not None)


def _inputs_first(root: PhysicalNode) -> list[PhysicalNode]:
    """The nodes of a plan, each once."""
    ordered, visited, stack = list[PhysicalNode](), set[int](), [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            ordered.append(node)
        elif id(node) not in visited:
            visited.add(id(node))
            stack.append((node, True))
            stack += ((child, False) for child in node.inputs)
    return ordered


def _bound(order: Sequence[PhysicalNode]) -> dict[int, Columns]:
    """By node id: the columns that all readers of the node join with filtered rows."""
    chosen = set[int]()
    for node in order:
        if _chooses(node) or any(id(child) in chosen for child in node.inputs):
            chosen.add(id(node))
    bound = {id(order[-1]): _NONE}
    for node in reversed(order):
        for child, columns in zip(node.inputs, _bound_below(node, bound[id(node)], chosen), strict=True):
            bound[id(child)] = columns & bound.get(id(child), columns)
    return bound


def _chooses(node: PhysicalNode) -> bool:
    if isinstance(node, TableSourceScan):
        return bool(node.filters)
    return isinstance(node, Calc) and node.condition is not None


def _bound_below(node: PhysicalNode, columns: Columns, chosen: set[int]) -> Sequence[Columns]:
    """For each input the columns that are bound if ``columns`` of the node are, and the columns that the node
    itself binds."""
    match node:
        case Sort():
            return (columns,)
        case OverAggregate() | Rank():
            return (frozenset(c for c in columns if c < len(node.input.fields)),)
        case Aggregate():
            return (frozenset(node.keys[c] for c in columns if c < len(node.keys)),)
        case Calc():
            read = (node.projections[c] for c in columns)
            return (frozenset(x.index for x in read if isinstance(x, InputRef)),)
        case Union():
            return [columns] * len(node.inputs)
        case Join():
            return _bound_by_join(node, columns, chosen)
    return [_NONE] * len(node.inputs)


def _bound_by_join(node: Join, columns: Columns, chosen: set[int]) -> tuple[Columns, Columns]:
    left, right = (id(child) in chosen for child in node.inputs)
    width = len(node.left.fields)
    pairs = list(zip(*key_columns(node.condition, node.left), strict=True))
    first = frozenset(c for c in columns if c < width)
    second = frozenset(c - width for c in columns if c >= width)
    if node.kind not in (n.JoinKind.INNER, n.JoinKind.SEMI):
        return (first, _NONE) if node.kind in (n.JoinKind.LEFT, n.JoinKind.ANTI) else (_NONE, _NONE)
    first, second = (
        first | {a for a, b in pairs if right or b in second},
        second | {b for a, b in pairs if left or a in first},
    )
    return first, second


def _estimated_read(scan: Read, columns: Columns) -> int | None:
    size = scan.most
    if size is None or isinstance(scan, DataFrameScan):
        return size
    folders = set(scan.table.partitioned_by)
    by_join = any(scan.columns[c] in folders for c in columns)
    named = ({scan.columns[x.index] for x in f.walk() if isinstance(x, InputRef)} for f in scan.filters)
    by_name = any(names and names <= folders for names in named)
    return size // _PRUNED if by_join or by_name else size
