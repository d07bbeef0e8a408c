"""How many bytes a plan reads, before any is read: at most, and as a guess of what its exchanges carry.

The guess only says how wide exchanges begin. Too many partitions cost each task a file for each of them; with
too few a task has more than it should, and spills. So a guess takes little off, and only where Spark skips
most of a table's partitions: a condition over nothing but columns it is partitioned by, or a join of such a
column with rows that a condition chose, which prunes partitions while the query runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidemill.physical.batch.joins import key_columns
from tidemill.physical.batch.nodes import (
    Aggregate,
    BatchNode,
    Calc,
    DataFrameScan,
    Join,
    OverAggregate,
    Rank,
    Sort,
    TableSourceScan,
    Union,
    all_of,
)
from tidemill.plan import nodes as n
from tidemill.plan.expressions import InputRef

_PRUNED = 8
"""Times as much is taken for read where partitions are skipped as is kept: some month of a year, or a year of
five, of which nobody knows which before."""

Read = TableSourceScan | DataFrameScan
Columns = frozenset[int]
_NONE: Columns = frozenset()


def volume(root: BatchNode) -> int | None:
    """About how many bytes the tables have that are read; None where that is not known of one."""
    return _sum(node.most for node in all_of(root) if isinstance(node, Read))


def exchanged(root: BatchNode, prunes: bool) -> int | None:
    """About how many bytes of its tables a plan has to do with; None where that is not known of one.
    ``prunes``: partitions are skipped while the query runs, too."""
    order = _inputs_first(root)
    bound = dict.fromkeys(map(id, order), _NONE) if not prunes else _bound(order)
    return _sum(_guessed(node, bound[id(node)]) for node in order if isinstance(node, Read))


def _sum(sizes: Iterable[int | None]) -> int | None:
    known = list(sizes)
    return None if None in known else sum(size for size in known if size is not None)


def _inputs_first(root: BatchNode) -> list[BatchNode]:
    """The nodes of a plan, each once."""
    found, seen, waiting = list[BatchNode](), set[int](), [(root, False)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            found.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            waiting.append((node, True))
            waiting += ((child, False) for child in node.inputs)
    return found


def _bound(order: Sequence[BatchNode]) -> dict[int, Columns]:
    """By the id of a node the columns whose values all its readers bind to what a condition chose."""
    chosen = set[int]()
    for node in order:
        if _chooses(node) or any(id(child) in chosen for child in node.inputs):
            chosen.add(id(node))
    bound = {id(order[-1]): _NONE}
    for node in reversed(order):
        for child, columns in zip(node.inputs, _bound_below(node, bound[id(node)], chosen), strict=True):
            bound[id(child)] = columns & bound.get(id(child), columns)
    return bound


def _chooses(node: BatchNode) -> bool:
    if isinstance(node, TableSourceScan):
        return bool(node.filters)
    return isinstance(node, Calc) and node.condition is not None


def _bound_below(node: BatchNode, columns: Columns, chosen: set[int]) -> Sequence[Columns]:
    """Of each input the columns that are bound where ``columns`` of the node are, and those that the node
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


def _guessed(scan: Read, columns: Columns) -> int | None:
    size = scan.most
    if size is None or isinstance(scan, DataFrameScan):
        return size
    folders = set(scan.table.partitioned_by)
    by_join = any(scan.columns[c] in folders for c in columns)
    named = ({scan.columns[x.index] for x in f.walk() if isinstance(x, InputRef)} for f in scan.filters)
    by_name = any(names and names <= folders for names in named)
    return size // _PRUNED if by_join or by_name else size
