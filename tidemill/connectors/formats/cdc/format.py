"""The base of the CDC formats: JSON lines that change rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import ALL_KINDS, RowKind
from tidemill.connectors.formats.api import DecodeRequest, Encoder, EncodeRequest, Format, MessageDecoder
from tidemill.connectors.formats.json.encode import EnvelopeEncoder, json_style
from tidemill.connectors.formats.json.format import check_map_keys
from tidemill.connectors.formats.json.options import check_choices
from tidemill.connectors.formats.json.values import JsonRules
from tidemill.connectors.formats.messages import LineMessages, json_line
from tidemill.connectors.formats.text_scalars import TextRules
from tidemill.connectors.option_values import OptionValues


class CdcFormat(Format):
    """``insert`` and ``delete``: the texts that the writer puts before and after a row's object."""

    extension = "json"
    insert: tuple[str, str]
    delete: tuple[str, str]

    def validate(self, table: CatalogTable, options: OptionValues, *, role: str) -> None:
        check_choices(self.identifier, options)
        check_map_keys(table)

    def kinds(self) -> frozenset[RowKind]:
        return ALL_KINDS

    def message_decoder(self, request: DecodeRequest) -> MessageDecoder:
        return LineMessages(decoder=self.decoder(replace(request, numbered=True)), one_line=json_line)

    def encoder(self, request: EncodeRequest) -> Encoder:
        return EnvelopeEncoder(
            fields=request.fields,
            style=json_style(self.read(request.options)),
            insert=self.insert,
            delete=self.delete,
        )

    def read(self, options: Mapping[str, str]) -> OptionValues:
        """The format's options among a table's ``options``."""
        return OptionValues(self.options, options, f"{self.identifier}.")

    def rules(self, options: OptionValues) -> JsonRules:
        return JsonRules(
            text=TextRules(timestamps=options["timestamp-format.standard"]),
            lenient=options["ignore-parse-errors"],
        )
