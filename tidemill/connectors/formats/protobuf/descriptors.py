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
    """The message ``name``. ``files``: serialized, the one that defines it and what that imports, each after
    its own imports. ``proto3``: the syntax of the one that defines it."""

    name: str
    files: tuple[bytes, ...]
    proto3: bool

    @staticmethod
    def of(data: bytes, name: str) -> MessageType:
        """ValidationError where ``data`` is no FileDescriptorSet with all that the message needs."""
        try:
            files = {file.name: file for file in FileDescriptorSet.FromString(data).file}
        except DecodeError as e:
            raise ValidationError(f"It is no FileDescriptorSet: {e}", hint=PROTOC) from None
        homes = {message: file for file in files.values() for message in _messages(file)}
        if name not in homes:
            raise ValidationError(
                f"The descriptors have no message '{name}'.",
                expected=tuple(sorted(homes)),
                hint="'protobuf.message-class-name' is here the name in the .proto file: package.Message.",
            )
        needed: dict[str, bytes] = {}
        _add(homes[name].name, files, needed, ())
        made = MessageType(name=name, files=tuple(needed.values()), proto3=homes[name].syntax == "proto3")
        try:
            made.descriptor()
        except TypeError as e:
            raise ValidationError(f"The descriptors cannot be used: {e}", hint=PROTOC) from None
        return made

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
    name: str, files: Mapping[str, FileDescriptorProto], needed: dict[str, bytes], above: tuple[str, ...]
) -> None:
    """Adds the file ``name`` to those ``needed``, after its imports; ``above``: the files that import it."""
    if name in needed:
        return
    if name not in files or name in above:
        wrong = "imports itself" if name in above else "is not in the descriptors"
        raise ValidationError(f"The file '{name}' {wrong}, but '{above[-1]}' imports it.", hint=PROTOC)
    for imported in files[name].dependency:
        _add(imported, files, needed, (*above, name))
    needed[name] = files[name].SerializeToString()


def is_map(found: FieldDescriptor) -> bool:
    return found.message_type is not None and bool(found.message_type.GetOptions().map_entry)


def check_columns(message: Descriptor, fields: tuple[Field, ...]) -> None:
    """ValidationError names the first column that the message does not have, or has with another type."""
    for field in fields:
        if field.name not in message.fields_by_name:
            raise ValidationError(
                f"Column {field.name} does not exist in definition of proto class.",
                expected=tuple(sorted(message.fields_by_name)),
            )
        _check(message.fields_by_name[field.name], field.type, field.name)


def _check(found: FieldDescriptor, kind: t.LogicalType, column: str) -> None:
    if is_map(found):
        if not isinstance(kind, t.MapType):
            raise _unexpected(kind, "MAP", column)
        parts = found.message_type.fields_by_name
        _check_one(parts[KEY], kind.key, column)
        _check_one(parts[VALUE], kind.value, column)
    elif found.is_repeated:
        if not isinstance(kind, t.ArrayType):
            raise _unexpected(kind, "ARRAY", column)
        _check_one(found, kind.element, column)
    else:
        _check_one(found, kind, column)


def _check_one(found: FieldDescriptor, kind: t.LogicalType, column: str) -> None:
    """A value, or an element of a repeated field."""
    if found.message_type is not None:
        if not isinstance(kind, t.RowType):
            raise _unexpected(kind, "ROW", column)
        check_columns(found.message_type, kind.fields)
        return
    is_bytes = found.type == FieldDescriptor.TYPE_BYTES
    if not isinstance(kind, t.BINARY_TYPES if is_bytes else _FITTING[found.cpp_type]):
        raise ValidationError(
            f"Protobuf field type does not match column type: {found.full_name} is not compatible with"
            f" {kind} (column '{column}')."
        )


def _unexpected(kind: t.LogicalType, right: str, column: str) -> ValidationError:
    return ValidationError(f"Unexpected LogicalType: {kind}. It should be {right} (column '{column}').")
