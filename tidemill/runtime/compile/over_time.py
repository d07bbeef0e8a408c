"""OVER by event time in the exec graph; a deduplication that waits for the first row also runs as OVER."""

from __future__ import annotations

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.over.by_time import OverByTimeSpec
from tidemill.physical import nodes as p
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import timed_input
from tidemill.runtime.compile.row_names import NamedRows
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.types.logical import Field

_HIDDEN = ((SEQUENCE_COLUMN, pa.int64()), (WATERMARK_COLUMN, pa.int64()))


def over_time(
    spec: OverByTimeSpec,
    kind: str,
    joined: p.Unary,
    whole: p.PhysicalNode,
    fields: tuple[Field, ...],
    context: CompileContext,
    rows: NamedRows,
) -> g.Keyed:
    """The operator ``spec`` of ``whole`` over the input of ``joined``; ``fields`` are what it gives, ``rows``
    what it keeps."""
    below = timed_input(joined, context, True)
    carried = names(rows.fields[0])
    return g.Keyed(
        columns=names(fields),
        kinds=INSERT_ONLY,
        sequenced=spec.sequence,
        operator=context.add_operator(kind, whole, spec, rows=rows),
        spec=spec,
        ports=(
            g.Port(
                input=below,
                references=below.columns,
                columns=carried,
                keys=spec.partition,
                schema=pa.schema([*spec.columns, *_HIDDEN]),
                timed=True,
            ),
        ),
        schema=keyed_schema(fields, INSERT_ONLY, spec.sequence, spec.keeps_time),
        single=not spec.partition,
        partitioned=tuple(frozenset({fields[carried.index(name)].name}) for name in spec.partition),
        keeps_time=spec.keeps_time,
    )
