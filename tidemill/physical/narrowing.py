"""Drops columns below operators that would keep them in state needlessly.

The logical rules prune columns that no node reads. A column that only a filter or a watermark below a join or
a Top-N reads is still there. This module drops it with a Calc directly below the operator.
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
    """``new_index``: for each column of the wide join its index in the narrow join."""

    join: n.Join | n.TemporalJoin
    new_index: dict[int, int]

    def moved(self, expressions: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(_moved(x, self.new_index) for x in expressions)


def narrow_join(join: n.Join | n.TemporalJoin, expressions: Iterable[Expr]) -> NarrowJoin | None:
    """``join`` with the columns that ``expressions`` and the join read; None if these are all columns."""
    width = len(join.left.fields)
    both = (*join.left.fields, *join.right.fields)
    read = {i for x in expressions for i in columns(x)}
    needed = sorted(read | columns(join.condition) | _times(join))
    left = [i for i in needed if i < width] or [0]
    right = [i for i in needed if i >= width] or [width]
    if len(left) + len(right) == len(both):
        return None
    new_index = {old: new for new, old in enumerate((*left, *right))}
    kept_columns = [i for i in (*left, *right) if i < len(join.fields)]
    narrow = replace(
        join,
        fields=tuple(join.fields[i] for i in kept_columns),
        left=_only(join.left, left),
        right=_only(join.right, [i - width for i in right]),
        condition=_moved(join.condition, new_index),
    )
    if isinstance(narrow, n.TemporalJoin):
        version = None if narrow.version is None else new_index[width + narrow.version] - len(left)
        narrow = replace(narrow, time=new_index[narrow.time], version=version)
    return NarrowJoin(narrow, new_index)


def _times(join: n.Join | n.TemporalJoin) -> set[int]:
    """The columns by which a temporal join finds versions."""
    if not isinstance(join, n.TemporalJoin):
        return set()
    return {join.time} if join.version is None else {join.time, len(join.left.fields) + join.version}


def _only(node: n.LogicalNode, kept_columns: list[int]) -> n.LogicalNode:
    if len(kept_columns) == len(node.fields):
        return node
    fields = tuple(node.fields[i] for i in kept_columns)
    refs = tuple(InputRef(type=node.fields[i].type, index=i) for i in kept_columns)
    return n.Project(fields=fields, input=node, expressions=refs)


@dataclass(frozen=True, slots=True)
class NarrowRank:
    """A Top-N over fewer columns, its input, and the ``new_index`` of each of the Over's old fields."""

    top: TopN
    child: p.PhysicalNode
    new_index: dict[int, int]

    def moved(self, expressions: Iterable[Expr]) -> tuple[Expr, ...]:
        return tuple(_moved(x, self.new_index) for x in expressions)


def narrow_rank(top: TopN, child: p.PhysicalNode, used: frozenset[int]) -> NarrowRank:
    """``top`` with the columns that it reads, that are ``used`` above, or that are in the input's upsert
    keys."""
    call, width = top.call, len(child.fields)
    needed = used | {*call.partition, *(k.index for k in call.order)}
    needed |= {i for x in top.other_conditions for i in columns(x)}
    needed |= {i for key in child.traits.upsert_keys for i in key}
    kept_columns = tuple(sorted(i for i in needed if i < width)) or (0,)
    new_index = {old: new for new, old in enumerate(kept_columns)} | {width: len(kept_columns)}
    fields = tuple(top.over.fields[i] for i in kept_columns)
    source = select(child, kept_columns, fields)
    over = replace(
        top.over,
        fields=(*fields, top.over.fields[width]),
        input=_only(top.over.input, list(kept_columns)),
        calls=(_moved_call(call, new_index),),
    )
    other_conditions = tuple(_moved(x, new_index) for x in top.other_conditions)
    return NarrowRank(replace(top, over=over, other_conditions=other_conditions), source, new_index)


def _moved_call(call: OverCall, new_index: dict[int, int]) -> OverCall:
    return replace(
        call,
        partition=tuple(new_index[i] for i in call.partition),
        order=tuple(replace(k, index=new_index[k.index]) for k in call.order),
    )


def _moved(expr: Expr, new_index: dict[int, int]) -> Expr:
    def move(x: Expr) -> Expr:
        return InputRef(type=x.type, index=new_index[x.index]) if isinstance(x, InputRef) else x

    return map_expr(expr, move)
