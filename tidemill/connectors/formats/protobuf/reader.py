"""Decodes messages into columns. Cost: the library's compiled parser, and a read of each wanted field."""

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
    """A message of None gives no row; an empty message gives a row of defaults. ``defaults``: a field that a
    message lacks is the field's default, not NULL. ``skips``: messages that do not fit give no rows."""

    message: MessageType
    wanted: tuple[Field, ...]
    defaults: bool
    skips: bool

    def decode(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        descriptor = self.message.descriptor()
        kind = GetMessageClass(descriptor)
        numbers, parsed = [], []
        for index, payload in enumerate(messages):
            if payload is None:
                continue
            try:
                parsed.append(self._parsed(kind, payload))
                numbers.append(index)
            except DecodeError as e:
                if not self.skips:
                    # Columns of earlier messages may not fit either: the first bad message is named.
                    self._columns(descriptor.fields_by_name, parsed, numbers)
                    raise self._error(str(e), index, payload) from None
        table, row_numbers = self._columns(descriptor.fields_by_name, parsed, numbers)
        return DecodedMessages(table=table, messages=np.array(row_numbers, dtype=np.int64))

    def _parsed(self, kind: type[Message], data: bytes) -> Message:
        """DecodeError if the bytes are no message, or the message lacks a required field."""
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
            fitting_indexes = []
        for index, message in enumerate(messages):
            try:
                self._table(fields, [message])
                fitting_indexes.append(index)
            except RecordError as e:
                if not self.skips:
                    raise RecordError(e.reason, line=numbers[index], field=e.field) from None
        return self._table(fields, [messages[index] for index in fitting_indexes]), [
            numbers[index] for index in fitting_indexes
        ]

    def _table(self, fields: Any, messages: list[Message]) -> pa.Table:
        """RecordError without a line names the column that does not fit."""
        if not self.wanted:
            return pa.table({"$": pa.nulls(len(messages))}).select([])
        columns = [self._checked(field, fields[field.name], messages) for field in self.wanted]
        return pa.Table.from_arrays(columns, schema=arrow_schema(self.wanted))

    def _checked(self, field: Field, descriptor: FieldDescriptor, messages: list[Message]) -> pa.Array:
        try:
            column = self._column(descriptor, field.type, messages)
        except (ValueError, OverflowError) as e:
            raise RecordError(
                f"Column '{field.name}' cannot be read: {e}", line=-1, field=field.name
            ) from None
        if column.null_count and not field.type.nullable:
            raise RecordError(
                f"Column '{field.name}' is NOT NULL, a message lacks it.", line=-1, field=field.name
            )
        return column

    def _column(self, descriptor: FieldDescriptor, kind: t.LogicalType, messages: list[Message]) -> pa.Array:
        values = list(map(attrgetter(descriptor.name), messages))
        if isinstance(kind, t.MapType):
            return self._map(descriptor, kind, values)
        if isinstance(kind, t.ArrayType):
            elements = [value for repeated in values for value in repeated]
            return self._list(values, self._values(descriptor, kind.element, elements))
        absent = self._absent(descriptor, messages)
        if absent is None or isinstance(kind, t.RowType):
            return self._values(descriptor, kind, values, absent)
        return self._values(
            descriptor, kind, [None if is_absent else v for v, is_absent in zip(values, absent, strict=True)]
        )

    def _absent(self, descriptor: FieldDescriptor, messages: list[Message]) -> list[bool] | None:
        """Which messages lack the field, so that it is NULL; None if no message can lack it."""
        has_default = descriptor.message_type is None and (self.message.proto3 or not descriptor.has_presence)
        if self.defaults or has_default:
            return None
        return [not message.HasField(descriptor.name) for message in messages]

    def _values(
        self,
        descriptor: FieldDescriptor,
        kind: t.LogicalType,
        values: list[Any],
        absent: list[bool] | None = None,
    ) -> pa.Array:
        """``values`` as an array of ``kind``. ``absent``: which rows of a ROW are NULL."""
        if not isinstance(kind, t.RowType):
            return _scalars(descriptor, kind, values)
        fields = descriptor.message_type.fields_by_name
        return pa.StructArray.from_arrays(
            [self._column(fields[f.name], f.type, values) for f in kind.fields],
            names=[f.name for f in kind.fields],
            mask=None if absent is None else pa.array(absent, pa.bool_()),
        )

    def _map(self, descriptor: FieldDescriptor, kind: t.MapType, maps: list[Any]) -> pa.Array:
        """Entries are sorted by key: the library gives them in any order."""
        parts = descriptor.message_type.fields_by_name
        flat = [entry for entries in maps for entry in sorted(entries.items(), key=itemgetter(0))]
        keys = self._values(parts[KEY], kind.key, [key for key, _ in flat])
        values = self._values(parts[VALUE], kind.value, [value for _, value in flat])
        return self._list(maps, pa.StructArray.from_arrays([keys, values], names=[KEY, VALUE]))

    def _list(self, lists: list[Any], elements: pa.Array) -> pa.Array:
        lengths = np.fromiter(map(len, lists), dtype=np.int32, count=len(lists))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        empty = None if self.defaults else pa.array(lengths == 0)
        return pa.ListArray.from_arrays(pa.array(offsets), elements, mask=empty)


def _scalars(descriptor: FieldDescriptor, kind: t.LogicalType, values: list[Any]) -> pa.Array:
    """ValueError if a value does not fit. Unsigned numbers become Java's signed numbers of the same bits."""
    if descriptor.cpp_type in _UNSIGNED:
        return pa.array(values, _UNSIGNED[descriptor.cpp_type]).view(arrow_type(kind))
    if not isinstance(kind, t.CHARACTER_TYPES):
        return pa.array(values, arrow_type(kind))
    if descriptor.enum_type is not None:
        values = _names(descriptor, values)
    elif bytes in set(map(type, values)):  # proto2 has texts that are not UTF-8
        values = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values]
    return pa.array(values, pa.string())


def _names(descriptor: FieldDescriptor, numbers: list[int | None]) -> list[str | None]:
    names: dict[int | None, str | None] = {None: None}
    for number in set(numbers) - {None}:
        if number not in descriptor.enum_type.values_by_number:
            raise ValueError(f"the enum {descriptor.enum_type.full_name} has no value {number}")
        names[number] = descriptor.enum_type.values_by_number[number].name
    return [names[number] for number in numbers]
