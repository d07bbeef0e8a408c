"""Which columns are in the key and which in the value, and the formats of both.

The options of a format stand under its name: ``json.`` with 'format', ``value.json.`` with 'value.format',
``key.json.`` with 'key.format'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.connectors.api import ConnectorOption, SourceRequest
from tidemill.connectors.formats.api import (
    DecodeRequest,
    EncodeRequest,
    Format,
    MessageDecoder,
    TextEncoder,
    format_options,
    full_keys,
)
from tidemill.connectors.formats.registry import FILE_OPTIONS, find_format
from tidemill.connectors.kafka.rows import METADATA, KafkaRows
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field

_OF_VALUE = "value."
_OF_KEY = "key."


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Key or value: ``fields`` under their names in the format; ``prefix``: of its options in the table's."""

    format: Format
    fields: tuple[Field, ...]
    options: Mapping[str, str]
    prefix: str

    def declared(self) -> tuple[ConnectorOption, ...]:
        return tuple(replace(o, key=self.prefix + o.key) for o in full_keys(self.format))

    def decoder(
        self, wanted: tuple[Field, ...], metadata: tuple[tuple[Field, str], ...], zone: str
    ) -> MessageDecoder:
        return self.format.message_decoder(
            DecodeRequest(
                columns=self.fields, wanted=wanted, metadata=metadata, options=self.options, time_zone=zone
            )
        )

    def encoder(self, zone: str, *, changelog: bool) -> TextEncoder:
        encoder = self.format.encoder(
            EncodeRequest(fields=self.fields, changelog=changelog, options=self.options, time_zone=zone)
        )
        if not isinstance(encoder, TextEncoder):
            raise ValidationError(f"Format '{self.format.identifier}' is a format of files.")
        return encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAndValue:
    """``key`` is None where messages have none; its fields have lost the prefix of keys, which the table's
    columns ``key_columns`` have."""

    table: CatalogTable
    value: Part
    key: Part | None
    key_columns: tuple[Field, ...]
    upserts: bool

    @staticmethod
    def of(
        table: CatalogTable,
        options: Mapping[str, str],
        declared: tuple[ConnectorOption, ...],
        *,
        upserts: bool,
    ) -> KeyAndValue:
        """ValidationError where the options do not fit each other or the columns."""
        given = OptionValues(declared, options)
        names = _key_names(table, given, upserts)
        fields = {c.name: Field(c.name, c.type) for c in table.physical_columns}
        prefix, include = given["key.fields-prefix"], given["value.fields-include"].upper()
        _check_key(names, fields, prefix, include)
        key_columns = tuple(fields[name] for name in names)
        of_value = tuple(f for f in fields.values() if include == "ALL" or f.name not in names)
        key = None
        if given["key.format"] is not None:
            form = find_format(given["key.format"])
            key = Part(
                format=form,
                fields=tuple(Field(f.name.removeprefix(prefix), f.type) for f in key_columns),
                options=form.completed(_below(options, _OF_KEY), options.get("topic", ""), "key"),
                prefix=_OF_KEY,
            )
        return KeyAndValue(
            table=table,
            value=_value_part(options, of_value),
            key=key,
            key_columns=key_columns,
            upserts=upserts,
        )

    @staticmethod
    def value_metadata(options: Mapping[str, str]) -> dict[str, t.LogicalType]:
        """Keys of the value's format, under 'value.'."""
        found = _value_part(options, ()).format.metadata()
        return {_OF_VALUE + key: kind for key, kind in found.items()}

    def declared(self) -> tuple[ConnectorOption, ...]:
        """The options of the formats, as the table's options name them."""
        return (*self.value.declared(), *(self.key.declared() if self.key else ()))

    def kinds(self) -> frozenset[RowKind]:
        return self.value.format.kinds()

    def check(self) -> None:
        """ValidationError for options of the formats and columns that do not fit."""
        for part in filter(None, (self.value, self.key)):
            own = format_options(part.format, part.options)
            own.check()
            columns = tuple(c for c in self.table.physical_columns if self._in(part, c.name))
            part.format.validate(replace(self.table, columns=columns), own, role="source")
            part.decoder(part.fields, (), "UTC")  # refuses formats of files
        if self.key is not None and self.key.format.kinds() != INSERT_ONLY:
            raise ValidationError(
                "A key format should only deal with INSERT-only records. But 'key.format' ="
                f" '{self.key.format.identifier}' has a changelog mode."
            )
        if self.table.primary_key and not self.upserts and self.kinds() == INSERT_ONLY:
            raise ValidationError(
                f"The Kafka table '{self.table.path}' with '{self.value.format.identifier}' format doesn't"
                " support defining PRIMARY KEY constraint on the table, because it can't guarantee the"
                " semantic of primary key.",
                hint="'connector' = 'upsert-kafka' is a table by key.",
            )
        if self.upserts and self.kinds() != INSERT_ONLY:
            raise ValidationError(
                "'upsert-kafka' connector doesn't support 'value.format' ="
                f" '{self.value.format.identifier}' which is not INSERT-only."
            )

    def rows(self, request: SourceRequest, *, upserts: bool) -> KafkaRows:
        wanted = {f.name for f in request.fields if f.name not in request.metadata}
        of_value = tuple(f for f in self.value.fields if f.name in wanted)
        valued = set() if upserts else {f.name for f in of_value}
        columns = zip(self.key_columns, self.key.fields if self.key else (), strict=True)
        of_key = {c.name: f for c, f in columns if c.name in wanted and c.name not in valued}
        formatted = tuple(
            (f, request.metadata[f.name].removeprefix(_OF_VALUE))
            for f in request.fields
            if f.name in request.metadata and request.metadata[f.name] not in METADATA
        )
        key = self.key.decoder(tuple(of_key.values()), (), request.time_zone) if self.key and of_key else None
        return KafkaRows(
            fields=request.fields,
            value=self.value.decoder(of_value, formatted, request.time_zone),
            key=key,
            of_key={column: f.name for column, f in of_key.items()},
            metadata={n: k for n, k in request.metadata.items() if k in METADATA},
            upserts=upserts,
            changelog=upserts or self.kinds() != INSERT_ONLY,
            sequence=request.sequence,
        )

    def _in(self, part: Part, column: str) -> bool:
        fields = self.key_columns if part is self.key else part.fields
        return any(f.name == column for f in fields)


