"""What values mean in Spark SQL: the decisions of ``tidemill.types.values`` as text.

Spark holds 0.0 and -0.0 for one wherever it groups or sorts, and NaN equal to itself. Where identity
matters a FLOAT is therefore written as a pair of its value and whether it is anything but -0.0 (``marked``):
such pairs are equal where the values are one, and stand in their order. Types without floats cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from tidemill.functions.literals import string_literal
from tidemill.functions.sharing import share
from tidemill.functions.spark_text import bind
from tidemill.types import logical as t
from tidemill.types.physical import quote, spark_type
from tidemill.types.values import has_floats, has_maps, has_two_zeros, parts


def marked(sql: str, kind: t.LogicalType) -> str:
    """What Spark groups and sorts by instead of ``sql``."""
    if not has_floats(kind):
        return sql
    if isinstance(kind, t.APPROXIMATE_TYPES):
        return share(sql, lambda x: _unless_null(x, f"named_struct('v', {x}, 'p', {is_positive(x)})"))
    return _mapped(sql, kind, marked)


def unmarked(sql: str, kind: t.LogicalType) -> str:
    """The value that was ``marked``."""
    if not has_floats(kind):
        return sql
    if isinstance(kind, t.APPROXIMATE_TYPES):
        zero = f"CAST('-0.0' AS {spark_type(kind)})"
        return share(sql, lambda x: _unless_null(x, f"IF(({x}).p, ({x}).v, {zero})"))
    return _mapped(sql, kind, unmarked)


def is_positive(sql: str) -> str:
    """FALSE for -0.0 alone; looks at the text only of zeros."""
    return f"NOT ({sql} = 0 AND CAST({sql} AS STRING) = '-0.0')"


def matching(sql: str, kind: t.LogicalType) -> str:
    """A FLOAT as the key of an equality join: identity of the keys is equality, NaN is nothing's key."""
    zero, nothing = (f"CAST({value} AS {spark_type(kind)})" for value in ("0", "NULL"))
    return f"nanvl({sql} + {zero}, {nothing})"


def with_one_zero(sql: str, kind: t.LogicalType) -> str:
    """``sql`` with each -0.0 that SQL's ``=`` takes for 0.0 made that; NaN stays."""
    if not has_two_zeros(kind):
        return sql
    if isinstance(kind, t.APPROXIMATE_TYPES):
        return f"({sql} + CAST(0 AS {spark_type(kind)}))"
    return _mapped(sql, kind, with_one_zero)


def in_order(sql: str, kind: t.LogicalType) -> str:
    """``sql`` with all entries of maps, at any depth, in the order of their keys (see ``types.entries``)."""
    if not has_maps(kind):
        return sql
    inner = _mapped(sql, kind, in_order) if any(map(has_maps, parts(kind))) else sql
    return by_key(inner, kind) if isinstance(kind, t.MapType | t.MultisetType) else inner


def by_key(sql: str, kind: t.LogicalType) -> str:
    """The entries of a MAP or MULTISET in order, whose parts are what they should be."""
    key, *_ = parts(kind)
    if not has_floats(key):
        return f"sort_array({sql})"
    return unmarked(f"sort_array({marked(sql, kind)})", kind)


def last_of_each_key(entries: str, key: t.LogicalType) -> str:
    """``entries`` without those whose key, one of type ``key``, comes again."""
    same = f"{marked('_ml.key', key)} <=> {marked('_me.key', key)}"

    def body(last_entries: str) -> str:
        later = f"slice({last_entries}, _mi + 2, size({last_entries}))"
        return f"filter({last_entries}, (_me, _mi) -> NOT exists({later}, _ml -> {same}))"

    return bind(entries, body)


def _mapped(sql: str, kind: t.LogicalType, each: Callable[[str, t.LogicalType], str]) -> str:
    """``each`` over the parts of a nested value."""
    if isinstance(kind, t.RowType):
        fields = tuple((f.name, f.type) for f in kind.fields)
        return share(sql, lambda x: _unless_null(x, _struct(x, fields, each)))
    # Named by the text it stands in: a nested use can only shadow what it does not see.
    name = f"_m{crc32(sql.encode()):08x}"
    if isinstance(kind, t.ArrayType):
        return f"transform({sql}, {name} -> {each(name, kind.element)})"
    if isinstance(kind, t.MapType):
        entry = (("key", kind.key), ("value", kind.value))
    else:
        assert isinstance(kind, t.MultisetType)
        entry = (("key", kind.element), ("value", t.INT))
    return f"transform({sql}, {name} -> {_struct(name, entry, each)})"


def _struct(
    sql: str, fields: tuple[tuple[str, t.LogicalType], ...], each: Callable[[str, t.LogicalType], str]
) -> str:
    members = (f"{string_literal(n)}, {each(f'({sql}).{quote(n)}', kind)}" for n, kind in fields)
    return f"named_struct({', '.join(members)})"


def _unless_null(sql: str, value: str) -> str:
    return f"IF({sql} IS NULL, NULL, {value})"
