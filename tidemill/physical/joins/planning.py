"""Joins: equalities become keys of the exchanges, other conditions a residual condition."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, replace

from tidemill.config.option import Configuration
from tidemill.config.sink_options import STATE_TTL
from tidemill.functions.comparison import SAME
from tidemill.physical import nodes as p
from tidemill.physical.conditions import columns, conjunction, conjuncts, shifted
from tidemill.physical.emit import emit
from tidemill.physical.finish import exchange, finish, references, select
from tidemill.physical.joins.intervals import time_bounds
from tidemill.physical.windows import attached_window
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef
from tidemill.plan.rewrite import map_expr
from tidemill.plan.windows import JoinedWindows, joined_windows
from tidemill.types.logical import Field

_EQUALITIES = {"=": False, "IS NOT DISTINCT FROM": True, SAME: True}
_SINGLE_SIDED = (n.JoinKind.SEMI, n.JoinKind.ANTI)


@dataclass(frozen=True, slots=True)
class EquiKey:
    """``left = right``, each over its own side's fields."""

    left: Expr
    right: Expr
    null_safe: bool
    by_identity: bool


@dataclass(slots=True)
class _Side:
    """One input to which key expressions are added as columns."""

    node: p.PhysicalNode
    added: list[Expr] = field(default_factory=list)

    def column_of(self, expr: Expr) -> int:
        if isinstance(expr, InputRef):
            return expr.index
        if expr not in self.added:
            self.added.append(expr)
        return len(self.node.fields) + self.added.index(expr)

    def ready(self) -> p.PhysicalNode:
        if not self.added:
            return self.node
        used_names = {f.name for f in self.node.fields}
        first = len(self.node.fields)
        names = [_unused_name(f"$f{first + i}", used_names) for i in range(len(self.added))]
        extra = tuple(Field(name, x.type) for name, x in zip(names, self.added, strict=True))
        projections = (*references(self.node.fields), *self.added)
        fields = (*self.node.fields, *extra)
        return finish(p.Calc(fields=fields, input=self.node, projections=projections))


def _unused_name(name: str, used_names: set[str]) -> str:
    while name in used_names:
        name += "_0"
    used_names.add(name)
    return name


def split_condition(condition: Expr, width: int, *, timed: bool = False) -> tuple[list[EquiKey], list[Expr]]:
    """Equi keys and the residual conditions. ``width``: the number of left fields. ``timed``: for an interval
    join, in which an equality of times is a bound and no key."""
    keys: list[EquiKey] = []
    residual: list[Expr] = []
    for part in conjuncts(condition):
        key = _equi_key(part, width)
        if key is None or (timed and key.left.type.time_attribute):
            residual.append(part)
        else:
            keys.append(key)
    return keys, residual


def _equi_key(part: Expr, width: int) -> EquiKey | None:
    if not isinstance(part, Call) or part.function not in _EQUALITIES:
        return None
    a, b = part.args
    if _is_right(a, width) and _is_left(b, width):
        a, b = b, a
    if not (_is_left(a, width) and _is_right(b, width)):
        return None
    return EquiKey(a, shifted(b, -width), _EQUALITIES[part.function], part.function == SAME)


def _is_left(expr: Expr, width: int) -> bool:
    used = columns(expr)
    return bool(used) and max(used) < width


def _is_right(expr: Expr, width: int) -> bool:
    used = columns(expr)
    return bool(used) and min(used) >= width


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedSides:
    """Both inputs of a join with every key as a column, and the residual condition over both."""

    left: p.PhysicalNode
    right: p.PhysicalNode
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    residual: Expr | None


def keyed_sides(
    keys: list[EquiKey], residual: list[Expr], left: p.PhysicalNode, right: p.PhysicalNode
) -> KeyedSides:
    sides = (_Side(left), _Side(right))
    left_keys = tuple(sides[0].column_of(k.left) for k in keys)
    right_keys = tuple(sides[1].column_of(k.right) for k in keys)
    wide = sides[0].ready()
    return KeyedSides(
        left=wide,
        right=sides[1].ready(),
        left_keys=left_keys,
        right_keys=right_keys,
        residual=_residual(residual, left, wide),
    )


