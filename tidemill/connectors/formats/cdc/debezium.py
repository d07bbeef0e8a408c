"""The ``debezium-json`` format: Debezium's envelopes, with or without the schema part.

``c`` and ``r`` are +I of ``after``, ``u`` is -U of ``before`` and +U of ``after``, ``d`` is -D of
``before``. A missing before image is an error that names PostgreSQL's REPLICA IDENTITY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import ALL_KINDS, RowKind
from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.api import (
    Block,
    Decoder,
    DecodeRequest,
    Encoder,
    EncodeRequest,
    Format,
)
from tidemill.connectors.formats.cdc.messages import Changes, Mask, assemble, reject, valid
from tidemill.connectors.formats.json.encode import EnvelopeEncoder, json_style
from tidemill.connectors.formats.json.format import check_map_keys
from tidemill.connectors.formats.json.options import SHARED, check_choices
from tidemill.connectors.formats.json.reader import JsonReader, JsonRows
from tidemill.connectors.formats.json.values import JsonRules
from tidemill.connectors.formats.text_scalars import TextRules
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import STRING, Field
from tidemill.types.physical import arrow_schema, arrow_type

_OPTIONS = (
    ConnectorOption(
        key="schema-include", kind="bool", default="false", doc="Messages have the parts schema and payload."
    ),
    *SHARED,
)
_MILLIS = t.LocalZonedTimestampType(precision=3)
_PROPERTIES = t.MapType(key=STRING.with_nullable(False), value=STRING)

# Where each metadata key lies: the field of the envelope or of its source part, and its raw type.
_ENVELOPE = {"ingestion-timestamp": ("ts_ms", t.BIGINT)}
_SOURCE: dict[str, tuple[str, t.LogicalType]] = {
    "source.timestamp": ("ts_ms", t.BIGINT),
    "source.database": ("db", STRING),
    "source.schema": ("schema", STRING),
    "source.table": ("table", STRING),
}
_METADATA: dict[str, t.LogicalType] = {
    "schema": STRING,
    "ingestion-timestamp": _MILLIS,
    "source.timestamp": _MILLIS,
    "source.database": STRING,
    "source.schema": STRING,
    "source.table": STRING,
    "source.properties": _PROPERTIES,
}
_NO_BEFORE = (
    'The "before" field of {op} message is null, if you are using Debezium Postgres Connector, please check'
    " the Postgres table has been set REPLICA IDENTITY to FULL level."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DebeziumDecoder:
    wanted: tuple[Field, ...]
    metadata: tuple[tuple[Field, str], ...]
    rules: JsonRules
    schema_include: bool

    def decode(self, block: Block) -> pa.Table:
        rows = self._reader().read(block.data)
        table = rows.table
        if self.schema_include:
            table = self._payload(rows)
        return self._changes(table, rows)

    def _envelope(self) -> tuple[Field, ...]:
        image = t.RowType(fields=self.wanted)
        keys = {key for _, key in self.metadata}
        source = [Field(*_SOURCE[key]) for key in _SOURCE if key in keys]
        fields = [Field("before", image), Field("after", image), Field("op", STRING)]
        if "source.properties" in keys:
            fields.append(Field("source", _PROPERTIES))
        elif source:
            fields.append(Field("source", t.RowType(fields=tuple(source))))
        fields += [Field(*_ENVELOPE[key]) for key in _ENVELOPE if key in keys]
        return tuple(fields)

    def _reader(self) -> JsonReader:
        fields = self._envelope()
        if self.schema_include:
            fields = (Field("payload", t.RowType(fields=fields)),)
            if any(key == "schema" for _, key in self.metadata):
                fields = (*fields, Field("schema", STRING))
        return JsonReader(fields=fields, rules=self.rules, what="Corrupt Debezium JSON message")

    def _payload(self, rows: JsonRows) -> pa.Table:
        payload = rows.table.column("payload").combine_chunks()
        table = pa.Table.from_arrays(payload.flatten(), names=[f.name for f in payload.type])
        return table

    def _changes(self, table: pa.Table, rows: JsonRows) -> pa.Table:
        before, after = (table.column(n).combine_chunks() for n in ("before", "after"))
        op = table.column("op").combine_chunks()
        good = self._known(op, rows)
        has_before, has_after = valid(before), valid(after)
        insert = good & _is(op, "c", "r")
        update = good & _is(op, "u")
        delete = good & _is(op, "d")
        reason = "The {part} image of a message with op {op} is missing in a Debezium JSON message."
        good_insert = insert & self._reject(
            insert & ~has_after, rows, reason.format(part="after", op="'c' or 'r'")
        )
        update &= self._reject(update & ~has_before, rows, _NO_BEFORE.format(op="UPDATE"))
        update &= self._reject(update & ~has_after, rows, reason.format(part="after", op="'u'"))
        delete &= self._reject(delete & ~has_before, rows, _NO_BEFORE.format(op="DELETE"))
        schema = arrow_schema((*self.wanted, *(f for f, _ in self.metadata)))
        return assemble(
            [
                Changes(images=after, at=np.flatnonzero(good_insert), kind=RowKind.INSERT, slot=0),
                Changes(images=before, at=np.flatnonzero(update), kind=RowKind.UPDATE_BEFORE, slot=0),
                Changes(images=after, at=np.flatnonzero(update), kind=RowKind.UPDATE_AFTER, slot=1),
                Changes(images=before, at=np.flatnonzero(delete), kind=RowKind.DELETE, slot=0),
            ],
            self.wanted,
            [(f.name, self._metadata(key, f, table, rows)) for f, key in self.metadata],
            schema,
        )

    def _reject(self, mask: Mask, rows: JsonRows, reason: str) -> Mask:
        return reject(mask, rows, reason, lenient=self.rules.lenient)

    def _known(self, op: pa.Array, rows: JsonRows) -> Mask:
        missing = ~valid(op)
        hint = " Is debezium-json.schema-include set rightly?"
        good = self._reject(missing, rows, 'Corrupt Debezium JSON message: it has no "op".' + hint)
        unknown = good & ~_is(op, "c", "r", "u", "d")
        if unknown.any() and not self.rules.lenient:
            value = op[int(np.argmax(unknown))].as_py()
            reason = f'Corrupt Debezium JSON message: unknown "op" value "{value}".'
            return self._reject(unknown, rows, reason)
        return good & ~unknown

    def _metadata(self, key: str, field: Field, table: pa.Table, rows: JsonRows) -> pa.Array:
        if key == "schema":
            if "schema" in rows.table.column_names:
                return rows.table.column("schema").combine_chunks()
            return pa.nulls(rows.table.num_rows, pa.string())
        if key in _ENVELOPE:
            return _instants(table.column(_ENVELOPE[key][0]).combine_chunks(), field)
        source = table.column("source").combine_chunks()
        if key == "source.properties":
            return source
        if pa.types.is_list(source.type):
            return _instants(_entry(source, _SOURCE[key][0]), field)
        return _instants(pc.struct_field(source, _SOURCE[key][0]), field)


def _is(op: pa.Array, *names: str) -> Mask:
    return np.asarray(pc.fill_null(pc.is_in(op, pa.array(names, pa.string())), False))


def _entry(entries: pa.Array, key: str) -> pa.Array:
    texts = [{e["key"]: e["value"] for e in row or ()}.get(key) for row in entries.to_pylist()]
    return pa.array(texts, pa.string())


def _instants(values: pa.Array, field: Field) -> pa.Array:
    """Milliseconds since 1970 (as number or text) as TIMESTAMP_LTZ; text stays text."""
    target = arrow_type(field.type)
    if not pa.types.is_timestamp(target):
        return values
    return values.cast(pa.int64()).cast(pa.timestamp("ms", tz="UTC")).cast(target)


class DebeziumFormat(Format):
    identifier = "debezium-json"
    options: tuple[ConnectorOption, ...] = _OPTIONS
    extension = "json"

    def validate(self, table: CatalogTable, options: OptionValues, *, role: str) -> None:
        check_choices(self.identifier, options)
        check_map_keys(table)
        if role == "sink" and options["schema-include"]:
            raise ValidationError(
                "Debezium JSON serialization doesn't support the option 'debezium-json.schema-include' set to"
                " true."
            )

    def metadata(self) -> Mapping[str, t.LogicalType]:
        return _METADATA

    def kinds(self) -> frozenset[RowKind]:
        return ALL_KINDS

    def decoder(self, request: DecodeRequest) -> Decoder:
        options = OptionValues(_OPTIONS, request.options, "debezium-json.")
        rules = JsonRules(
            text=TextRules(timestamps=options["timestamp-format.standard"]),
            lenient=options["ignore-parse-errors"],
        )
        return DebeziumDecoder(
            wanted=request.wanted,
            metadata=request.metadata,
            rules=rules,
            schema_include=options["schema-include"],
        )

    def encoder(self, request: EncodeRequest) -> Encoder:
        options = OptionValues(_OPTIONS, request.options, "debezium-json.")
        return EnvelopeEncoder(
            fields=request.fields,
            style=json_style(options),
            insert=('{"before":null,"after":', ',"op":"c"}'),
            delete=('{"before":', ',"after":null,"op":"d"}'),
        )
