"""Unique keys and upsert keys of every physical node.

A unique key: no two rows of the final result agree on it. An upsert key: a unique key by which the
changes of a row also arrive in order, so it must survive every exchange on the way: an exchange by
columns that are not all in the key may reorder the key's changes. Both are sets of field indexes; the
empty key means at most one row. The work is one pass over the tree, with sets that stay small.
"""

from __future__ import annotations

from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.types import logical as t

Key = frozenset[int]
Keys = frozenset[Key]
NO_KEYS: Keys = frozenset()

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
    return derived_keys(node, tuple(i.traits.unique_keys for i in node.inputs))


@singledispatch
def upsert_keys(node: p.PhysicalNode) -> Keys:
    """The upsert keys of ``node``: by default as ``unique_keys``, unless the node reorders rows."""
    return derived_keys(node, tuple(i.traits.upsert_keys for i in node.inputs))


@singledispatch
def derived_keys(node: p.PhysicalNode, inputs: tuple[Keys, ...]) -> Keys:
    """The keys of ``node`` from its inputs' keys, either unique or upsert keys; none by default."""
    return NO_KEYS


def keys_of_input(node: p.PhysicalNode, inputs: tuple[Keys, ...]) -> Keys:
    """The keys of a node that passes on its input's columns."""
    return inputs[0]


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
