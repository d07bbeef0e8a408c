"""The ``maxwell-json`` format: Maxwell's messages, whose ``old`` has only the changed columns.

``insert`` is +I of ``data``; ``update`` is -U of ``data`` with the values of ``old``, and +U of ``data``;
``delete`` is -D of ``data``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.api import Block, Decoder, DecodeRequest
from tidemill.connectors.formats.cdc.format import CdcFormat
from tidemill.connectors.formats.cdc.messages import (
    ExplicitNulls,
    Mask,
    assemble,
    changes,
    completed,
    equals,
    instants,
    read_messages,
    valid,
)
from tidemill.connectors.formats.json.options import SHARED
from tidemill.connectors.formats.json.reader import JsonReader
from tidemill.connectors.formats.json.values import JsonRules
from tidemill.types import logical as t
from tidemill.types.logical import STRING, Field

_METADATA: dict[str, t.LogicalType] = {
    "database": STRING,
    "table": STRING,
    "primary-key-columns": t.ArrayType(element=STRING),
    "ingestion-timestamp": t.LocalZonedTimestampType(precision=3),
}
# Field of the message and its raw type, per metadata key.
_RAW: dict[str, tuple[str, t.LogicalType]] = {
    "database": ("database", STRING),
    "table": ("table", STRING),
    "primary-key-columns": ("primary_key_columns", t.ArrayType(element=STRING)),
    "ingestion-timestamp": ("ts", t.BIGINT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxwellDecoder:
    wanted: tuple[Field, ...]
    metadata: tuple[tuple[Field, str], ...]
    rules: JsonRules
    numbered: bool

    def decode(self, block: Block) -> pa.Table:
        messages = read_messages(self._reader(), block.data, "Maxwell")
        kind, data, old = (messages.column(n) for n in ("type", "data", "old"))
        good = messages.of_type(kind, "type", ("insert", "update", "delete"))
        good &= messages.reject(good & ~valid(data), 'The "data" field is null.')
        update = good & equals(kind, "update")
        update &= messages.reject(update & ~valid(old), 'The "old" field of an update message is null.')
        nulls = messages.explicit_nulls(update, "old")
        update &= nulls.readable
        before = completed(old, data, _by_field(nulls, messages.count))
        parts = [
            changes(data, good & equals(kind, "insert"), RowKind.INSERT, 0),
            changes(before, update, RowKind.UPDATE_BEFORE, 0),
            changes(data, update, RowKind.UPDATE_AFTER, 1),
            changes(data, good & equals(kind, "delete"), RowKind.DELETE, 0),
        ]
        values = [(f, _metadata(messages.column(_RAW[key][0]), f)) for f, key in self.metadata]
        return assemble(parts, self.wanted, values + messages.numbers(self.numbered))

    def _reader(self) -> JsonReader:
        image = t.RowType(fields=self.wanted)
        fields = [Field("data", image), Field("old", image), Field("type", STRING)]
        fields += [Field(*_RAW[key]) for key in dict.fromkeys(key for _, key in self.metadata)]
        return JsonReader(fields=tuple(fields), rules=self.rules, error_prefix="Corrupt Maxwell JSON message")


def _metadata(values: pa.Array, field: Field) -> pa.Array:
    """``values`` as the metadata column ``field``. Maxwell's times are in seconds."""
    seconds = pa.types.is_integer(values.type)
    return instants(pc.multiply_checked(values, 1000) if seconds else values, field.type)


def _by_field(nulls: ExplicitNulls, count: int) -> dict[str, Mask]:
    masks: dict[str, Mask] = {}
    for message, _, field in nulls.fields:
        masks.setdefault(field, np.zeros(count, dtype=bool))[message] = True
    return masks


class MaxwellFormat(CdcFormat):
    identifier = "maxwell-json"
    options: tuple[ConnectorOption, ...] = SHARED
    insert = ('{"data":', ',"type":"insert"}')
    delete = ('{"data":', ',"type":"delete"}')

    def metadata(self) -> Mapping[str, t.LogicalType]:
        return _METADATA

    def decoder(self, request: DecodeRequest) -> Decoder:
        rules = self.rules(self.read(request.options))
        return MaxwellDecoder(
            wanted=request.wanted, metadata=request.metadata, rules=rules, numbered=request.numbered
        )


FORMAT = MaxwellFormat()
