"""Messages as columns. Cost: the library's compiled parser, and a look at each wanted field of a message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from tidemill.connectors.formats.api import DecodedMessages, RecordError
from tidemill.connectors.formats.protobuf.descriptors import KEY, VALUE, MessageType
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema, arrow_type

_SHOWN = 64
"""Bytes of a bad message in its error."""
_UNSIGNED = {
    FieldDescriptor.CPPTYPE_UINT32: pa.uint32(),
    FieldDescriptor.CPPTYPE_UINT64: pa.uint64(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufMessages:
    """A message without bytes is no row; one of no bytes is a row of defaults. ``defaults``: what a message
    does not have is the default of its field, not NULL. ``skips``: messages that do not fit give no rows."""

    message: MessageType
    wanted: tuple[Field, ...]
    defaults: bool
    skips: bool

    def decode(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        found = self.message.descriptor()
        kind = GetMessageClass(found)
        numbers, parsed = [], []
        for number, data in enumerate(messages):
            if data is None:
                continue
            try:
                parsed.append(self._parsed(kind, data))
                numbers.append(number)
            except DecodeError as e:
                if not self.skips:
                    # Columns of earlier messages may not fit either: the first bad message is named.
                    self._columns(found.fields_by_name, parsed, numbers)
                    raise self._error(str(e), number, data) from None
        table, kept = self._columns(found.fields_by_name, parsed, numbers)
        return DecodedMessages(table=table, messages=np.array(kept, dtype=np.int64))

    def _parsed(self, kind: type[Message], data: bytes) -> Message:
        """DecodeError where the bytes are no message, or one without a required field."""
        message = kind.FromString(data)
        if not message.IsInitialized():
            missing = ", ".join(message.FindInitializationErrors())
            raise DecodeError(f"Message is missing required fields: {missing}")
        return message

    def _error(self, reason: str, number: int, data: bytes) -> RecordError:
        return RecordError(
            f"Failed to deserialize Protobuf message '{self.message.name}': {reason.rstrip('.')}.",
            line=number,
            record=data[:_SHOWN].hex(" "),
        )

    def _columns(
        self, fields: Any, messages: list[Message], numbers: list[int]
    ) -> tuple[pa.Table, list[int]]:
        """The rows, and the numbers of their messages."""
        try:
            return self._table(fields, messages), numbers
        except RecordError:
            fitting = []
        for at, message in enumerate(messages):
            try:
                self._table(fields, [message])
                fitting.append(at)
            except RecordError as e:
                if not self.skips:
                    raise RecordError(e.reason, line=numbers[at], field=e.field) from None
        return self._table(fields, [messages[at] for at in fitting]), [numbers[at] for at in fitting]

    def _table(self, fields: Any, messages: list[Message]) -> pa.Table:
        """RecordError without a line names the column that does not fit."""
        if not self.wanted:
            return pa.table({"$": pa.nulls(len(messages))}).select([])
        columns = [self._checked(field, fields[field.name], messages) for field in self.wanted]
        return pa.Table.from_arrays(columns, schema=arrow_schema(self.wanted))

    def _checked(self, field: Field, found: FieldDescriptor, messages: list[Message]) -> pa.Array:
        try:
            column = self._column(found, field.type, messages)
        except (ValueError, OverflowError) as e:
            raise RecordError(
                f"Column '{field.name}' cannot be read: {e}", line=-1, field=field.name
            ) from None
        if column.null_count and not field.type.nullable:
            raise RecordError(
                f"Column '{field.name}' is NOT NULL, a message lacks it.", line=-1, field=field.name
            )
        return column

    def _column(self, found: FieldDescriptor, kind: t.LogicalType, messages: list[Message]) -> pa.Array:
        values = list(map(attrgetter(found.name), messages))
        if isinstance(kind, t.MapType):
            return self._map(found, kind, values)
        if isinstance(kind, t.ArrayType):
            flat = [value for part in values for value in part]
            return self._list(values, self._values(found, kind.element, flat))
        absent = self._absent(found, messages)
        if absent is None or isinstance(kind, t.RowType):
            return self._values(found, kind, values, absent)
        return self._values(
            found, kind, [None if gone else v for v, gone in zip(values, absent, strict=True)]
        )

    def _absent(self, found: FieldDescriptor, messages: list[Message]) -> list[bool] | None:
        """Which messages have NULL; None where none has."""
        plain = found.message_type is None and (self.message.proto3 or not found.has_presence)
        if self.defaults or plain:
            return None
        return [not message.HasField(found.name) for message in messages]

    def _values(
        self, found: FieldDescriptor, kind: t.LogicalType, values: list[Any], absent: list[bool] | None = None
    ) -> pa.Array:
        """``absent``: of messages, those that are NULL."""
        if not isinstance(kind, t.RowType):
            return _scalars(found, kind, values)
        fields = found.message_type.fields_by_name
        return pa.StructArray.from_arrays(
            [self._column(fields[f.name], f.type, values) for f in kind.fields],
            names=[f.name for f in kind.fields],
            mask=None if absent is None else pa.array(absent, pa.bool_()),
        )

    def _map(self, found: FieldDescriptor, kind: t.MapType, maps: list[Any]) -> pa.Array:
        """Entries by key, since a message has them in any order."""
        parts = found.message_type.fields_by_name
        flat = [entry for part in maps for entry in sorted(part.items(), key=itemgetter(0))]
        keys = self._values(parts[KEY], kind.key, [key for key, _ in flat])
        values = self._values(parts[VALUE], kind.value, [value for _, value in flat])
        return self._list(maps, pa.StructArray.from_arrays([keys, values], names=[KEY, VALUE]))

    def _list(self, lists: list[Any], elements: pa.Array) -> pa.Array:
        lengths = np.fromiter(map(len, lists), dtype=np.int32, count=len(lists))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        empty = None if self.defaults else pa.array(lengths == 0)
        return pa.ListArray.from_arrays(pa.array(offsets), elements, mask=empty)


def _scalars(found: FieldDescriptor, kind: t.LogicalType, values: list[Any]) -> pa.Array:
    """ValueError where a value does not fit. Unsigned numbers have the bits of Java's signed ones."""
    if found.cpp_type in _UNSIGNED:
        return pa.array(values, _UNSIGNED[found.cpp_type]).view(arrow_type(kind))
    if not isinstance(kind, t.CHARACTER_TYPES):
        return pa.array(values, arrow_type(kind))
    if found.enum_type is not None:
        values = _names(found, values)
    elif bytes in set(map(type, values)):  # proto2 has texts that are not UTF-8
        values = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values]
    return pa.array(values, pa.string())


def _names(found: FieldDescriptor, numbers: list[int | None]) -> list[str | None]:
    names: dict[int | None, str | None] = {None: None}
    for number in set(numbers) - {None}:
        if number not in found.enum_type.values_by_number:
            raise ValueError(f"the enum {found.enum_type.full_name} has no value {number}")
        names[number] = found.enum_type.values_by_number[number].name
    return [names[number] for number in numbers]
