"""Reorder inner joins that would be cross products in FROM's order, so that keys connect them.

    FROM part, supplier, lineitem WHERE p_key = l_part AND s_key = l_supplier

    before: (part CROSS JOIN supplier) JOIN lineitem
    after:  (part JOIN lineitem ON p_key = l_part) JOIN supplier ON s_key = l_supplier

The inputs keep FROM's order, but an input without an equality to the inputs before it waits until an
input brings one. If no equality connects an input, it is crossed last. If all joins of a tree have
keys, the tree stays as it was written. Sizes decide nothing: the plan of a streaming job must not
change with its data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count

from tidemill.functions.comparison import SAME
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef
from tidemill.plan.once import once_per_node
from tidemill.plan.predicates import conjunction, conjuncts
from tidemill.plan.rewrite import input_indexes, map_inputs, move_inputs, shift_inputs
from tidemill.plan.rules.construct import join
from tidemill.plan.rules.determinism import has_subquery, is_deterministic

_Edge = tuple[frozenset[int], frozenset[int]]
_EQUALITIES = frozenset(("=", "IS NOT DISTINCT FROM", SAME))


@dataclass(frozen=True, slots=True)
class _Tree:
    """``leaves`` in the order of FROM; ``parts``: all conjuncts, over the leaves' fields in that order."""

    leaves: tuple[n.LogicalNode, ...]
    parts: tuple[Expr, ...]

    @property
    def starts(self) -> list[int]:
        """The index of each leaf's first field, then the number of all fields."""
        starts = [0]
        for leaf in self.leaves:
            starts.append(starts[-1] + len(leaf.fields))
        return starts

    def owners(self, expr: Expr) -> frozenset[int]:
        """The leaves whose fields ``expr`` reads."""
        starts = self.starts
        read = input_indexes(expr)
        return frozenset(
            i for i in range(len(self.leaves)) if any(starts[i] <= x < starts[i + 1] for x in read)
        )


def connect_joins(root: n.LogicalNode) -> n.LogicalNode | None:
    """Works on the whole plan from the root, because a tree of joins must be seen as a whole."""
    changed = _connected(root)
    return None if changed is root else changed


@once_per_node
def _connected(node: n.LogicalNode) -> n.LogicalNode:
    if _crosses(node):
        tree = _flat(node)
        groups = _groups(tree)
        if _shape(node, count()) != _nested([_nested(group) for group in groups]):
            leaves = tuple(_connected(leaf) for leaf in tree.leaves)
            return _joined(_Tree(leaves, tree.parts), groups, node)
    return map_inputs(node, _connected)


def _shape(node: n.LogicalNode, number: Iterator[int]) -> object:
    """The join tree as nested pairs of leaf numbers."""
    if not _is_plain(node):
        return next(number)
    left, right = (_shape(side, number) for side in node.inputs)
    return _pair(left, right)


def _nested(parts: Sequence[object]) -> object:
    return reduce(_pair, parts)


def _pair(left: object, right: object) -> object:
    return (left, right)


def _is_plain(node: n.LogicalNode) -> bool:
    """An inner join whose sides may be reordered: without hints and non-deterministic expressions."""
    return (
        isinstance(node, n.Join)
        and node.kind is n.JoinKind.INNER
        and not node.hints
        and is_deterministic(node.condition)
        and not has_subquery(node.condition)
    )


def _crosses(node: n.LogicalNode) -> bool:
    """Whether a join of the tree has no key."""
    if not _is_plain(node):
        return False
    assert isinstance(node, n.Join)
    width = len(node.left.fields)
    sides = (frozenset(range(width)), frozenset(range(width, len(node.fields))))
    keyed = any(
        all(any(input_indexes(x) and input_indexes(x) <= side for x in ends) for side in sides)
        for ends in _equalities(conjuncts(node.condition))
    )
    return not keyed or _crosses(node.left) or _crosses(node.right)


def _equalities(parts: Sequence[Expr]) -> Iterator[tuple[Expr, Expr]]:
    for part in parts:
        if isinstance(part, Call) and part.function in _EQUALITIES:
            left, right = part.args
            yield left, right


def _flat(node: n.LogicalNode) -> _Tree:
    if not _is_plain(node):
        return _Tree((node,), ())
    assert isinstance(node, n.Join)
    left, right = _flat(node.left), _flat(node.right)
    moved = (shift_inputs(part, left.starts[-1]) for part in right.parts)
    return _Tree((*left.leaves, *right.leaves), (*left.parts, *moved, *conjuncts(node.condition)))


def _groups(tree: _Tree) -> list[list[int]]:
    """Groups of leaves that keys connect. A group is in join order: next is the first connected leaf of
    FROM."""
    edges = [(tree.owners(a), tree.owners(b)) for a, b in _equalities(tree.parts)]
    waiting = list(range(len(tree.leaves)))
    groups: list[list[int]] = []
    while waiting:
        group = [waiting.pop(0)]
        while (leaf := _next(edges, frozenset(group), waiting)) is not None:
            waiting.remove(leaf)
            group.append(leaf)
        groups.append(group)
    return groups


def _next(edges: Sequence[_Edge], placed: frozenset[int], waiting: Sequence[int]) -> int | None:
    for leaf in waiting:
        own = frozenset((leaf,))
        if any((a == own and b and b <= placed) or (b == own and a and a <= placed) for a, b in edges):
            return leaf
    return None


@dataclass(frozen=True, slots=True)
class _Part:
    """The leaves joined so far. ``columns``: for each field of ``plan`` its index in the tree's row."""

    plan: n.LogicalNode
    columns: tuple[int, ...]

    def joined(self, other: _Part, waiting: list[Expr]) -> _Part:
        """Joins ``other`` under the conditions of ``waiting`` that its columns complete, and removes them
        there."""
        columns = (*self.columns, *other.columns)
        index_in_plan = {column: i for i, column in enumerate(columns)}
        ready = [part for part in waiting if input_indexes(part) <= index_in_plan.keys()]
        waiting[:] = [part for part in waiting if part not in ready]
        condition = conjunction(move_inputs(part, index_in_plan.__getitem__) for part in ready)
        return _Part(join(self.plan, other.plan, n.JoinKind.INNER, condition), columns)


def _joined(tree: _Tree, groups: list[list[int]], node: n.LogicalNode) -> n.Project:
    """A left-deep tree per group, and a cross join of the groups, with the fields of ``node``."""
    starts, waiting = tree.starts, list(tree.parts)
    parts = [_Part(x, tuple(range(a, b))) for x, a, b in zip(tree.leaves, starts, starts[1:], strict=False)]
    connected = [reduce(lambda a, b: a.joined(b, waiting), (parts[i] for i in group)) for group in groups]
    whole = reduce(lambda a, b: a.joined(b, waiting), connected)
    index_in_plan = {column: i for i, column in enumerate(whole.columns)}
    columns = tuple(InputRef(type=f.type, index=index_in_plan[i]) for i, f in enumerate(node.fields))
    return n.Project(fields=node.fields, input=whole.plan, expressions=columns)
