"""The decisions: which values are one, in what order they stand, which ones SQL calls equal.

Kernels take them from ``changelog.values`` (Arrow columns), Spark SQL from ``functions.values`` (text); a
property test holds both to the same table of hostile values.

*Identity* is what GROUP BY, DISTINCT, UNION, INTERSECT, EXCEPT, PARTITION BY, state keys and "this result
did not change" go by. Values are one that are of one type and cannot be told apart when they are shown:
0.0 and -0.0 are two, as in Flink; all NaN are one; NULL is one with NULL; trailing blanks count, also in
CHAR(n), which CAST pads; DECIMALs of one type have one scale; nested values are one where all their parts
are. The entries of a MAP or MULTISET have no order of their own: whatever makes such a value puts them in the
order of their keys (``types.entries`` in Arrow, ``functions.values.in_order`` in Spark SQL), so that equal
ones are one wherever values are grouped, hashed, kept or shown.

*Order* (ORDER BY, Top-N, RANK, MIN, MAX) is total, and ties exactly where values are one: -0.0 stands below
0.0, NaN above infinity, text by code point, bytes unsigned, FALSE below TRUE. NULL is lowest unless said
otherwise.

*Equality* (=, <> and the comparisons, IN, joins' keys and conditions alike) is Flink's and Java's: 0.0 equals
-0.0, and NaN equals nothing, not even NaN; anything compared with NULL is unknown, which IS NOT DISTINCT
FROM alone looks through. ROWs are equal where all their fields are, a NULL in one with a NULL in the other,
as in Flink: of two ROWs that are not NULL it is always known. Arrays, maps and multisets are by identity.
"""

from __future__ import annotations

from tidemill.types import logical as t


def has_floats(kind: t.LogicalType) -> bool:
    """Whether a FLOAT or DOUBLE is in it: of all other types Spark's equality is identity."""
    return isinstance(kind, t.APPROXIMATE_TYPES) or any(map(has_floats, parts(kind)))


def is_identity(kind: t.LogicalType) -> bool:
    """Whether SQL's ``=`` of such values is identity: where no FLOAT is compared."""
    if isinstance(kind, t.RowType):
        return all(is_identity(f.type) for f in kind.fields)
    return not isinstance(kind, t.APPROXIMATE_TYPES)


def has_two_zeros(kind: t.LogicalType) -> bool:
    """Whether SQL's ``=`` takes a 0.0 and a -0.0 in it for one: collections are compared by identity."""
    if isinstance(kind, t.RowType):
        return any(has_two_zeros(f.type) for f in kind.fields)
    return isinstance(kind, t.APPROXIMATE_TYPES)


def has_maps(kind: t.LogicalType) -> bool:
    """Whether a MAP or MULTISET is in it, whose entries must be in order."""
    return isinstance(kind, t.MapType | t.MultisetType) or any(map(has_maps, parts(kind)))


def parts(kind: t.LogicalType) -> tuple[t.LogicalType, ...]:
    """The types inside a nested one."""
    if isinstance(kind, t.ArrayType | t.MultisetType):
        return (kind.element,)
    if isinstance(kind, t.MapType):
        return (kind.key, kind.value)
    return tuple(f.type for f in kind.fields) if isinstance(kind, t.RowType) else ()