def plan_join(
    node: n.Join,
    left: p.PhysicalNode,
    right: p.PhysicalNode,
    *,
    state_ttl: int,
    config: Configuration,
) -> p.PhysicalNode:
    bounds = time_bounds(node.kind, conjuncts(node.condition), left, right)
    keys, residual = split_condition(node.condition, len(left.fields), timed=bounds is not None)
    aware = 0
    if node.null_aware:
        keys.sort(key=lambda k: not _may_be_null(k))
        aware = sum(map(_may_be_null, keys))
    sides = keyed_sides(keys, residual, left, right)
    by = (sides.left_keys[aware:], sides.right_keys[aware:])
    inputs = (exchange(sides.left, by[0]), exchange(sides.right, by[1]))
    hints = dict(node.hints)
    join = p.Join(
        fields=join_fields(node, sides),
        left=inputs[0],
        right=inputs[1],
        kind=node.kind,
        left_keys=sides.left_keys,
        right_keys=sides.right_keys,
        null_safe=tuple(k.null_safe for k in keys),
        by_identity=tuple(k.by_identity for k in keys),
        residual=sides.residual,
        null_aware=aware,
        left_ttl=_ttl(hints.get("LEFT"), state_ttl),
        right_ttl=_ttl(hints.get("RIGHT"), state_ttl),
        ttl_hints=node.hints,
    )
    windows = joined_windows(node)
    if windows is not None:
        planned: p.PhysicalNode = _window_join(join, windows, (sides.left, sides.right), config)
    else:
        planned = finish(join if bounds is None else _bounded(join, bounds))
    return select(planned, output_columns(node, sides), node.fields)


def _bounded(join: p.Join, bounds: p.TimeBounds) -> p.IntervalJoin:
    parts = {f.name: getattr(join, f.name) for f in dataclasses.fields(join)}
    return p.IntervalJoin(**parts, bounds=bounds)


def _window_join(
    join: p.Join,
    windows: JoinedWindows,
    sides: tuple[p.PhysicalNode, p.PhysicalNode],
    config: Configuration,
) -> p.WindowJoin:
    same = [k for k in zip(join.left_keys, join.right_keys, strict=True) if windows.are(*k)]
    left = attached_window(windows.left, [a for a, _ in same])
    right = attached_window(windows.right, [b for _, b in same])
    parts = {f.name: getattr(join, f.name) for f in dataclasses.fields(join)}
    emitted = emit(config, rowtime=not left.window.proctime)
    planned = p.WindowJoin(**parts, left_window=left, right_window=right, emit=emitted)
    by_left, by_right = planned.partition_keys
    return finish(replace(planned, left=exchange(sides[0], by_left), right=exchange(sides[1], by_right)))


def _may_be_null(key: EquiKey) -> bool:
    return key.left.type.nullable or key.right.type.nullable


def _ttl(hint: str | None, default: int) -> int:
    return default if hint is None else STATE_TTL.parse(hint).milliseconds


def join_fields(node: n.Join | n.TemporalJoin, sides: KeyedSides) -> tuple[Field, ...]:
    """Fields with unique names: a right column with a left column's name gets a number, as in the binder."""
    if node.kind in _SINGLE_SIDED:
        return sides.left.fields
    width = len(node.left.fields)
    named = (
        *node.fields[:width],
        *sides.left.fields[width:],
        *node.fields[width:],
        *sides.right.fields[len(node.right.fields) :],
    )
    used_names: set[str] = set()
    return tuple(Field(_unused_name(f.name, used_names), f.type) for f in named)


def output_columns(node: n.Join | n.TemporalJoin, sides: KeyedSides) -> tuple[int, ...]:
    """The indexes of the join's columns, without the computed keys."""
    own = tuple(range(len(node.left.fields)))
    if node.kind in _SINGLE_SIDED:
        return own
    return (*own, *(len(sides.left.fields) + i for i in range(len(node.right.fields))))


def _residual(residual: list[Expr], left: p.PhysicalNode, wide_left: p.PhysicalNode) -> Expr | None:
    """The other conditions, over the widened sides."""
    width, by = len(left.fields), len(wide_left.fields) - len(left.fields)

    def move(x: Expr) -> Expr:
        if isinstance(x, InputRef) and x.index >= width:
            return InputRef(type=x.type, index=x.index + by)
        return x

    return conjunction(map_expr(x, move) for x in residual)
