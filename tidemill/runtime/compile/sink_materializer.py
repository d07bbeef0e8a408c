"""The operator before a sink whose primary key is not the query's upsert key -> the kernel of Top-N."""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.operators.rank.operator import RankSpec
from tidemill.operators.rows.ordering import by_columns
from tidemill.physical import nodes as p
from tidemill.physical.sinks import keeps_greatest_row
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.operator_schema import ColumnSchema
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.keyed import keyed, late_of
from tidemill.runtime.compile.row_names import named_rows
from tidemill.runtime.compile.schemas import columns_of
from tidemill.types.logical import Field


def materialized(sink: p.Sink, context: CompileContext) -> g.ExecNode:
    """The rows of an upsert sink whose primary key is not the query's upsert key: per primary key the live
    row that arrived last, whatever the disorder between the changes of different rows. With ON CONFLICT DO
    NOTHING it is the live row that arrived first; DO ERROR allows only one live row. If arrival is not known,
    the greatest row by its columns counts as the last, and the least row as the first."""
    rows = named_rows(context.state, "sink-materialize", sink, sink.input)
    rows = replace(rows, columns=_null_for_earlier_rows(sink, rows.columns))
    inputs = context.sink_fields(sink) if rows.late is None else rows.fields[0]
    places = {c.name: place for place, c in enumerate(sink.table.written_columns)}
    keys = [places[key] for key in sink.table.primary_key]
    partition = tuple(inputs[key].name for key in keys) if rows.late is None else rows.keys(keys)
    latest = sink.conflict not in ("NOTHING", "ERROR")
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=columns_of(inputs),
        partition=partition,
        key_names=_columns_of_key(sink, partition, inputs),
        order=by_columns(columns_of(inputs), greatest_first=latest) if keeps_greatest_row(sink) else (),
        start=1,
        end=1,
        latest=latest,
        exclusive=sink.conflict == "ERROR",
        by_place=True,
        retracts=sink.conflict == "ERROR" or sink.input.traits.kinds != INSERT_ONLY,
        update_before=RowKind.UPDATE_BEFORE in sink.consumed,
        state_ttl=sink.state_ttl,
        several=rows.several,
        late=late_of(rows, sink),
    )
    return keyed(sink, spec, "sink-materialize", spec.partition, context, False, rows=rows)


def _null_for_earlier_rows(sink: p.Sink, columns: tuple[ColumnSchema, ...]) -> tuple[ColumnSchema, ...]:
    """``columns`` that rows stored earlier lack may be NULL where the sink's columns may, whatever the query
    says of its own rows."""
    given = zip(columns, sink.input.fields, sink.table.written_columns, strict=False)
    return tuple(
        replace(column, type=str(field.type.with_nullable(True)))
        if column.since and own.type.nullable
        else column
        for column, field, own in given
    )


def _columns_of_key(sink: p.Sink, key: tuple[str, ...], inputs: tuple[Field, ...]) -> tuple[str, ...]:
    """The sink's columns of a ``key`` that is named as the kernel does."""
    own = {f.name: c.name for c, f in zip(sink.table.written_columns, inputs, strict=False)}
    return tuple(own[name] for name in key)
