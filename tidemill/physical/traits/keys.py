"""Unique keys and upsert keys of every physical node.

A unique key: no two rows of the final result agree on it. An upsert key: a unique key by which the
changes of a row also arrive in order, so it must survive every exchange on the way: an exchange by
columns that are not all in the key may reorder the key's changes. Both are sets of field indexes; the
empty key means at most one row. The work is one pass over the tree, with sets that stay small.
"""

from __future__ import annotations

from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.plan.expressions import Cast, Expr, InputRef
from tidemill.plan.nodes import JoinKind
from tidemill.types import logical as t

Key = frozenset[int]
Keys = frozenset[Key]
NO_KEYS: Keys = frozenset()

_MAX_KEYS = 64
_DIGITS: dict[type[t.LogicalType], int] = {t.TinyIntType: 1, t.SmallIntType: 2, t.IntType: 3, t.BigIntType: 4}


def keeps_within(keys: Keys, columns: tuple[int, ...]) -> Keys:
    """The keys whose changes stay in order in an exchange by ``exchange_columns``."""
    exchange_columns = frozenset(columns)
    return frozenset(k for k in keys if k >= exchange_columns)


def upsert_keys_in_key_group(node: p.PhysicalNode) -> Keys:
    """The upsert keys of ``node`` for an operator that works per key of the exchange ``node``."""
    return _before_exchange(node)


@singledispatch
def _before_exchange(node: p.PhysicalNode) -> Keys:
    return node.traits.upsert_keys


@_before_exchange.register
def _(node: p.Exchange) -> Keys:
    return node.input.traits.upsert_keys


def unique_keys(node: p.PhysicalNode) -> Keys:
    return _lift(node, upsert=False)


@singledispatch
def upsert_keys(node: p.PhysicalNode) -> Keys:
    """As ``unique_keys`` unless the node reorders."""
    return _lift(node, upsert=True)


def _lift(node: p.PhysicalNode, upsert: bool) -> Keys:
    return _derive(node, tuple(_of(i, upsert) for i in node.inputs))


def _of(node: p.PhysicalNode, upsert: bool) -> Keys:
    return node.traits.upsert_keys if upsert else node.traits.unique_keys


@upsert_keys.register
def _(node: p.Exchange) -> Keys:
    return keeps_within(node.input.traits.upsert_keys, node.keys)


@upsert_keys.register
def _(node: p.SortLimit) -> Keys:
    """The single partition may reorder the changes of its rows."""
    return NO_KEYS


@upsert_keys.register
def _(node: p.Rank) -> Keys:
    return _derive(node, (keeps_within(node.input.traits.upsert_keys, node.partition),))


@upsert_keys.register
def _(node: p.Join) -> Keys:
    by_left, by_right = node.partition_keys
    left = keeps_within(upsert_keys_in_key_group(node.left), by_left)
    right = keeps_within(upsert_keys_in_key_group(node.right), by_right)
    return _derive(node, (left, right))


@singledispatch
def _derive(node: p.PhysicalNode, inputs: tuple[Keys, ...]) -> Keys:
    """The keys of ``node`` from its inputs' keys; none by default."""
    return NO_KEYS


@_derive.register
def _(node: p.TableSourceScan, inputs: tuple[Keys, ...]) -> Keys:
    key = node.table.primary_key
    if not key or not set(key) <= set(node.columns):
        return NO_KEYS
    return frozenset({frozenset(node.columns.index(c) for c in key)})


@_derive.register(p.WatermarkAssigner)
@_derive.register(p.MiniBatchAssigner)
@_derive.register(p.Exchange)
@_derive.register(p.DropUpdateBefore)
@_derive.register(p.Sink)
@_derive.register(p.SortLimit)
@_derive.register(p.Sort)
@_derive.register(p.OverAggregate)
def _(node: p.PhysicalNode, inputs: tuple[Keys, ...]) -> Keys:
    return inputs[0]


@_derive.register
def _(node: p.ChangelogNormalize, inputs: tuple[Keys, ...]) -> Keys:
    return frozenset({frozenset(node.keys)})


