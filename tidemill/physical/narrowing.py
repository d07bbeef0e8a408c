"""Leaving out columns below operators that would keep them in state for nothing.

The logical rules prune what no node reads; columns that only a filter or a watermark below a join or a
Top-N reads are still there, and are dropped here by a Calc right below the operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidemill.physical import nodes as p
from tidemill.physical.conditions import columns
from tidemill.physical.finish import select
from tidemill.physical.ranks import TopN
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef, OverCall
from tidemill.plan.rewrite import map_expr


@dataclass(frozen=True, slots=True)
class NarrowJoin:
    """``places``: where the wide join's columns stand in the narrow one."""

    join: n.Join | n.TemporalJoin
    places: dict[int, int]

    def moved(self, expressions: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(_moved(x, self.places) for x in expressions)


def narrow_join(join: n.Join | n.TemporalJoin, expressions: Iterable[Expr]) -> NarrowJoin | None:
    """``join`` with the columns that ``expressions`` and the join itself read; None where those are all."""
    width = len(join.left.fields)
    both = (*join.left.fields, *join.right.fields)
    shown = {i for x in expressions for i in columns(x)}
    needed = sorted(shown | columns(join.condition) | _times(join))
    left = [i for i in needed if i < width] or [0]
    right = [i for i in needed if i >= width] or [width]
    if len(left) + len(right) == len(both):
        return None
    place = {old: new for new, old in enumerate((*left, *right))}
    kept = [i for i in (*left, *right) if i < len(join.fields)]
    narrow = replace(
        join,
        fields=tuple(join.fields[i] for i in kept),
        left=_only(join.left, left),
        right=_only(join.right, [i - width for i in right]),
        condition=_moved(join.condition, place),
    )
    if isinstance(narrow, n.TemporalJoin):
        version = None if narrow.version is None else place[width + narrow.version] - len(left)
        narrow = replace(narrow, time=place[narrow.time], version=version)
    return NarrowJoin(narrow, place)


def _times(join: n.Join | n.TemporalJoin) -> set[int]:
    """The columns by which a temporal join finds versions."""
    if not isinstance(join, n.TemporalJoin):
        return set()
    return {join.time} if join.version is None else {join.time, len(join.left.fields) + join.version}


def _only(node: n.LogicalNode, kept: list[int]) -> n.LogicalNode:
    if len(kept) == len(node.fields):
        return node
    fields = tuple(node.fields[i] for i in kept)
    refs = tuple(InputRef(type=node.fields[i].type, index=i) for i in kept)
    return n.Project(fields=fields, input=node, expressions=refs)


@dataclass(frozen=True, slots=True)
class NarrowRank:
    """A Top-N over fewer columns, its input, and ``places`` of the Over's old fields in the new ones."""

    top: TopN
    child: p.PhysicalNode
    places: dict[int, int]

    def moved(self, expressions: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(_moved(x, self.places) for x in expressions)


def narrow_rank(found: TopN, child: p.PhysicalNode, used: frozenset[int]) -> NarrowRank:
    """``found`` with the columns ``used`` above or by itself, and those of the input's upsert keys."""
    call, width = found.call, len(child.fields)
    needed = used | {*call.partition, *(k.index for k in call.order)}
    needed |= {i for x in found.rest for i in columns(x)}
    needed |= {i for key in child.traits.upsert_keys for i in key}
    kept = tuple(sorted(i for i in needed if i < width)) or (0,)
    places = {old: new for new, old in enumerate(kept)} | {width: len(kept)}
    fields = tuple(found.over.fields[i] for i in kept)
    source = select(child, kept, fields)
    over = replace(
        found.over,
        fields=(*fields, found.over.fields[width]),
        input=_only(found.over.input, list(kept)),
        calls=(_moved_call(call, places),),
    )
    rest = tuple(_moved(x, places) for x in found.rest)
    return NarrowRank(replace(found, over=over, rest=rest), source, places)


def _moved_call(call: OverCall, places: dict[int, int]) -> OverCall:
    return replace(
        call,
        partition=tuple(places[i] for i in call.partition),
        order=tuple(replace(k, index=places[k.index]) for k in call.order),
    )


def _moved(expr: Expr, places: dict[int, int]) -> Expr:
    def move(x: Expr) -> Expr:
        return InputRef(type=x.type, index=places[x.index]) if isinstance(x, InputRef) else x

    return map_expr(expr, move)
