"""The ``json`` format: one object a line."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.api import (
    LINE_COLUMN,
    Block,
    Decoder,
    DecodeRequest,
    Encoder,
    EncodeRequest,
    Format,
    MessageDecoder,
)
from tidemill.connectors.formats.json.encode import JsonEncoder, json_style
from tidemill.connectors.formats.json.options import JSON_OPTIONS, check_choices
from tidemill.connectors.formats.json.reader import JsonReader
from tidemill.connectors.formats.json.values import JsonRules
from tidemill.connectors.formats.messages import LineMessages, json_line
from tidemill.connectors.formats.text_scalars import TextRules
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types import logical as t


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonDecoder:
    reader: JsonReader
    numbered: bool = False

    def decode(self, block: Block) -> pa.Table:
        rows = self.reader.read(block.data)
        return rows.table.append_column(LINE_COLUMN, pa.array(rows.lines)) if self.numbered else rows.table


def check_map_keys(table: CatalogTable) -> None:
    """JSON objects have text keys only; NotSupportedError for other MAPs."""
    for column in table.physical_columns:
        kind = column.type
        key = kind.key if isinstance(kind, t.MapType) else None
        if key is not None and not isinstance(key, t.CHARACTER_TYPES):
            raise NotSupportedError(
                f"JSON format doesn't support non-string as key type of map. The type is: {kind}"
            )


class JsonFormat(Format):
    identifier = "json"
    options: tuple[ConnectorOption, ...] = JSON_OPTIONS
    extension = "json"

    def validate(self, table: CatalogTable, options: OptionValues, *, role: str) -> None:
        check_choices(self.identifier, options)
        check_map_keys(table)
        if options["fail-on-missing-field"] and options["ignore-parse-errors"]:
            raise ValidationError("fail-on-missing-field and ignore-parse-errors shouldn't both be true.")

    def decoder(self, request: DecodeRequest) -> Decoder:
        options = OptionValues(JSON_OPTIONS, request.options, "json.")
        rules = JsonRules(
            text=TextRules(timestamps=options["timestamp-format.standard"]),
            lenient=options["ignore-parse-errors"],
            fail_on_missing=options["fail-on-missing-field"],
        )
        return JsonDecoder(reader=JsonReader(fields=request.wanted, rules=rules), numbered=request.numbered)

    def message_decoder(self, request: DecodeRequest) -> MessageDecoder:
        return LineMessages(decoder=self.decoder(replace(request, numbered=True)), one_line=json_line)

    def encoder(self, request: EncodeRequest) -> Encoder:
        options = OptionValues(JSON_OPTIONS, request.options, "json.")
        return JsonEncoder(fields=request.fields, style=json_style(options))


FORMAT = JsonFormat()
