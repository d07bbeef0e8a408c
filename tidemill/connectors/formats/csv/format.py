"""The ``csv`` format: RFC 4180 with Flink's options, no header line."""

from __future__ import annotations

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.api import (
    Decoder,
    DecodeRequest,
    Encoder,
    EncodeRequest,
    Format,
    Framing,
    MessageDecoder,
)
from tidemill.connectors.formats.csv.decode import CsvDecoder
from tidemill.connectors.formats.csv.dialect import OPTIONS, read_dialect
from tidemill.connectors.formats.csv.encode import CsvEncoder
from tidemill.connectors.formats.messages import LineMessages
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ValidationError
from tidemill.types import logical as t

_UNREADABLE = (t.MapType, t.MultisetType)


class CsvFormat(Format):
    identifier = "csv"
    options: tuple[ConnectorOption, ...] = OPTIONS
    extension = "csv"
    is_positional = True

    def framing(self, options: OptionValues) -> Framing:
        return Framing.QUOTED

    def quote(self, options: OptionValues) -> str:
        return read_dialect(options).quote

    def validate(self, table: CatalogTable, options: OptionValues, *, role: str) -> None:
        read_dialect(options)
        for column in table.physical_columns:
            if isinstance(column.type, _UNREADABLE):
                raise ValidationError(f"Unsupported type '{column.type}' for field '{column.name}'.")

    def decoder(self, request: DecodeRequest) -> Decoder:
        dialect = read_dialect(OptionValues(OPTIONS, request.options, "csv."))
        return CsvDecoder(columns=request.columns, wanted=request.wanted, dialect=dialect)

    def message_decoder(self, request: DecodeRequest) -> MessageDecoder:
        return LineMessages(decoder=self.decoder(request), first=True)

    def encoder(self, request: EncodeRequest) -> Encoder:
        dialect = read_dialect(OptionValues(OPTIONS, request.options, "csv."))
        return CsvEncoder(fields=request.fields, dialect=dialect)


FORMAT = CsvFormat()