def names_file(key: str) -> bool:
    """Whether the value of a table's option is a place of a file that a format reads."""
    return key.removeprefix(_OF_KEY).removeprefix(_OF_VALUE) in FILE_OPTIONS


def _key_names(table: CatalogTable, given: OptionValues, upserts: bool) -> tuple[str, ...]:
    if upserts:
        if not table.primary_key:
            raise ValidationError(
                "'upsert-kafka' tables require to define a PRIMARY KEY constraint. The PRIMARY KEY specifies"
                " which columns should be read from or write to the Kafka message key. The PRIMARY KEY also"
                " defines records in the 'upsert-kafka' table should update or delete on which keys."
            )
        return tuple(c.name for c in table.physical_columns if c.name in table.primary_key)
    named, form = given["key.fields"], given["key.format"]
    if form is None and named is not None:
        raise ValidationError(
            "The option 'key.fields' can only be declared if a key format is defined using 'key.format'."
        )
    if form is not None and named is None:
        raise ValidationError(
            "A key format 'key.format' requires the declaration of one or more of key fields"
            " using 'key.fields'."
        )
    return tuple(part.strip() for part in named.split(";") if part.strip()) if named else ()


def _check_key(names: tuple[str, ...], fields: Mapping[str, Field], prefix: str, include: str) -> None:
    for name in names:
        if name not in fields:
            raise ValidationError(
                f"Could not find the field '{name}' in the table schema for usage in the key format. A key"
                " field must be a regular, physical column. The following columns can be selected in the"
                f" 'key.fields' option: [{', '.join(fields)}]"
            )
        if not name.startswith(prefix):
            raise ValidationError(
                "All fields in 'key.fields' must be prefixed with the value of 'key.fields-prefix'"
                f" ('{prefix}'), but field '{name}' is not prefixed."
            )
    if prefix and include == "ALL":
        raise ValidationError(
            "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'. Set it to"
            " 'EXCEPT_KEY' instead to avoid field overlaps."
        )


def _value_part(options: Mapping[str, str], fields: tuple[Field, ...]) -> Part:
    plain, own = options.get("format"), options.get("value.format")
    if plain is not None and own is not None:
        raise ValidationError("Only one of 'format' and 'value.format' can be set.")
    named = plain or own
    if named is None:
        raise ValidationError(
            "One or more required options are missing.\n\nMissing required options are:\n\nformat",
            hint="'value.format' is the same.",
        )
    prefix = "" if plain else _OF_VALUE
    form = find_format(named)
    below = form.completed(_below(options, prefix), options.get("topic", ""), "value")
    return Part(format=form, fields=fields, options=below, prefix=prefix)


def _below(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}
