"""Joins with a condition that no kernel can compute, rewritten to joins that kernels can compute.

An inner join by the keys gives the pairs, and Spark filters the pairs with any expression. That completes an
inner join. A row of an outer, semi or anti side is then looked up among the pairs by identity of all its
columns, so equal rows get the same answer. ``l LEFT JOIN r ON l.k = r.k AND l.s LIKE r.p``::

    Union
    |- pairs: Calc(l.s LIKE r.p)
    |         +- Join(INNER, l.k = r.k)
    +- Calc(l.*, NULL, ...)
       +- Join(ANTI, all columns of l)
          |- l
          +- Calc(l.*)
             +- pairs

Every part accepts any changelog, so the whole plan does. A non-deterministic expression over one side (RAND)
becomes a column of that side, because the pairs are read several times.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjunction, conjuncts, shifted
from tidemill.physical.finish import exchange, finish, references, select
from tidemill.physical.joins.intervals import without_bounds
from tidemill.physical.joins.pairwise import sides_of, unknown_to_kernels
from tidemill.plan.expressions import Expr, InputRef, Literal, UserCall
from tidemill.plan.nodes import JoinKind
from tidemill.plan.predicates import or_null
from tidemill.plan.rewrite import map_down
from tidemill.plan.rules.determinism import drawn_by, has_user_call, is_deterministic
from tidemill.types.logical import Field

_FILTERS = (JoinKind.SEMI, JoinKind.ANTI)
_PADDED = {JoinKind.LEFT: (0,), JoinKind.RIGHT: (1,), JoinKind.FULL: (0, 1)}


def is_joined_by_pairs(node: p.PhysicalNode) -> bool:
    """Whether ``node`` is an outer, semi or anti join with a condition that no kernel can compute."""
    if not isinstance(node, p.Join) or isinstance(node, p.TemporalJoin):
        return False
    return node.kind is not JoinKind.INNER and bool(unknown_parts(node))


def unknown_parts(join: p.Join) -> list[Expr]:
    """The parts of the condition that the kernel cannot compute, without the bounds of an interval join."""
    residual = without_bounds(join) if isinstance(join, p.IntervalJoin) else join.residual
    width = len(join.left.fields)
    parts = [] if residual is None else conjuncts(residual)
    return [part for part in parts if unknown_to_kernels(part, width) is not None]


def join_by_pairs(join: p.Join) -> p.PhysicalNode:
    """``join`` as kernels can run it; ``join`` itself if a kernel can."""
    if not unknown_parts(join):
        return join
    return filter_above_join(join) if join.kind is JoinKind.INNER else _Parts.of(join).whole()


def inner_join(run: p.PhysicalNode) -> p.Join:
    """The join that makes the pairs in the result of ``join_by_pairs``."""
    node = run
    while not (isinstance(node, p.Join) and node.kind is JoinKind.INNER):
        node = node.right if isinstance(node, p.Join) else node.inputs[0]
    return node


def filter_above_join(join: p.Join) -> p.Calc:
    """A filter with the conditions that the kernel cannot compute, above the inner join."""
    unknown = unknown_parts(join)
    parts = [] if join.residual is None else conjuncts(join.residual)
    known_parts = [part for part in parts if part not in unknown]
    below = finish(replace(join, residual=conjunction(known_parts)))
    computed, condition = _with_calls(below, conjunction(unknown))
    return p.Calc(
        fields=below.fields,
        input=computed,
        projections=references(below.fields),
        condition=condition,
    )


def _with_calls(node: p.PhysicalNode, condition: Expr | None) -> tuple[p.PhysicalNode, Expr | None]:
    """``node`` with a column per user function call in ``condition``, inner calls first, and the
    condition."""
    while condition is not None and has_user_call(condition):
        calls = innermost_calls(condition)
        width = len(node.fields)
        call_columns: dict[Expr, Expr] = {
            x: InputRef(type=x.type, index=width + i) for i, x in enumerate(calls)
        }
        fields = (*node.fields, *(Field(f"$u{width + i}", x.type) for i, x in enumerate(calls)))
        projections = (*references(node.fields), *calls)
        node = finish(p.Calc(fields=fields, input=node, projections=projections))
        condition = map_down(condition, call_columns.get)
    return node, condition


def innermost_calls(expr: Expr) -> tuple[UserCall, ...]:
    """The user function calls whose arguments contain no user function call."""
    calls = (x for x in expr.walk() if isinstance(x, UserCall) and not any(map(has_user_call, x.args)))
    return tuple(dict.fromkeys(calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """``sides``: the inputs of ``join`` below their exchanges, with columns for non-deterministic
    expressions. ``pairs``: the matching pairs of rows."""

    join: p.Join
    sides: tuple[p.PhysicalNode, p.PhysicalNode]
    pairs: p.PhysicalNode

    @classmethod
    def of(cls, join: p.Join) -> _Parts:
        inner = _without_null_rule(join)
        sides, inner = _with_draws(inner)
        fields = _named((*sides[0].fields, *sides[1].fields))
        pairs = finish(filter_above_join(replace(inner, kind=JoinKind.INNER, fields=fields, ttl_hints=())))
        return cls(join=join, sides=sides, pairs=pairs)

    def whole(self) -> p.PhysicalNode:
        join = self.join
        if join.kind in _FILTERS:
            return select(self._matched_rows(0, join.kind), tuple(range(len(join.fields))), join.fields)
        matched = finish(self._calc(self.pairs, self._shown_columns()))
        alone = (finish(self._unmatched(side)) for side in _PADDED[join.kind])
        return p.Union(fields=join.fields, branches=(matched, *alone))

    def _unmatched(self, side: int) -> p.Calc:
        """The rows of a side without a pair, with NULL for the other side's columns."""
        own = references(self.sides[side].fields)[: self._width(side)]
        start = 0 if side == 0 else self._width(0)
        projections: list[Expr] = [
            Literal(type=f.type.with_nullable(True), value=None) for f in self.join.fields
        ]
        projections[start : start + len(own)] = own
        return self._calc(self._matched_rows(side, JoinKind.ANTI), projections)

    def _shown_columns(self) -> list[Expr]:
        refs, right = references(self.pairs.fields), len(self.sides[0].fields)
        return [*refs[: self._width(0)], *refs[right : right + self._width(1)]]

    def _width(self, side: int) -> int:
        """The number of a side's columns in the join's row."""
        return len(self.join.inputs[side].fields)

    def _calc(self, below: p.PhysicalNode, projections: Sequence[Expr]) -> p.Calc:
        return p.Calc(fields=self.join.fields, input=below, projections=tuple(projections))

    def _matched_rows(self, side: int, kind: JoinKind) -> p.Join:
        """The rows of a side with a pair (SEMI) or without a pair (ANTI)."""
        join, own = self.join, self.sides[side]
        every = tuple(range(len(own.fields)))
        start = 0 if side == 0 else len(self.sides[0].fields)
        paired = select(self.pairs, tuple(start + i for i in every), own.fields)
        ttls = (join.left_ttl, join.right_ttl)
        decided = p.Join(
            fields=own.fields,
            left=exchange(own, every),
            right=exchange(paired, every),
            kind=kind,
            left_keys=every,
            right_keys=every,
            null_safe=(True,) * len(every),
            by_identity=(True,) * len(every),
            residual=None,
            overwrites=False,
            left_ttl=ttls[side],
            # No pair outlives either of its rows.
            right_ttl=min((ttl for ttl in ttls if ttl), default=0),
        )
        return finish(_of_window(join, side, decided) if isinstance(join, p.WindowJoin) else decided)


