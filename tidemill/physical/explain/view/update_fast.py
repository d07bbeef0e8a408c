"""The Top-N that Flink runs without retractions (UpdateFastStrategy), because updates only improve rows.

An update of such a changelog only raises, lowers or keeps a value (``directions``), and an upsert key
identifies the updated row.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from functools import singledispatch

from tidemill.operators.aggregates.declaration import Direction
from tidemill.operators.aggregates.registry import declared
from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjuncts, constant
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.physical.traits.keys import upsert_keys_in_key_group
from tidemill.physical.tree import map_up
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, SortKey
from tidemill.types.logical import INTEGER_TYPES, DecimalType


class Moves(Enum):
    NOT = "constant"
    UP = "increasing"
    DOWN = "decreasing"
    ANYHOW = "not monotonic"


def update_fast(root: p.PhysicalNode) -> p.PhysicalNode:
    """The plan, before changelog modes are assigned, with ``upsert_key`` set in each such Top-N."""
    return map_up(root, _keyed)


def _keyed(node: p.PhysicalNode) -> p.PhysicalNode:
    if not isinstance(node, p.Rank | p.SortLimit) or isinstance(node, p.WindowRank):
        return node
    if insert_only(node.input):
        return node
    partition = frozenset(node.partition if isinstance(node, p.Rank) else ())
    fitting = [key for key in upsert_keys_in_key_group(node.input) if key >= partition]
    if not fitting or not _improves_only(node.input, node.order):
        return node
    chosen = min(fitting, key=lambda key: (len(key), sorted(key)))
    return replace(node, upsert_key=tuple(sorted(chosen)))


def _improves_only(node: p.PhysicalNode, order: tuple[SortKey, ...]) -> bool:
    """Whether updates never make a row of ``node`` worse in ``order``."""
    moves = directions(node)
    return bool(order) and all(_fits(moves[k.index], k) for k in order)


def _fits(moves: Moves, key: SortKey) -> bool:
    return moves is Moves.NOT or moves is (Moves.DOWN if key.ascending else Moves.UP)


@singledispatch
def directions(node: p.PhysicalNode) -> tuple[Moves, ...]:
    """One entry per field."""
    return (Moves.ANYHOW,) * len(node.fields)


@directions.register(p.Exchange)
@directions.register(p.WatermarkAssigner)
@directions.register(p.MiniBatchAssigner)
@directions.register(p.DropUpdateBefore)
def _(node: p.Exchange | p.WatermarkAssigner) -> tuple[Moves, ...]:
    return directions(node.input)


@directions.register
def _(node: p.Calc) -> tuple[Moves, ...]:
    below = directions(node.input)
    return tuple(below[x.index] if isinstance(x, InputRef) else Moves.ANYHOW for x in node.projections)


@directions.register
def _(node: p.GroupAggregate) -> tuple[Moves, ...]:
    keys = (Moves.NOT,) * len(node.keys)
    if node.split or not insert_only(node.input):
        return (*keys, *(Moves.ANYHOW for _ in node.calls))
    return (*keys, *(_call(c, node.input) for c in node.calls))


def _call(call: AggregateCall, source: p.PhysicalNode) -> Moves:
    function = declared(call.function)
    if function is None:
        return Moves.ANYHOW
    if function.direction is not Direction.UP_IF_POSITIVE:
        return _MOVES[function.direction]
    exact = isinstance(call.type, (*INTEGER_TYPES, DecimalType))
    return Moves.UP if exact and _never_negative(source, call.args[0]) else Moves.ANYHOW


_MOVES = {Direction.UP: Moves.UP, Direction.DOWN: Moves.DOWN, Direction.ANY: Moves.ANYHOW}


@singledispatch
def _never_negative(node: p.PhysicalNode, column: int) -> bool:
    """Whether a filter below rejects negative values of ``column``."""
    return False


@_never_negative.register
def _(node: p.Exchange, column: int) -> bool:
    return _never_negative(node.input, column)


@_never_negative.register
def _(node: p.Calc, column: int) -> bool:
    source = node.projections[column]
    if not isinstance(source, InputRef):
        return False
    parts = conjuncts(node.condition) if node.condition is not None else []
    return any(_bounds(x, source.index) for x in parts) or _never_negative(node.input, source.index)


def _bounds(part: Expr, column: int) -> bool:
    if not isinstance(part, Call) or part.function not in (">", ">=") or len(part.args) != 2:
        return False
    left, limit = part.args[0], constant(part.args[1])
    at_column = isinstance(left, InputRef) and left.index == column
    return at_column and isinstance(limit, int | float) and limit >= 0
