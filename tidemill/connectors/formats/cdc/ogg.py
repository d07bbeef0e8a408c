"""The ``ogg-json`` format: Oracle GoldenGate's messages with before and after images.

``I`` is +I of ``after``; ``U`` is -U of ``before`` and +U of ``after``; ``D`` is -D of ``before``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.api import Block, Decoder, DecodeRequest
from tidemill.connectors.formats.cdc.format import CdcFormat
from tidemill.connectors.formats.cdc.images import image_changes
from tidemill.connectors.formats.cdc.messages import Messages, assemble, equals, read_messages
from tidemill.connectors.formats.json.options import SHARED
from tidemill.connectors.formats.json.reader import JsonReader
from tidemill.connectors.formats.json.values import JsonRules
from tidemill.connectors.formats.text_scalars import TextRules
from tidemill.connectors.formats.text_types import convert_text
from tidemill.types import logical as t
from tidemill.types.logical import STRING, Field
from tidemill.types.physical import arrow_type

_MICROS = t.LocalZonedTimestampType(precision=6)
_KEPT = t.TimestampType(precision=3)
"""Of a message's times, as in Flink, though its columns have room for more."""
_METADATA: dict[str, t.LogicalType] = {
    "table": STRING,
    "primary-keys": t.ArrayType(element=STRING),
    "ingestion-timestamp": _MICROS,
    "event-timestamp": _MICROS,
}
# Field of the message and its raw type, per metadata key.
_RAW: dict[str, tuple[str, t.LogicalType]] = {
    "table": ("table", STRING),
    "primary-keys": ("primary_keys", t.ArrayType(element=STRING)),
    "ingestion-timestamp": ("current_ts", STRING),
    "event-timestamp": ("op_ts", STRING),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OggDecoder:
    wanted: tuple[Field, ...]
    metadata: tuple[tuple[Field, str], ...]
    rules: JsonRules
    numbered: bool

    def decode(self, block: Block) -> pa.Table:
        messages = read_messages(self._reader(), block.data, "Ogg")
        op = messages.column("op_type")
        valid = messages.of_type(op, "op_type", ("I", "U", "D"))
        parts = image_changes(
            messages,
            messages.column("before"),
            messages.column("after"),
            insert=valid & equals(op, "I"),
            update=valid & equals(op, "U"),
            delete=valid & equals(op, "D"),
        )
        values = [(f, _value(key, f, messages)) for f, key in self.metadata]
        return assemble(parts, self.wanted, values + messages.numbers(self.numbered))

    def _reader(self) -> JsonReader:
        image = t.RowType(fields=self.wanted)
        fields = [Field("before", image), Field("after", image), Field("op_type", STRING)]
        fields += [Field(*_RAW[key]) for key in dict.fromkeys(key for _, key in self.metadata)]
        return JsonReader(fields=tuple(fields), rules=self.rules, error_prefix="Corrupt Ogg JSON message")


def _value(key: str, field: Field, messages: Messages) -> pa.Array:
    name, raw = _RAW[key]
    values = messages.column(name)
    if raw != STRING or not isinstance(field.type, t.LocalZonedTimestampType):
        return values
    spaced = pc.replace_substring(values, "T", " ")  # op_ts has a blank, current_ts a T
    moments = convert_text(spaced, _KEPT, TextRules()).values
    return moments.cast(pa.int64()).cast(arrow_type(field.type))


class OggFormat(CdcFormat):
    identifier = "ogg-json"
    options: tuple[ConnectorOption, ...] = SHARED
    insert = ('{"before":null,"after":', ',"op_type":"I"}')
    delete = ('{"before":', ',"after":null,"op_type":"D"}')

    def metadata(self) -> Mapping[str, t.LogicalType]:
        return _METADATA

    def decoder(self, request: DecodeRequest) -> Decoder:
        rules = self.rules(self.read(request.options))
        return OggDecoder(
            wanted=request.wanted, metadata=request.metadata, rules=rules, numbered=request.numbered
        )


FORMAT = OggFormat()
