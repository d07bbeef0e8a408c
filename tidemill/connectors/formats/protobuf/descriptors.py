"""Message types from a FileDescriptorSet, as ``protoc --include_imports --descriptor_set_out`` writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from tidemill.errors import ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field

PROTOC = "protoc --include_imports --descriptor_set_out=FILE NAME.proto"
KEY, VALUE = "key", "value"
"""The fields of a map's entry."""
INT32S = (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32)
INT64S = (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64)
_FITTING: dict[int, tuple[type[t.LogicalType], ...]] = {
    FieldDescriptor.CPPTYPE_BOOL: (t.BooleanType,),
    **dict.fromkeys(INT32S, (t.IntType,)),
    **dict.fromkeys(INT64S, (t.BigIntType,)),
    FieldDescriptor.CPPTYPE_FLOAT: (t.FloatType,),
    FieldDescriptor.CPPTYPE_DOUBLE: (t.DoubleType,),
    FieldDescriptor.CPPTYPE_ENUM: (*t.CHARACTER_TYPES, *t.INTEGER_TYPES),
    FieldDescriptor.CPPTYPE_STRING: t.CHARACTER_TYPES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageType:
    """The message ``name``. ``files``: the serialized file that defines the message and all files it imports,
    each after its own imports. ``proto3``: the defining file has this syntax."""

    name: str
    files: tuple[bytes, ...]
    proto3: bool

    @staticmethod
    def of(data: bytes, name: str) -> MessageType:
        """The message ``name`` of a serialized FileDescriptorSet. ValidationError if ``data`` is no such set,
        or lacks the message or a file that the message needs."""
        try:
            files = {file.name: file for file in FileDescriptorSet.FromString(data).file}
        except DecodeError as e:
            raise ValidationError(f"It is no FileDescriptorSet: {e}", hint=PROTOC) from None
        defining_files = {message: file for file in files.values() for message in _messages(file)}
        if name not in defining_files:
            raise ValidationError(
                f"The descriptors have no message '{name}'.",
                expected=tuple(sorted(defining_files)),
                hint="'protobuf.message-class-name' is here the name in the .proto file: package.Message.",
            )
        serialized: dict[str, bytes] = {}
        _add(defining_files[name].name, files, serialized, ())
        message_type = MessageType(
            name=name, files=tuple(serialized.values()), proto3=defining_files[name].syntax == "proto3"
        )
        try:
            message_type.descriptor()
        except TypeError as e:
            raise ValidationError(f"The descriptors cannot be used: {e}", hint=PROTOC) from None
        return message_type

    def descriptor(self) -> Descriptor:
        pool = DescriptorPool()
        for file in self.files:
            pool.AddSerializedFile(file)
        return pool.FindMessageTypeByName(self.name)


def _messages(file: FileDescriptorProto) -> Iterator[str]:
    prefix = f"{file.package}." if file.package else ""
    for message in file.message_type:
        yield from _nested(message, prefix)


def _nested(message: DescriptorProto, prefix: str) -> Iterator[str]:
    yield prefix + message.name
    for inner in message.nested_type:
        if not inner.options.map_entry:
            yield from _nested(inner, f"{prefix}{message.name}.")


def _add(
    name: str,
    files: Mapping[str, FileDescriptorProto],
    serialized: dict[str, bytes],
    importers: tuple[str, ...],
) -> None:
    """Adds the file ``name`` to ``serialized``, after its imports. ``importers``: the chain of files that led
    to this file, for cycles."""
    if name in serialized:
        return
    if name not in files or name in importers:
        problem = "imports itself" if name in importers else "is not in the descriptors"
        raise ValidationError(f"The file '{name}' {problem}, but '{importers[-1]}' imports it.", hint=PROTOC)
    for imported in files[name].dependency:
        _add(imported, files, serialized, (*importers, name))
    serialized[name] = files[name].SerializeToString()


def is_map(descriptor: FieldDescriptor) -> bool:
    return descriptor.message_type is not None and bool(descriptor.message_type.GetOptions().map_entry)


def check_columns(message: Descriptor, fields: tuple[Field, ...]) -> None:
    """ValidationError names the first column that the message lacks, or has with another type."""
    for field in fields:
        if field.name not in message.fields_by_name:
            raise ValidationError(
                f"Column {field.name} does not exist in definition of proto class.",
                expected=tuple(sorted(message.fields_by_name)),
            )
        _check(message.fields_by_name[field.name], field.type, field.name)


def _check(descriptor: FieldDescriptor, kind: t.LogicalType, column: str) -> None:
    if is_map(descriptor):
        if not isinstance(kind, t.MapType):
            raise _unexpected(kind, "MAP", column)
        parts = descriptor.message_type.fields_by_name
        _check_one(parts[KEY], kind.key, column)
        _check_one(parts[VALUE], kind.value, column)
    elif descriptor.is_repeated:
        if not isinstance(kind, t.ArrayType):
            raise _unexpected(kind, "ARRAY", column)
        _check_one(descriptor, kind.element, column)
    else:
        _check_one(descriptor, kind, column)


def _check_one(descriptor: FieldDescriptor, kind: t.LogicalType, column: str) -> None:
    """Checks the type of a single value, or of an element of a repeated field."""
    if descriptor.message_type is not None:
        if not isinstance(kind, t.RowType):
            raise _unexpected(kind, "ROW", column)
        check_columns(descriptor.message_type, kind.fields)
        return
    is_bytes_field = descriptor.type == FieldDescriptor.TYPE_BYTES
    if not isinstance(kind, t.BINARY_TYPES if is_bytes_field else _FITTING[descriptor.cpp_type]):
        raise ValidationError(
            f"Protobuf field type does not match column type: {descriptor.full_name} is not compatible with"
            f" {kind} (column '{column}')."
        )


def _unexpected(kind: t.LogicalType, expected: str, column: str) -> ValidationError:
    return ValidationError(f"Unexpected LogicalType: {kind}. It should be {expected} (column '{column}').")
