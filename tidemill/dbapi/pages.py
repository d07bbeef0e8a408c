"""A result's pages as rows, and as Arrow tables of what users see.

A gateway of Tidemill's gives pages in Arrow, Flink's gives JSON. Of both a row has the same values, but the
keys of a MAP or a MULTISET are texts in JSON, whatever their type is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import singledispatch
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.dbapi.errors import NotSupportedError
from tidemill.dbapi.values import row_reader
from tidemill.gateway.endpoints.rest.types import type_of
from tidemill.session.rows.decoder import column_values
from tidemill.session.rows.values import python_value
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

Row = tuple[Any, ...]
Change = tuple[str, Row]
Columns = Sequence[Mapping[str, Any]]
_AS_CARRIED = python_value.dispatch(object)


def changes(columns: Columns, pages: Iterable[Any]) -> Iterator[Iterable[Change]]:
    """The rows of each page, with the names of their kinds."""
    types = [type_of(c["logicalType"]) for c in columns]
    from_json = row_reader(columns)
    for page in pages:
        if isinstance(page, pa.Table):
            values = [_values(page, place, kind) for place, kind in enumerate(types)]
            yield zip(_kinds(page), zip(*values, strict=True), strict=False)
        else:
            yield [(row["kind"], from_json(row["fields"])) for row in page]


def _values(page: pa.Table, place: int, kind: t.LogicalType) -> list[Any]:
    carried = column_values(page, place)
    convert = python_value.dispatch(type(kind))
    return carried if convert is _AS_CARRIED else [convert(kind, value) for value in carried]


def _kinds(page: pa.Table) -> Iterable[str]:
    if KIND_COLUMN not in page.column_names:
        return repeat(RowKind.INSERT.name)
    return (RowKind(kind).name for kind in page.column(KIND_COLUMN).to_pylist())


def table(columns: Columns, pages: Iterable[Any]) -> pa.Table:
    """All rows; NotSupportedError where there is another kind than INSERT, or a page is in JSON."""
    fields = [pa.field(c["name"], shown_type(type_of(c["logicalType"]))) for c in columns]
    schema = pa.schema(fields)
    return pa.concat_tables([schema.empty_table(), *(_shown(page, schema) for page in pages)])


def _shown(page: Any, schema: pa.Schema) -> pa.Table:
    if not isinstance(page, pa.Table):
        raise NotSupportedError("The gateway sends no Arrow: use fetchall().")
    if KIND_COLUMN in page.column_names and pc.any(pc.not_equal(page.column(KIND_COLUMN), 0)).as_py():
        raise NotSupportedError(
            "The result is a changelog: changes() reads it, and batch mode gives final rows."
        )
    arrays = [page.column(place).cast(field.type) for place, field in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)


@singledispatch
def shown_type(kind: t.LogicalType) -> pa.DataType:
    """As Arrow's users know a type: TIME is a time, INTERVAL DAY TO SECOND a duration. A MAP is a list of its
    entries: Arrow's own maps have no NULL among their keys."""
    return arrow_type(kind)


@shown_type.register
def _(kind: t.TimeType) -> pa.DataType:
    return pa.time32("ms")


@shown_type.register
def _(kind: t.DayTimeIntervalType) -> pa.DataType:
    return pa.duration("ms")


@shown_type.register
def _(kind: t.ArrayType) -> pa.DataType:
    return pa.list_(shown_type(kind.element))


@shown_type.register
def _(kind: t.MapType) -> pa.DataType:
    return pa.list_(pa.struct([("key", shown_type(kind.key)), ("value", shown_type(kind.value))]))


@shown_type.register
def _(kind: t.MultisetType) -> pa.DataType:
    return pa.list_(pa.struct([("key", shown_type(kind.element)), ("value", pa.int32())]))


@shown_type.register
def _(kind: t.RowType) -> pa.DataType:
    return pa.struct([(f.name, shown_type(f.type)) for f in kind.fields])
