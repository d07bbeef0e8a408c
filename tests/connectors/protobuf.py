"""A message with all that Protobuf has, and its descriptors."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from tidemill.types import logical as t

SCALARS: dict[str, tuple[int, t.LogicalType, Any]] = {
    "flag": (Proto.TYPE_BOOL, t.BOOLEAN, True),
    "i32": (Proto.TYPE_INT32, t.INT, -(2**31)),
    "s32": (Proto.TYPE_SINT32, t.INT, -1),
    "f32": (Proto.TYPE_SFIXED32, t.INT, 7),
    "u32": (Proto.TYPE_UINT32, t.INT, -1),
    "x32": (Proto.TYPE_FIXED32, t.INT, -(2**31)),
    "i64": (Proto.TYPE_INT64, t.BIGINT, -(2**63)),
    "s64": (Proto.TYPE_SINT64, t.BIGINT, 2**63 - 1),
    "f64": (Proto.TYPE_SFIXED64, t.BIGINT, -5),
    "u64": (Proto.TYPE_UINT64, t.BIGINT, -2),
    "x64": (Proto.TYPE_FIXED64, t.BIGINT, 2**63 - 1),
    "single": (Proto.TYPE_FLOAT, t.FloatType(), 1.5),
    "double": (Proto.TYPE_DOUBLE, t.DOUBLE, -0.1),
    "text": (Proto.TYPE_STRING, t.STRING, "Zoë \U0001f600"),
    "data": (Proto.TYPE_BYTES, t.BYTES, b"\0\xff"),
    "by_name": (Proto.TYPE_ENUM, t.STRING, "WEB"),
    "by_number": (Proto.TYPE_ENUM, t.TinyIntType(), 7),
}
"""By field: the type in the descriptors, a column's, and a value."""


def descriptors(syntax: str) -> FileDescriptorSet:
    common = FileDescriptorProto(name="common.proto", package="common", syntax=syntax)
    inner = common.message_type.add(name="Inner")
    inner.field.add(name="x", number=1, type=Proto.TYPE_INT32, label=1)
    inner.field.add(name="tags", number=2, type=Proto.TYPE_STRING, label=3)
    file = FileDescriptorProto(name="all.proto", package="test", syntax=syntax, dependency=["common.proto"])
    corpus = file.enum_type.add(name="Corpus")
    for name, number in (("UNIVERSAL", 0), ("WEB", 1), ("VIDEO", 7)):
        corpus.value.add(name=name, number=number)
    message = file.message_type.add(name="All")

    def add(name: str, kind: int, type_name: str = "", *, repeated: bool = False, **more: Any) -> None:
        number = len(message.field) + 1
        message.field.add(
            name=name,
            number=number,
            type=kind,
            type_name=type_name or None,
            label=3 if repeated else 1,
            **more,
        )

    def add_map(name: str, key: int, value: int, value_type: str = "") -> None:
        entry = message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=key, label=1)
        entry.field.add(name="value", number=2, type=value, type_name=value_type or None, label=1)
        add(name, Proto.TYPE_MESSAGE, f".test.All.{entry.name}", repeated=True)

    for name, (kind, _, _) in SCALARS.items():
        add(name, kind, ".test.Corpus" if kind == Proto.TYPE_ENUM else "")
    add("inner", Proto.TYPE_MESSAGE, ".common.Inner")
    add("numbers", Proto.TYPE_SINT64, repeated=True)
    add("enums", Proto.TYPE_ENUM, ".test.Corpus", repeated=True)
    add("inners", Proto.TYPE_MESSAGE, ".common.Inner", repeated=True)
    add_map("counts", Proto.TYPE_STRING, Proto.TYPE_INT32)
    add_map("rows", Proto.TYPE_INT64, Proto.TYPE_MESSAGE, ".common.Inner")
    message.oneof_decl.add(name="choice")
    add("left", Proto.TYPE_INT32, oneof_index=0)
    add("right", Proto.TYPE_STRING, oneof_index=0)
    return FileDescriptorSet(file=[file, common])  # protoc has imports first; any order will do