@_derive.register
def _(node: p.GroupAggregate, inputs: tuple[Keys, ...]) -> Keys:
    return frozenset({frozenset(range(len(node.keys)))})


@_derive.register
def _(node: p.WindowAggregate, inputs: tuple[Keys, ...]) -> Keys:
    keys, first = range(len(node.keys)), len(node.keys) + len(node.calls)
    positions = {name: first + i for i, name in enumerate(node.properties)}
    telling = ("end", "time") if node.window.kind.cumulates else ("start", "end", "time")
    return frozenset(frozenset({*keys, positions[p]}) for p in telling if p in positions)


@_derive.register
def _(node: p.Calc, inputs: tuple[Keys, ...]) -> Keys:
    positions: dict[int, list[int]] = {}
    for position, projection in enumerate(node.projections):
        source = _carried(projection)
        if source is not None:
            positions.setdefault(source, []).append(position)
    return frozenset(k for key in inputs[0] for k in _placed(key, positions))


def _placed(key: Key, positions: dict[int, list[int]]) -> set[Key]:
    """All forms of ``key`` in output columns; a column may be projected more than once."""
    combinations: set[Key] = {frozenset()}
    for column in key:
        combinations = {
            k | {output_index} for k in combinations for output_index in positions.get(column, ())
        }
        if len(combinations) > _MAX_KEYS:
            return set(list(combinations)[:1])
    return combinations


def _carried(expr: Expr) -> int | None:
    """The input column whose distinct values ``expr`` keeps distinct."""
    if isinstance(expr, InputRef):
        return expr.index
    if isinstance(expr, Cast) and keeps_distinct(expr.operand.type, expr.type):
        return _carried(expr.operand)
    return None


def keeps_distinct(source: t.LogicalType, target: t.LogicalType) -> bool:
    """Whether a cast maps different values to different values, as a widening cast or a cast to a long
    text."""
    if source.with_nullable(True) == target.with_nullable(True):
        return True
    rank, wide = _DIGITS.get(type(source)), _DIGITS.get(type(target))
    if rank and wide:
        return rank <= wide
    for family in (t.CHARACTER_TYPES, t.BINARY_TYPES):
        if isinstance(source, family) and isinstance(target, family):
            return type(target) in (t.VarCharType, t.VarBinaryType) and source.length <= target.length
    return bool(rank) and isinstance(target, t.VarCharType) and target.length == t.MAX_LENGTH


@_derive.register
def _(node: p.Rank, inputs: tuple[Keys, ...]) -> Keys:
    number = node.function == "ROW_NUMBER"
    keys = set(inputs[0])
    if number and node.start == node.end == 1:
        keys.add(frozenset(node.partition))
    if number and node.with_rank:
        keys.add(frozenset({*node.partition, len(node.fields) - 1}))
    return frozenset(keys)


@_derive.register
def _(node: p.Join, inputs: tuple[Keys, ...]) -> Keys:
    left, right = inputs
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left
    shifted = frozenset(frozenset(i + len(node.left.fields) for i in k) for k in right)
    keys = {a | b for a in left for b in shifted}
    if _is_unique(node.right, node.right_keys) and node.kind in (JoinKind.INNER, JoinKind.LEFT):
        keys |= left
    if _is_unique(node.left, node.left_keys) and node.kind in (JoinKind.INNER, JoinKind.RIGHT):
        keys |= shifted
    return frozenset(keys)


@_derive.register
def _(node: p.LookupJoin, inputs: tuple[Keys, ...]) -> Keys:
    """The input's keys, if the table has at most one row per key."""
    return inputs[0] if node.finds_one else NO_KEYS


@_derive.register
def _(node: p.TemporalJoin, inputs: tuple[Keys, ...]) -> Keys:
    return inputs[0]


def _is_unique(node: p.PhysicalNode, columns: tuple[int, ...]) -> bool:
    return any(k <= frozenset(columns) for k in node.traits.unique_keys)
