"""The operator behind a lookup or temporal join over rows that may be taken back: it keeps the found rows, so
that a retraction takes back the same joined rows."""

from __future__ import annotations

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.lookup_join import ROW, THERE, LookupJoinSpec
from tidemill.physical import nodes as p
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import delay_of
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

_HIDDEN = {KIND_COLUMN: pa.int8(), SEQUENCE_COLUMN: pa.int64(), WATERMARK_COLUMN: pa.int64()}


def kept_rows(
    node: p.PhysicalNode,
    left: p.PhysicalNode,
    rows: g.ExecNode,
    context: CompileContext,
    *,
    outer: bool,
    sequenced: bool,
) -> g.ExecNode:
    """The fields of ``node``, whose first ones are those of ``left``; ``rows`` has them, ``$row`` and
    ``$there``."""
    width = len(left.fields)
    own, found = (_columns(part) for part in (node.fields[:width], node.fields[width:]))
    spec = LookupJoinSpec(columns=own, found=found, outer=outer, sequence=sequenced, keeps_time=rows.timed)
    keys = _keys(left, names(node.fields))
    types = {**dict(own), **dict(found), ROW: pa.int64(), THERE: pa.bool_(), **_HIDDEN}
    port = g.Port(
        input=rows,
        references=rows.columns,
        columns=rows.columns,
        keys=keys,
        schema=pa.schema([pa.field(c, types[c]) for c in (*rows.columns, *rows.hidden)]),
        timed=rows.timed,
    )
    return g.Keyed(
        columns=names(node.fields),
        kinds=rows.kinds,
        sequenced=sequenced,
        operator=context.add_operator("found-rows", node, spec),
        spec=spec,
        ports=(port,),
        schema=keyed_schema(node.fields, rows.kinds, sequenced, rows.timed),
        single=not keys,
        partitioned=tuple(frozenset({c}) for c in keys),
        keeps_time=rows.timed,
        delay=delay_of(rows),
    )


def _columns(fields: tuple[Field, ...]) -> tuple[tuple[str, pa.DataType], ...]:
    return tuple((f.name, arrow_type(f.type)) for f in fields)


def _keys(left: p.PhysicalNode, columns: tuple[str, ...]) -> tuple[str, ...]:
    """All rows of an upsert key meet in one task: who overwrites by it gets them in order."""
    known = sorted(left.traits.upsert_keys, key=lambda k: (len(k), sorted(k)))
    places = sorted(known[0]) if known else range(len(left.fields))
    return tuple(columns[i] for i in places)
