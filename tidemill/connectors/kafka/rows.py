"""Messages as rows: value and key through their formats, metadata columns, ``$kind``, ``$seq``.

As in Flink a column that is in key and value is the value's. Only those columns are decoded that are asked
for. Cost besides the formats': a call per message for each metadata column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Message,
)

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.connectors.formats.api import DecodedMessages, Indexes, MessageDecoder, RecordError
from tidemill.connectors.kafka.offsets import KafkaRange
from tidemill.errors import ConnectorError
from tidemill.types import logical as t
from tidemill.types.logical import STRING, Field
from tidemill.types.physical import arrow_type

_ROWS_OF_A_MESSAGE = 16
"""Bits of a row number for the rows of one message."""
_TIMESTAMPS = {TIMESTAMP_CREATE_TIME: "CreateTime", TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime"}
_NAME = STRING.with_nullable(False)

METADATA: dict[str, t.LogicalType] = {
    "topic": _NAME,
    "partition": t.IntType(nullable=False),
    "headers": t.MapType(key=_NAME, value=t.VarBinaryType(), nullable=False),
    "leader-epoch": t.IntType(),
    "offset": t.BigIntType(nullable=False),
    "timestamp": t.LocalZonedTimestampType(precision=3, nullable=False),
    "timestamp-type": _NAME,
}
WRITABLE = ("headers", "timestamp")
_OF_A_MESSAGE: dict[str, Callable[[Message], Any]] = {
    "topic": lambda m: m.topic(),
    "partition": lambda m: m.partition(),
    "headers": lambda m: list(dict(m.headers() or ()).items()),
    "leader-epoch": lambda m: m.leader_epoch(),
    "offset": lambda m: m.offset(),
    "timestamp": lambda m: m.timestamp()[1] * 1000,
    "timestamp-type": lambda m: _TIMESTAMPS.get(m.timestamp()[0], "NoTimestampType"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRows:
    """``fields``: what to give, in order, each a column of ``value``, of ``key`` or of ``metadata`` (by field
    the key of Kafka's). ``key`` is None where nothing of it is needed. ``of_key``: the columns of the key,
    with their names in its format. ``upserts``: a message without a value deletes its key. ``changelog``:
    the rows have ``$kind``."""

    fields: tuple[Field, ...]
    value: MessageDecoder
    key: MessageDecoder | None
    of_key: Mapping[str, str]
    metadata: Mapping[str, str]
    upserts: bool
    changelog: bool
    sequence: bool

    def table(self, messages: Sequence[Message], part: KafkaRange) -> pa.Table:
        """ConnectorError with topic, partition and offset of a message that does not fit."""
        values = self._decoded(self.value, [m.value() for m in messages], messages, "value")
        keys = self._keys(messages)
        numbers = self._numbers(messages, values)
        columns = {f.name: self._column(f, numbers, values, keys, messages) for f in self.fields}
        if self.changelog:
            columns[KIND_COLUMN] = self._kinds(numbers, values)
        if self.sequence:
            columns[SEQUENCE_COLUMN] = pa.array(_sequence(numbers, messages, part))
        return pa.table(columns)

    def _numbers(self, messages: Sequence[Message], values: DecodedMessages) -> Indexes:
        """The message of each row: those with a value, and of an upsert table those without one, too."""
        if not self.upserts:
            return values.messages
        gone = np.array([i for i, m in enumerate(messages) if m.value() is None], dtype=np.int64)
        return np.sort(np.concatenate([values.messages, gone]))

    def _keys(self, messages: Sequence[Message]) -> DecodedMessages | None:
        if self.key is None:
            return None
        return self._decoded(self.key, [m.key() for m in messages], messages, "key")

    def _decoded(
        self,
        decoder: MessageDecoder,
        data: list[bytes | None],
        messages: Sequence[Message],
        what: str,
    ) -> DecodedMessages:
        try:
            return decoder.decode(data)
        except RecordError as e:
            message = messages[max(e.line, 0)]
            place = f"topic '{message.topic()}', partition {message.partition()}, offset {message.offset()}"
            hint = "\n".join(filter(None, (e.record and f"The record: {e.record}", e.hint)))
            raise ConnectorError(f"{e.reason} ({what} of {place})", hint=hint) from None

    def _column(
        self,
        field: Field,
        numbers: Indexes,
        values: DecodedMessages,
        keys: DecodedMessages | None,
        messages: Sequence[Message],
    ) -> pa.Array:
        if field.name in self.metadata:
            get = _OF_A_MESSAGE[self.metadata[field.name]]
            return _array(field, [get(m) for m in messages]).take(pa.array(numbers))
        found = _taken(field, values, field.name, numbers, self.upserts)
        if keys is None or field.name not in self.of_key:
            return _null(field, len(numbers)) if found is None else found
        of_key = _taken(field, keys, self.of_key[field.name], numbers, True)
        if found is None or of_key is None:
            return of_key if found is None else found
        # A message without a value has its key alone.
        gone = ~np.isin(numbers, values.messages)
        places = np.arange(len(numbers)) + np.where(gone, len(numbers), 0)
        return pa.concat_arrays([found, of_key]).take(pa.array(places))

    def _kinds(self, numbers: Indexes, values: DecodedMessages) -> pa.Array:
        if not self.upserts:
            return values.table.column(KIND_COLUMN).combine_chunks()
        gone = ~np.isin(numbers, values.messages)
        return pa.array(np.where(gone, RowKind.DELETE, RowKind.UPDATE_AFTER).astype(np.int8))


def _taken(
    field: Field, decoded: DecodedMessages, name: str, numbers: Indexes, by_message: bool
) -> pa.Array | None:
    """The values of column ``name`` in the rows of the messages ``numbers``; None where there is none.
    ``by_message``: a message has at most one row, maybe none."""
    if name not in decoded.table.column_names:
        return None
    values = decoded.table.column(name).combine_chunks()
    if not by_message:
        return values
    places = np.searchsorted(decoded.messages, numbers)
    inside = places < len(decoded.messages)
    there = inside.copy()
    there[inside] = decoded.messages[places[inside]] == numbers[inside]
    return values.take(pa.array(np.where(there, places, 0), mask=~there))


def _array(field: Field, values: list[Any]) -> pa.Array:
    wanted = arrow_type(field.type)
    return (
        pa.array(values, pa.int64()).cast(wanted)
        if pa.types.is_timestamp(wanted)
        else pa.array(values, wanted)
    )


def _null(field: Field, rows: int) -> pa.Array:
    return pa.nulls(rows, arrow_type(field.type))


def first_row(part: KafkaRange) -> int:
    """The ``$seq`` of its first row, if it has one."""
    return part.number << _ROWS_OF_A_MESSAGE


def _sequence(numbers: Indexes, messages: Sequence[Message], part: KafkaRange) -> Indexes:
    """Grows with the messages of all partitions as they are read, and with the rows of one message."""
    offsets = np.array([m.offset() for m in messages], dtype=np.int64)[numbers]
    firsts = np.searchsorted(numbers, numbers)
    places = np.minimum(np.arange(len(numbers)) - firsts, (1 << _ROWS_OF_A_MESSAGE) - 1)
    made: Indexes = ((part.number + offsets - part.start) << _ROWS_OF_A_MESSAGE) + places
    return made
