"""The ``debezium-json`` format: Debezium's envelopes, with or without the schema part.

``c`` and ``r`` are +I of ``after``, ``u`` is -U of ``before`` and +U of ``after``, ``d`` is -D of
``before``. A missing before image is an error that names PostgreSQL's REPLICA IDENTITY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.api import Block, Decoder, DecodeRequest
from tidemill.connectors.formats.cdc.format import CdcFormat
from tidemill.connectors.formats.cdc.images import image_changes
from tidemill.connectors.formats.cdc.messages import Messages, assemble, equals, instants, read_messages
from tidemill.connectors.formats.json.options import SHARED
from tidemill.connectors.formats.json.reader import JsonReader
from tidemill.connectors.formats.json.values import JsonRules
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import STRING, Field

_OPTIONS = (
    ConnectorOption(
        key="schema-include", kind="bool", default="false", doc="Messages have the parts schema and payload."
    ),
    *SHARED,
)
_MILLIS = t.LocalZonedTimestampType(precision=3)
_PROPERTIES = t.MapType(key=STRING.with_nullable(False), value=STRING)
_METADATA: dict[str, t.LogicalType] = {
    "schema": STRING,
    "ingestion-timestamp": _MILLIS,
    "source.timestamp": _MILLIS,
    "source.database": STRING,
    "source.schema": STRING,
    "source.table": STRING,
    "source.properties": _PROPERTIES,
}
# Names of these metadata keys within the message's source part.
_SOURCE = {
    "source.timestamp": "ts_ms",
    "source.database": "db",
    "source.schema": "schema",
    "source.table": "table",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DebeziumDecoder:
    wanted: tuple[Field, ...]
    metadata: tuple[tuple[Field, str], ...]
    rules: JsonRules
    numbered: bool
    schema_include: bool

    def decode(self, block: Block) -> pa.Table:
        messages = read_messages(self._reader(), block.data, "Debezium")
        if self.schema_include:
            messages = self._unwrapped(messages)
        op = messages.column("op")
        valid = messages.of_type(op, "op", ("c", "r", "u", "d"))
        parts = image_changes(
            messages,
            messages.column("before"),
            messages.column("after"),
            insert=valid & equals(op, "c", "r"),
            update=valid & equals(op, "u"),
            delete=valid & equals(op, "d"),
        )
        values = [(f, self._metadata(key, f, messages)) for f, key in self.metadata]
        return assemble(parts, self.wanted, values + messages.numbers(self.numbered))

    def _reader(self) -> JsonReader:
        image = t.RowType(fields=self.wanted)
        fields = [Field("before", image), Field("after", image), Field("op", STRING)]
        keys = {key for _, key in self.metadata}
        if keys & {*_SOURCE, "source.properties"}:
            fields.append(Field("source", _PROPERTIES))
        if "ingestion-timestamp" in keys:
            fields.append(Field("ts_ms", t.BIGINT))
        if self.schema_include:
            fields = [Field("payload", t.RowType(fields=tuple(fields)))]
            fields += [Field("schema", STRING)] if "schema" in keys else []
        return JsonReader(
            fields=tuple(fields), rules=self.rules, error_prefix="Corrupt Debezium JSON message"
        )

    def _unwrapped(self, messages: Messages) -> Messages:
        """``messages`` with their payloads as envelopes."""
        payload = messages.column("payload")
        missing = np.asarray(payload.is_null())
        messages.reject(missing, 'It has no "payload", but debezium-json.schema-include is true.')
        names = [f.name for f in payload.type]
        table = pa.Table.from_arrays(payload.flatten(), names=names)
        if "schema" in messages.rows.table.column_names:
            table = table.append_column("schema", messages.column("schema"))
        return replace(messages, rows=replace(messages.rows, table=table))

    def _metadata(self, key: str, field: Field, messages: Messages) -> pa.Array:
        if key == "ingestion-timestamp":
            return instants(messages.column("ts_ms"), field.type)
        if key == "source.properties":
            return messages.column("source")
        if key in _SOURCE:
            return instants(_entry(messages.column("source"), _SOURCE[key]), field.type)
        if "schema" in messages.rows.table.column_names:
            return messages.column("schema")
        return pa.nulls(messages.count, pa.string())


def _entry(entries: pa.Array, key: str) -> pa.Array:
    """The value of ``key`` in each list of entries; NULL if the list lacks the key."""
    keys, values = entries.flatten().flatten()
    is_key = pc.equal(keys, key)
    entry_values = pa.nulls(len(entries), pa.string()).to_pylist()
    parents = pc.list_parent_indices(entries).filter(is_key).to_pylist()
    for parent, value in zip(parents, values.filter(is_key).to_pylist(), strict=True):
        entry_values[parent] = value
    return pa.array(entry_values, pa.string())


class DebeziumFormat(CdcFormat):
    identifier = "debezium-json"
    options: tuple[ConnectorOption, ...] = _OPTIONS
    insert = ('{"before":null,"after":', ',"op":"c"}')
    delete = ('{"before":', ',"after":null,"op":"d"}')

    def validate(self, table: CatalogTable, options: OptionValues, *, role: str) -> None:
        CdcFormat.validate(self, table, options, role=role)
        if role == "sink" and options["schema-include"]:
            raise ValidationError(
                "Debezium JSON serialization doesn't support the option 'debezium-json.schema-include' set to"
                " true."
            )

    def metadata(self) -> Mapping[str, t.LogicalType]:
        return _METADATA

    def decoder(self, request: DecodeRequest) -> Decoder:
        options = self.read(request.options)
        return DebeziumDecoder(
            wanted=request.wanted,
            numbered=request.numbered,
            metadata=request.metadata,
            rules=self.rules(options),
            schema_include=options["schema-include"],
        )


FORMAT = DebeziumFormat()
