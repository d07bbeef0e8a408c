"""The texts of lineages (see ``physical.lineage``): expressions and calls over columns of sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.physical.digests import canonical, hashed, joined, meaningful_fields
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, OverCall, SortKey
from tidemill.plan.predicates import conjuncts, disjuncts
from tidemill.types.logical import Field, LogicalType

Columns = tuple[str, ...]
SIDES = ("l.", "r.")
"""The beginnings of columns of the two sides of a join."""
_IN_ANY_ORDER = {"AND": conjuncts, "OR": disjuncts}


@dataclass(frozen=True, slots=True)
class Lineage:
    """``rows``: the digest of the rows. ``columns``: of each field; a table's column is its name and the kind
    of its type. ``texts``: the fields as readable expressions over columns of tables, as in EXPLAIN.
    ``carried``: as ``columns``, of fields that are stored as they are: a table's column is its name and the
    family of its type (``types.widening``). ``kept``: the digest of the rows in the operator's state, if it
    does not output all of them. A Top-N keeps the same rows whatever range it shows, so its range is in
    ``rows`` and not in ``kept``."""

    rows: str
    columns: Columns
    texts: Columns
    carried: Columns
    kept: str = ""


def computed(
    below: Lineage,
    keys: Sequence[int],
    rows: str,
    own: Sequence[str],
    texts: Sequence[str],
    carried: Sequence[str] | None = None,
) -> Lineage:
    """The lineage of fields of the input (``keys``) followed by computed fields. ``carried``: these as they
    are stored, if they differ then."""

    def columns(given: Columns, made: Sequence[str]) -> Columns:
        return (*(given[k] for k in keys), *(f"#{hashed(joined(rows, [each]))}" for each in made))

    stored = columns(below.carried, own if carried is None else carried)
    return Lineage(rows, columns(below.columns, own), (*(below.texts[k] for k in keys), *texts), stored)


def sides_of(left: Columns, right: Columns) -> Columns:
    """The columns of both sides of a join, marked by side."""
    sides = zip(SIDES, (left, right), strict=True)
    return tuple(f"{side}{column}" for side, columns in sides for column in columns)


def unordered_columns(keys: Sequence[int], below: Lineage) -> list[str]:
    """The columns of ``keys``, sorted, because their order does not matter."""
    return sorted({below.columns[key] for key in keys})


def column_of(expr: Expr, below: Columns) -> str:
    return below[expr.index] if isinstance(expr, InputRef) else f"#{hashed(text_of(expr, below))}"


def text_of(value: object, below: Columns) -> str:
    """As ``canonical``, but with columns for references, without result names, and with sorted ANDs and
    ORs."""
    if isinstance(value, InputRef):
        return below[value.index]
    if isinstance(value, Call) and value.function in _IN_ANY_ORDER:
        parts = [text_of(part, below) for part in _IN_ANY_ORDER[value.function](value)]
        return joined(value.function, sorted(parts))
    if isinstance(value, SortKey):
        return joined(below[value.index], [canonical(value.ascending), canonical(value.nulls_first)])
    if isinstance(value, OverCall):
        order, frame = ([text_of(x, below) for x in xs] for xs in (value.order, (value.lower, value.upper)))
        args = f"[{', '.join(below[a] for a in value.args)}]"
        settings = [canonical(x) for x in (value.function, value.distinct, value.options, value.rows)]
        return joined("Over", [*settings, args, *order, *frame])
    if isinstance(value, AggregateCall):
        args = f"[{', '.join(below[a] for a in value.args)}]"
        filter_ = "" if value.filter is None else below[value.filter]
        settings = [canonical(x) for x in (value.function, value.distinct, value.options, value.user)]
        return joined("Call", [*settings, args, filter_])
    if isinstance(value, tuple | list):
        return f"[{', '.join(text_of(v, below) for v in value)}]"
    if is_dataclass(value) and not isinstance(value, LogicalType | CatalogTable | Field):
        parts = [f"{f.name}={text_of(getattr(value, f.name), below)}" for f in meaningful_fields(value)]
        return joined(type(value).__name__, parts)
    return canonical(value)
