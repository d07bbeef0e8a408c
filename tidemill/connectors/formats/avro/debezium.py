"""The ``debezium-avro-confluent`` format: Debezium's envelopes as Avro records of a schema registry.

A record has the images ``before`` and ``after`` and the kind of change ``op``. Other fields are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.rowkind import ALL_KINDS, KIND_COLUMN, RowKind
from tidemill.connectors.formats.api import (
    LINE_COLUMN,
    DecodedMessages,
    DecodeRequest,
    Indexes,
    MessageDecoder,
    RecordError,
    TextEncoder,
)
from tidemill.connectors.formats.avro.confluent import ConfluentFormat, ConfluentMessages
from tidemill.connectors.formats.cdc.images import image_changes
from tidemill.connectors.formats.cdc.messages import Mask, assemble, equals
from tidemill.types import logical as t
from tidemill.types.logical import BIGINT, STRING, Field
from tidemill.types.physical import arrow_schema

_INSERT, _DELETE = "c", "d"


def envelope(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The fields of an envelope whose images have ``fields``: before, after and op."""
    image_type = t.RowType(fields=fields)
    return (Field("before", image_type), Field("after", image_type), Field("op", STRING))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Envelopes:
    """Raises errors for envelopes; ``numbers`` are those of their messages."""

    numbers: Indexes
    name: str = "Debezium"

    def reject(self, bad: Mask, reason: str) -> Mask:
        if bad.any():
            number = int(self.numbers[int(np.argmax(bad))])
            raise RecordError(f"Can't deserialize Debezium Avro message. {reason}", line=number)
        return ~bad


@dataclass(frozen=True, slots=True, kw_only=True)
class DebeziumMessages:
    """``envelopes`` decodes records with the fields of ``envelope``; the images have the ``wanted``
    fields."""

    envelopes: ConfluentMessages
    wanted: tuple[Field, ...]

    def decode(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        decoded = self.envelopes.decode([message or None for message in messages])  # tombstones are skipped
        before, after, op = (column.combine_chunks() for column in decoded.table.columns)
        envelopes = _Envelopes(numbers=decoded.messages)
        valid = envelopes.reject(~equals(op, "c", "r", "u", "d"), 'Its "op" is none of c, r, u, d.')
        parts = image_changes(
            envelopes,
            before,
            after,
            insert=valid & equals(op, "c", "r"),
            update=valid & equals(op, "u"),
            delete=valid & equals(op, "d"),
        )
        table = assemble(parts, self.wanted, [(Field(LINE_COLUMN, BIGINT), pa.array(decoded.messages))])
        numbers = np.asarray(table.column(LINE_COLUMN).combine_chunks())
        return DecodedMessages(table=table.drop_columns([LINE_COLUMN]), messages=numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class DebeziumEncoder(TextEncoder):
    """Writes a changelog as Flink does: -U is a delete, +U is an insert. ``records`` encodes the envelopes of
    ``fields``."""

    records: TextEncoder
    fields: tuple[Field, ...]

    def texts(self, table: pa.Table) -> pa.Array:
        schema = arrow_schema(envelope(self.fields))
        columns = [table.column(f.name).combine_chunks() for f in self.fields]
        deleted = _deleted(table)
        before, after = (
            pa.StructArray.from_arrays(columns, fields=list(schema.field(0).type), mask=mask)
            for mask in (pc.invert(deleted), deleted)
        )
        op = pc.if_else(deleted, _DELETE, _INSERT)
        return self.records.texts(pa.Table.from_arrays([before, after, op], schema=schema))


def _deleted(table: pa.Table) -> pa.Array:
    if KIND_COLUMN not in table.column_names:
        return pa.repeat(False, table.num_rows)
    kinds = table.column(KIND_COLUMN).combine_chunks()
    return pc.is_in(kinds, pa.array([RowKind.UPDATE_BEFORE, RowKind.DELETE], kinds.type))


class DebeziumAvroFormat(ConfluentFormat):
    identifier = "debezium-avro-confluent"
    nullable_record = True

    def kinds(self) -> frozenset[RowKind]:
        return ALL_KINDS

    def written(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        return envelope(fields)

    def message_decoder(self, request: DecodeRequest) -> MessageDecoder:
        image = request.wanted or request.columns[:1]  # without a field there is no image
        fields = envelope(image)
        return DebeziumMessages(
            envelopes=ConfluentMessages(
                registry=self.registry(request.options),
                wanted=fields,
                declared=tuple(f.name for f in fields),
            ),
            wanted=request.wanted,
        )

    def records(self, encoder: TextEncoder, fields: tuple[Field, ...]) -> TextEncoder:
        return DebeziumEncoder(records=encoder, fields=fields)


FORMAT = DebeziumAvroFormat()
