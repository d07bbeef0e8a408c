"""The ``avro-confluent`` format: messages that name their schema in a registry.

A message is a zero byte, the schema's id in four bytes, and an Avro record. Each message is read with its
writer's schema. A sink registers the table's schema with its first rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.api import (
    DecodedMessages,
    Decoder,
    DecodeRequest,
    Encoder,
    EncodeRequest,
    Format,
    Framing,
    MessageDecoder,
    RecordError,
    TextEncoder,
)
from tidemill.connectors.formats.avro.derive import Derivation, derived
from tidemill.connectors.formats.avro.format import LEGACY
from tidemill.connectors.formats.avro.registry import SchemaRegistry, UnknownSchemaError
from tidemill.connectors.formats.avro.row_reader import RowReader, no_columns
from tidemill.connectors.formats.avro.row_writer import RowWriter
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema

_MAGIC = 0
_HEAD = 5
"""Bytes before the record."""
_FORMER = "schema-registry."
_OPTIONS = (
    ConnectorOption(key="url", doc="The registry; several URLs are separated by commas. Required."),
    ConnectorOption(
        key="subject", doc="Where a sink registers its schema; default: the topic and -key or -value."
    ),
    ConnectorOption(key="schema", doc="The schema that a sink writes with, as JSON; default: the table's."),
    ConnectorOption(
        key="auto.register.schemas",
        kind="bool",
        default="true",
        doc="false: a sink's schema has to be in the registry.",
    ),
    ConnectorOption(
        key="basic-auth.credentials-source", choices=("USER_INFO", "URL"), doc="Where user and password are."
    ),
    ConnectorOption(key="basic-auth.user-info", doc="USER_INFO: user:password."),
    ConnectorOption(
        key="bearer-auth.credentials-source", choices=("STATIC_TOKEN",), doc="Where the token is."
    ),
    ConnectorOption(key="bearer-auth.token", doc="STATIC_TOKEN: the token."),
    *(
        ConnectorOption(key=_FORMER + key, doc=f"Former name of {key}.")
        for key in ("url", "subject", "schema")
    ),
    LEGACY,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfluentMessages:
    """Decodes messages; a message of None gives no row. ``declared``: the names of all columns."""

    registry: SchemaRegistry
    wanted: tuple[Field, ...]
    declared: tuple[str, ...]

    def decode(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        by_schema: dict[int, list[tuple[int, bytes]]] = {}
        for number, message in enumerate(messages):
            if message is not None:
                by_schema.setdefault(_schema_id(number, message), []).append((number, message[_HEAD:]))
        parts = [self._part(schema, part) for schema, part in by_schema.items()]
        numbers = np.array([n for part in by_schema.values() for n, _ in part], dtype=np.int64)
        if not self.wanted:
            return DecodedMessages(table=no_columns(len(numbers)), messages=np.sort(numbers))
        order = np.argsort(numbers)
        table = pa.concat_tables([arrow_schema(self.wanted).empty_table(), *parts])
        return DecodedMessages(table=table.take(pa.array(order)), messages=numbers[order])

    def _part(self, schema: int, messages: list[tuple[int, bytes]]) -> pa.Table:
        """The rows of messages that were written with the schema of the id ``schema``."""
        first_number = messages[0][0]
        try:
            reader = RowReader.of(self.registry.schema(schema), self.wanted, self.declared)
        except UnknownSchemaError as e:
            raise RecordError(f"{e}.", line=first_number) from None
        except RecordError as e:
            raise RecordError(
                f"{e.reason} (schema {schema})",
                line=first_number,
                field=e.field,
                record=e.record,
                hint=e.hint,
            ) from None
        return reader.numbered(messages)


def _schema_id(number: int, message: bytes) -> int:
    if len(message) < _HEAD or message[0] != _MAGIC:
        raise RecordError(
            "Unknown data format. Magic number does not match: a message of 'avro-confluent' begins with a"
            " zero byte and the schema's id in four bytes.",
            line=number,
            record=message[:64].hex(" "),
            hint="Messages that are Avro records alone have 'format' = 'avro'.",
        )
    return int.from_bytes(message[1:_HEAD], "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfluentEncoder(TextEncoder):
    """Encodes messages. ``registers``: it registers the schema if the registry does not have it."""

    writer: RowWriter
    registry: SchemaRegistry
    subject: str
    registers: bool

    def texts(self, table: pa.Table) -> pa.Array:
        schema_id = self.registry.register(self.subject, self.writer.text, register_missing=self.registers)
        prefix = bytes([_MAGIC]) + schema_id.to_bytes(_HEAD - 1, "big")
        return pa.array([prefix + record for record in self.writer.records(table)], pa.binary())


class ConfluentFormat(Format):
    identifier = "avro-confluent"
    options: tuple[ConnectorOption, ...] = _OPTIONS
    extension = "avro"
    nullable_record = False
    """Whether the schema of a record is a union with null, as Flink's is for Debezium."""

    def framing(self, options: OptionValues) -> Framing:
        return Framing.MESSAGES

    def completed(self, options: Mapping[str, str], topic: str, part: str) -> Mapping[str, str]:
        keys = (f"{self.identifier}.subject", f"{self.identifier}.{_FORMER}subject")
        return options if any(key in options for key in keys) else {**options, keys[0]: f"{topic}-{part}"}

    def validate(self, table: CatalogTable, options: OptionValues, *, role: str) -> None:
        self._check_url(_either(options, "url") or "")
        fields = tuple(Field(c.name, c.type) for c in table.physical_columns)
        self._writer(fields, options)

    def decoder(self, request: DecodeRequest) -> Decoder:
        raise NotSupportedError(f"Files of '{self.identifier}'")

    def message_decoder(self, request: DecodeRequest) -> MessageDecoder:
        return ConfluentMessages(
            registry=self.registry(request.options),
            wanted=request.wanted,
            declared=tuple(f.name for f in request.columns),
        )

    def encoder(self, request: EncodeRequest) -> Encoder:
        options = self._read(request.options)
        subject = _either(options, "subject")
        if subject is None:
            raise ValidationError(f"Option {self.identifier}.subject is required for serialization")
        encoder = ConfluentEncoder(
            writer=self._writer(request.fields, options),
            registry=self.registry(request.options),
            subject=subject,
            registers=options["auto.register.schemas"],
        )
        return self.records(encoder, request.fields)

    def written(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        """The fields of the Avro record of a row with the columns ``fields``."""
        return fields

    def records(self, encoder: TextEncoder, fields: tuple[Field, ...]) -> TextEncoder:
        """An encoder of rows with the columns ``fields``, which encodes records with ``encoder``."""
        return encoder

    def registry(self, table_options: Mapping[str, str]) -> SchemaRegistry:
        options = self._read(table_options)
        urls = _either(options, "url") or ""
        self._check_url(urls)
        source = (options["basic-auth.credentials-source"] or "").upper()
        return SchemaRegistry.of(
            urls,
            user=options["basic-auth.user-info"] or "" if source == "USER_INFO" else "",
            bearer=options["bearer-auth.token"] or "" if options["bearer-auth.credentials-source"] else "",
            user_from_url=source == "URL",
        )

    def _writer(self, columns: tuple[Field, ...], options: OptionValues) -> RowWriter:
        declared_schema, fields = _either(options, "schema"), self.written(columns)
        how = Derivation(identifier=self.identifier, legacy=options[LEGACY.key])
        derived_schema = derived(fields, how, nullable=self.nullable_record)
        writer = RowWriter(fields=fields, text=declared_schema or derived_schema)
        if declared_schema:
            writer.check()
        return writer

    def _check_url(self, urls: str) -> None:
        key = f"{self.identifier}.url"
        if not urls.strip():
            raise ValidationError(
                f"One or more required options are missing.\n\nMissing required options are:\n\n{key}"
            )
        for url in map(str.strip, urls.split(",")):
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
                raise ValidationError(f"'{key}' must be of http or https, as http://host:8081.")

    def _read(self, options: Mapping[str, str]) -> OptionValues:
        return OptionValues(self.options, options, f"{self.identifier}.")


def _either(options: OptionValues, key: str) -> str | None:
    """The value of an option under its name or its former name."""
    value: str | None = options[key] or options[_FORMER + key]
    return value


FORMAT = ConfluentFormat()