def _of_window(join: p.WindowJoin, side: int, decided: p.Join) -> p.WindowJoin:
    """A row and its pairs are in one window."""
    window = (join.left_window, join.right_window)[side]
    parts = {f.name: getattr(decided, f.name) for f in dataclasses.fields(decided)}
    window_join = p.WindowJoin(**parts, left_window=window, right_window=window, emit=join.emit)
    by = window_join.partition_keys
    left, right = (exchange(i.inputs[0], keys) for i, keys in zip(window_join.inputs, by, strict=True))
    return replace(window_join, left=left, right=right)


def _with_draws(join: p.Join) -> tuple[tuple[p.PhysicalNode, p.PhysicalNode], p.Join]:
    """The inputs with columns for non-deterministic expressions over one side, and the join over them."""
    inputs = (join.left.inputs[0], join.right.inputs[0])
    if join.residual is None or is_deterministic(join.residual):
        return inputs, join
    width = len(join.left.fields)
    draws: tuple[dict[Expr, None], dict[Expr, None]] = ({}, {})

    def collect(expr: Expr) -> Expr | None:
        sides = sides_of(expr, width)
        if is_deterministic(expr) or len(sides) > 1:
            return expr if is_deterministic(expr) else None
        draws[int(True in sides)][expr] = None
        return expr

    map_down(join.residual, collect)
    left = _widened(inputs[0], tuple(draws[0]))
    right = _widened(inputs[1], tuple(shifted(x, -width) for x in draws[1]))
    starts = (width, len(left.fields) + len(inputs[1].fields))
    drawn_columns: dict[Expr, Expr] = {
        x: InputRef(type=x.type, index=start + i)
        for start, draws_of_side in zip(starts, draws, strict=True)
        for i, x in enumerate(draws_of_side)
    }

    def place(expr: Expr) -> Expr | None:
        if expr not in drawn_columns and isinstance(expr, InputRef) and expr.index >= width:
            return InputRef(type=expr.type, index=expr.index + len(draws[0]))
        return drawn_columns.get(expr)

    residual = map_down(join.residual, place)
    if not is_deterministic(residual):
        raise NotSupportedError(
            f"{', '.join(drawn_by(residual)) or 'A function'} in a condition over both sides of an outer, "
            "semi or anti join is not supported in streaming mode: each pair would have a value of its own",
            hint="Draw the value in a column of one side, in a sub-query or a view below.",
        )
    wide = replace(
        join,
        left=exchange(left, join.partition_keys[0]),
        right=exchange(right, join.partition_keys[1]),
        residual=residual,
    )
    return (left, right), wide


def _widened(node: p.PhysicalNode, added: tuple[Expr, ...]) -> p.PhysicalNode:
    if not added:
        return node
    fields = (*node.fields, *(Field(f"$d{i}", x.type) for i, x in enumerate(added)))
    projections = (*references(node.fields), *added)
    return finish(p.Calc(fields=fields, input=node, projections=projections))


def _named(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(Field(f"$p{i}", f.type) for i, f in enumerate(fields))


def _without_null_rule(join: p.Join) -> p.Join:
    """NOT IN's keys as conditions: rows that may be equal are a pair."""
    aware, width = join.null_aware, len(join.left.fields)
    if not aware:
        return join
    left, right = references(join.left.fields), references(join.right.fields)
    parts = [
        or_null(left[a], shifted(right[b], width))
        for a, b in zip(join.left_keys[:aware], join.right_keys[:aware], strict=True)
    ]
    return replace(
        join,
        left_keys=join.left_keys[aware:],
        right_keys=join.right_keys[aware:],
        null_safe=join.null_safe[aware:],
        by_identity=join.by_identity[aware:],
        residual=conjunction([*parts, *([] if join.residual is None else [join.residual])]),
        null_aware=0,
    )
