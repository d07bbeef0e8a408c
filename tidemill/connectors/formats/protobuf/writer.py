"""Encodes rows as messages. Cost: one message object of the compiled library per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import EncodeError
from google.protobuf.message_factory import GetMessageClass

from tidemill.connectors.formats.api import TextEncoder
from tidemill.connectors.formats.protobuf.descriptors import KEY, VALUE, MessageType, is_map
from tidemill.errors import ConnectorError
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.python_values import python_values

Converter = Callable[[Any], Any]
"""From a Python value of an Arrow column, not NULL, to the value that a message takes."""
_BITS = {
    FieldDescriptor.CPPTYPE_UINT32: 0xFFFF_FFFF,
    FieldDescriptor.CPPTYPE_UINT64: 0xFFFF_FFFF_FFFF_FFFF,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufEncoder(TextEncoder):
    """Writes a message per row; NULL fields are not set. ``null_text``: for NULL in arrays and maps of
    text."""

    message: MessageType
    fields: tuple[Field, ...]
    null_text: str

    def texts(self, table: pa.Table) -> pa.Array:
        """ConnectorError names the column whose values cannot be written."""
        descriptor = self.message.descriptor()
        message_class, descriptors = GetMessageClass(descriptor), descriptor.fields_by_name
        names = [field.name for field in self.fields]
        columns = [self._values(f, descriptors[f.name], table.column(f.name)) for f in self.fields]
        try:
            rows = [message_class(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]
            # Maps by key: a key has the same bytes each time.
            return pa.array([row.SerializeToString(deterministic=True) for row in rows], pa.binary())
        except EncodeError as e:
            raise ConnectorError(f"Cannot write a row as a Protobuf message: {e}.") from None

    def _values(self, field: Field, descriptor: FieldDescriptor, values: pa.ChunkedArray) -> list[Any]:
        convert = self._field(descriptor, field.type)
        try:
            return [None if value is None else convert(value) for value in python_values(values)]
        except ValueError as e:
            raise ConnectorError(f"Fail to serialize at field: {field.name}. {e}.") from None

    def _field(self, descriptor: FieldDescriptor, kind: t.LogicalType) -> Converter:
        if is_map(descriptor):
            assert isinstance(kind, t.MapType)
            parts = descriptor.message_type.fields_by_name
            key, value = self._element(parts[KEY], kind.key), self._element(parts[VALUE], kind.value)
            return lambda entries: {key(e[KEY]): value(e[VALUE]) for e in entries}
        if isinstance(kind, t.ArrayType):
            element = self._element(descriptor, kind.element)
            return lambda elements: [element(e) for e in elements]
        return self._one(descriptor, kind)

    def _element(self, descriptor: FieldDescriptor, kind: t.LogicalType) -> Converter:
        """Messages have no NULL in lists and maps; the default of the element's type stands for it."""
        convert, default = self._one(descriptor, kind), self._default(descriptor)
        return lambda value: default if value is None else convert(value)

    def _default(self, descriptor: FieldDescriptor) -> Any:
        if descriptor.message_type is not None:
            return GetMessageClass(descriptor.message_type)()
        if descriptor.enum_type is not None:
            return descriptor.enum_type.values[0].number
        if descriptor.type == FieldDescriptor.TYPE_BYTES:
            return b""
        return self.null_text if descriptor.type == FieldDescriptor.TYPE_STRING else 0

    def _one(self, descriptor: FieldDescriptor, kind: t.LogicalType) -> Converter:
        if isinstance(kind, t.RowType):
            return self._message(descriptor, kind)
        if descriptor.enum_type is not None:
            return _enum(descriptor)
        if descriptor.cpp_type in _BITS:
            bits = _BITS[descriptor.cpp_type]
            return lambda number: number & bits
        return lambda value: value

    def _message(self, descriptor: FieldDescriptor, kind: t.RowType) -> Converter:
        message_class, parts = (
            GetMessageClass(descriptor.message_type),
            descriptor.message_type.fields_by_name,
        )
        converters = [(f.name, self._field(parts[f.name], f.type)) for f in kind.fields]
        return lambda row: message_class(
            **{n: convert(row[n]) for n, convert in converters if row[n] is not None}
        )


def _enum(descriptor: FieldDescriptor) -> Converter:
    """Takes a name or a number. ValueError for a value not in the enum; Flink writes the enum's first
    value."""
    names, numbers = descriptor.enum_type.values_by_name, descriptor.enum_type.values_by_number

    def to_number(value: Any) -> int:
        if value not in (names if isinstance(value, str) else numbers):
            raise ValueError(f"The enum {descriptor.enum_type.full_name} has no value {value}")
        return names[value].number if isinstance(value, str) else int(value)

    return to_number
