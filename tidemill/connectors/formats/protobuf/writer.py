"""Rows as messages. Cost: a message of the compiled library per row, made of Python's values."""

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

Make = Callable[[Any], Any]
"""From a value of Arrow's that is not NULL to one that a message takes."""
_BITS = {
    FieldDescriptor.CPPTYPE_UINT32: 0xFFFF_FFFF,
    FieldDescriptor.CPPTYPE_UINT64: 0xFFFF_FFFF_FFFF_FFFF,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufEncoder(TextEncoder):
    """A message per row; what is NULL is not set. ``null_text``: for NULL in arrays and maps of text."""

    message: MessageType
    fields: tuple[Field, ...]
    null_text: str

    def texts(self, table: pa.Table) -> pa.Array:
        """ConnectorError names the column whose values cannot be written."""
        found = self.message.descriptor()
        kind, parts = GetMessageClass(found), found.fields_by_name
        names = [field.name for field in self.fields]
        columns = [self._values(f, parts[f.name], table.column(f.name)) for f in self.fields]
        try:
            rows = [kind(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]
            # Maps by key: a key has the same bytes each time.
            return pa.array([row.SerializeToString(deterministic=True) for row in rows], pa.binary())
        except EncodeError as e:
            raise ConnectorError(f"Cannot write a row as a Protobuf message: {e}.") from None

    def _values(self, field: Field, found: FieldDescriptor, values: pa.ChunkedArray) -> list[Any]:
        make = self._field(found, field.type)
        try:
            return [None if value is None else make(value) for value in python_values(values)]
        except ValueError as e:
            raise ConnectorError(f"Fail to serialize at field: {field.name}. {e}.") from None

    def _field(self, found: FieldDescriptor, kind: t.LogicalType) -> Make:
        if is_map(found):
            assert isinstance(kind, t.MapType)
            parts = found.message_type.fields_by_name
            key, value = self._element(parts[KEY], kind.key), self._element(parts[VALUE], kind.value)
            return lambda entries: {key(e[KEY]): value(e[VALUE]) for e in entries}
        if isinstance(kind, t.ArrayType):
            element = self._element(found, kind.element)
            return lambda elements: [element(e) for e in elements]
        return self._one(found, kind)

    def _element(self, found: FieldDescriptor, kind: t.LogicalType) -> Make:
        """Messages know no NULL in lists and maps: there it is the default."""
        make, default = self._one(found, kind), self._default(found)
        return lambda value: default if value is None else make(value)

    def _default(self, found: FieldDescriptor) -> Any:
        if found.message_type is not None:
            return GetMessageClass(found.message_type)()
        if found.enum_type is not None:
            return found.enum_type.values[0].number
        if found.type == FieldDescriptor.TYPE_BYTES:
            return b""
        return self.null_text if found.type == FieldDescriptor.TYPE_STRING else 0

    def _one(self, found: FieldDescriptor, kind: t.LogicalType) -> Make:
        if isinstance(kind, t.RowType):
            return self._message(found, kind)
        if found.enum_type is not None:
            return _enum(found)
        if found.cpp_type in _BITS:
            bits = _BITS[found.cpp_type]
            return lambda number: number & bits
        return lambda value: value

    def _message(self, found: FieldDescriptor, kind: t.RowType) -> Make:
        made, parts = GetMessageClass(found.message_type), found.message_type.fields_by_name
        makes = [(f.name, self._field(parts[f.name], f.type)) for f in kind.fields]
        return lambda row: made(**{n: make(row[n]) for n, make in makes if row[n] is not None})


def _enum(found: FieldDescriptor) -> Make:
    """By name or number; ValueError for others, which Flink writes as the first of the enum."""
    names, numbers = found.enum_type.values_by_name, found.enum_type.values_by_number

    def make(value: Any) -> int:
        if value not in (names if isinstance(value, str) else numbers):
            raise ValueError(f"The enum {found.enum_type.full_name} has no value {value}")
        return names[value].number if isinstance(value, str) else int(value)

    return make
