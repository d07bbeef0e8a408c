"""Protobuf messages, without Spark: every type, presence, evolution, damage.

The library's own messages are the twin: they write what is read, and read what is written."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message_factory import GetMessageClass

from tests.connectors.protobuf import SCALARS, descriptors
from tests.connectors.sources import table
from tidemill.connectors.formats.api import DecodeRequest, EncodeRequest, RecordError, TextEncoder
from tidemill.connectors.formats.protobuf.descriptors import MessageType
from tidemill.connectors.formats.registry import find_format
from tidemill.connectors.registry import connector
from tidemill.errors import ConnectorError, NotSupportedError, TidemillError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema

Columns = Mapping[str, t.LogicalType]
Rows = list[dict[str, Any]]
INNER = t.RowType(fields=(Field("x", t.INT), Field("tags", t.ArrayType(element=t.STRING))))
ALL: dict[str, t.LogicalType] = {
    **{name: kind for name, (_, kind, _) in SCALARS.items()},
    "inner": INNER,
    "numbers": t.ArrayType(element=t.BIGINT),
    "enums": t.ArrayType(element=t.STRING),
    "inners": t.ArrayType(element=INNER),
    "counts": t.MapType(key=t.STRING, value=t.INT),
    "rows": t.MapType(key=t.BIGINT, value=INNER),
    "left": t.INT,
    "right": t.STRING,
}
FULL: dict[str, Any] = {
    **{name: value for name, (_, _, value) in SCALARS.items()},
    "inner": {"x": 1, "tags": ["a", ""]},
    "numbers": [1, -1, 0],
    "enums": ["WEB", "UNIVERSAL"],
    "inners": [{"x": 3, "tags": ["b"]}, {"x": -4, "tags": ["c"]}],
    "counts": [{"key": "a", "value": -1}, {"key": "b", "value": 2}],
    "rows": [{"key": -7, "value": {"x": 5, "tags": ["d"]}}],
    "left": None,
    "right": "r",
}
NULLS = dict.fromkeys(ALL)
NOTHING: dict[str, Any] = {
    **{name: type(value)() for name, (_, _, value) in SCALARS.items()},
    "by_name": "UNIVERSAL",
    "left": 0,
    "right": "",
}
"""The defaults of what proto3 has no NULL for."""


def proto2() -> FileDescriptorSet:
    file = FileDescriptorProto(name="two.proto", package="two", syntax="proto2")
    message = file.message_type.add(name="Two")
    message.field.add(name="id", number=1, type=Proto.TYPE_INT32, label=2)
    message.field.add(name="n", number=2, type=Proto.TYPE_INT32, label=1, default_value="100")
    message.field.add(name="text", number=3, type=Proto.TYPE_STRING, label=1)
    return FileDescriptorSet(file=[file])


@pytest.fixture(params=["proto2", "proto3"])
def syntax(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


class Messages:
    """The format over a message's descriptors, in a file of their own."""

    def __init__(self, folder: Path, found: FileDescriptorSet, name: str = "test.All") -> None:
        place = folder / "descriptors.binpb"
        place.write_bytes(found.SerializeToString())
        self.options = {"protobuf.message-class-name": name, "protobuf.descriptor-file": str(place)}
        self.kind = GetMessageClass(MessageType.of(found.SerializeToString(), name).descriptor())

    def read(
        self, data: list[bytes | None], columns: Columns, wanted: tuple[str, ...] = (), **more: str
    ) -> tuple[Rows, list[int]]:
        fields = tuple(Field(name, kind) for name, kind in columns.items())
        request = DecodeRequest(
            columns=fields,
            wanted=tuple(f for f in fields if not wanted or f.name in wanted),
            metadata=(),
            options=self._options(more),
            time_zone="UTC",
        )
        decoder = pickle.loads(pickle.dumps(find_format("protobuf").message_decoder(request)))
        found = decoder.decode(data)
        return found.table.to_pylist(), found.messages.tolist()

    def write(self, rows: Rows, columns: Columns, **more: str) -> list[bytes]:
        fields = tuple(Field(name, kind) for name, kind in columns.items())
        request = EncodeRequest(fields=fields, changelog=False, options=self._options(more), time_zone="UTC")
        encoder = pickle.loads(pickle.dumps(find_format("protobuf").encoder(request)))
        assert isinstance(encoder, TextEncoder)
        found: list[bytes] = encoder.texts(pa.Table.from_pylist(rows, arrow_schema(fields))).to_pylist()
        return found

    def _options(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**self.options, **{f"protobuf.{k.replace('_', '-')}": v for k, v in more.items()}}


def full(messages: Messages) -> Any:
    """``FULL`` by the library."""
    made = messages.kind(
        **{name: value for name, (_, _, value) in SCALARS.items() if not name.startswith(("u", "x"))},
        u32=2**32 - 1,
        x32=2**31,
        u64=2**64 - 2,
        x64=2**63 - 1,
        inner={"x": 1, "tags": ["a", ""]},
        numbers=[1, -1, 0],
        enums=[1, 0],
        inners=[{"x": 3, "tags": ["b"]}, {"x": -4, "tags": ["c"]}],
        counts={"b": 2, "a": -1},
        right="r",
    )
    made.rows[-7].x = 5
    made.rows[-7].tags.append("d")
    return made


def test_every_type_is_read(tmp_path: Path, syntax: str) -> None:
    messages = Messages(tmp_path, descriptors(syntax))
    data = full(messages).SerializeToString()
    absent = NULLS if syntax == "proto2" else {**NULLS, **NOTHING}
    expected = {**FULL, "left": absent["left"]}
    assert messages.read([None, data, b"", data], ALL) == ([expected, absent, expected], [1, 2, 3])
    assert messages.read([b"", data], ALL, wanted=("inner", "u32")) == (
        [{"u32": absent["u32"], "inner": None}, {"u32": -1, "inner": FULL["inner"]}],
        [0, 1],
    )


def test_every_type_is_written(tmp_path: Path, syntax: str) -> None:
    messages = Messages(tmp_path, descriptors(syntax))
    expected = full(messages)
    (data, empty) = messages.write([FULL, NULLS], ALL)
    assert messages.kind.FromString(data) == expected
    assert data == expected.SerializeToString(deterministic=True)
    assert empty == b""


def test_defaults_are_read_where_asked_for(tmp_path: Path) -> None:
    everything = Messages(tmp_path, descriptors("proto2"))
    (row,), _ = everything.read([b""], ALL, read_default_values="true")
    empty: dict[str, Any] = {"numbers": [], "enums": [], "inners": [], "counts": [], "rows": []}
    assert row == {**NOTHING, "inner": {"x": 0, "tags": []}, **empty}
    two = Messages(tmp_path, proto2(), "two.Two")
    columns = {"n": t.INT, "text": t.STRING}
    data: list[bytes | None] = [two.kind(id=1).SerializeToString()]
    assert two.read(data, columns) == ([{"n": None, "text": None}], [0])
    assert two.read(data, columns, read_default_values="true") == ([{"n": 100, "text": ""}], [0])


def test_null_in_arrays_and_maps_is_written_as_a_default(tmp_path: Path) -> None:
    messages = Messages(tmp_path, descriptors("proto3"))
    columns = {name: ALL[name] for name in ("inner", "enums", "numbers", "inners", "counts")}
    row: dict[str, Any] = {
        "inner": {"x": None, "tags": ["a", None]},
        "enums": [None, "WEB"],
        "numbers": [None],
        "inners": [None],
        "counts": [{"key": None, "value": None}],
    }
    (data,) = messages.write([row], columns, write_null_string_literal="nil")
    assert messages.kind.FromString(data) == messages.kind(
        inner={"tags": ["a", "nil"]}, enums=[0, 1], numbers=[0], inners=[{}], counts={"nil": 0}
    )
    (plain,) = messages.write([row], columns)
    assert messages.kind.FromString(plain).inner.tags == ["a", ""]


def test_the_last_column_of_a_oneof_is_written(tmp_path: Path) -> None:
    messages = Messages(tmp_path, descriptors("proto3"))
    row = {"left": 1, "right": "r"}
    (last,) = messages.write([row], {"left": t.INT, "right": t.STRING})
    assert messages.kind.FromString(last) == messages.kind(right="r")
    (other,) = messages.write([row], {"right": t.STRING, "left": t.INT})
    assert messages.kind.FromString(other) == messages.kind(left=1)


def test_writers_may_know_more_fields_or_fewer(tmp_path: Path) -> None:
    newer = descriptors("proto3")
    newer.file[0].message_type[0].field.add(name="late", number=99, type=Proto.TYPE_STRING, label=1)
    new, old = Messages(tmp_path, newer), Messages(tmp_path, descriptors("proto3"))
    assert old.read([new.kind(i32=1, late="x").SerializeToString()], {"i32": t.INT}) == ([{"i32": 1}], [0])
    new = Messages(tmp_path, newer)
    columns = {"i32": t.INT, "late": t.STRING}
    assert new.read([old.kind(i32=1).SerializeToString()], columns) == ([{"i32": 1, "late": ""}], [0])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x0a\xff", "corrupt"),
        (b"\x08", "corrupt|parsing"),
        (b"\x72\x01\xff", "UTF-8"),  # text
        (b"\xff" * 12, "corrupt|parsing"),
    ],
)
def test_damaged_messages_are_named_or_skipped(tmp_path: Path, data: bytes, said: str) -> None:
    messages = Messages(tmp_path, descriptors("proto3"))
    good = messages.kind(i32=5).SerializeToString()
    with pytest.raises(RecordError, match=f"Protobuf message 'test.All'.*({said})") as found:
        messages.read([good, None, data, b"\xff"], {"i32": t.INT})
    assert (found.value.line, found.value.record) == (2, data.hex(" "))
    read = messages.read([good, data, good], {"i32": t.INT}, ignore_parse_errors="true")
    assert read == ([{"i32": 5}, {"i32": 5}], [0, 2])


def test_the_first_bad_message_and_its_column_are_named(tmp_path: Path) -> None:
    messages = Messages(tmp_path, descriptors("proto3"))
    odd = messages.kind(by_name=9, i32=1).SerializeToString()
    columns = {"i32": t.INT, "by_name": t.STRING}
    data: list[bytes | None] = [b"", odd, b"\xff"]
    with pytest.raises(RecordError, match=r"'by_name'.*test\.Corpus has no value 9") as found:
        messages.read(data, columns)
    assert (found.value.line, found.value.field) == (1, "by_name")
    assert messages.read(data, columns, ignore_parse_errors="true") == (
        [{"i32": 0, "by_name": "UNIVERSAL"}],
        [0],
    )
    assert messages.read([odd], {"by_name": t.INT}) == ([{"by_name": 9}], [0])


def test_null_in_a_column_that_is_not_null_is_named(tmp_path: Path) -> None:
    messages = Messages(tmp_path, descriptors("proto2"))
    columns = {"i32": t.IntType(nullable=False)}
    with pytest.raises(RecordError, match="Column 'i32' is NOT NULL") as found:
        messages.read([None, messages.kind(i32=0).SerializeToString(), b""], columns)
    assert (found.value.line, found.value.field) == (2, "i32")


def test_required_fields_have_to_be_there(tmp_path: Path) -> None:
    two = Messages(tmp_path, proto2(), "two.Two")
    with pytest.raises(RecordError, match="required fields: id"):
        two.read([b"\x10\x01"], {"n": t.INT})
    with pytest.raises(ConnectorError, match="required fields: id"):
        two.write([{"n": 1}], {"n": t.INT})


def test_texts_of_proto2_may_be_damaged(tmp_path: Path) -> None:
    two = Messages(tmp_path, proto2(), "two.Two")
    assert two.read([b"\x08\x01\x1a\x02a\xff"], {"text": t.STRING}) == ([{"text": "a�"}], [0])


@pytest.mark.parametrize(("kind", "value"), [(t.STRING, "BOOK"), (t.INT, 2)])
def test_a_value_that_an_enum_lacks_is_not_written(tmp_path: Path, kind: t.LogicalType, value: Any) -> None:
    messages = Messages(tmp_path, descriptors("proto3"))
    with pytest.raises(ConnectorError, match=rf"field: by_name\. .*Corpus has no value {value}"):
        messages.write([{"by_name": value}], {"by_name": kind})


@pytest.mark.parametrize(
    ("column", "kind", "said"),
    [
        ("missing", t.INT, "Column missing does not exist"),
        ("i32", t.BIGINT, r"test\.All\.i32 is not compatible with BIGINT"),
        ("text", t.BYTES, "not compatible"),
        ("data", t.STRING, "not compatible"),
        ("inner", t.STRING, "should be ROW"),
        ("numbers", t.BIGINT, "should be ARRAY"),
        ("counts", t.ArrayType(element=t.INT), "should be MAP"),
        ("counts", t.MapType(key=t.INT, value=t.INT), "not compatible"),
        ("inners", t.ArrayType(element=t.RowType(fields=(Field("y", t.INT),))), "Column y does not exist"),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    tmp_path: Path, column: str, kind: t.LogicalType, said: str
) -> None:
    messages = Messages(tmp_path, descriptors("proto3"))
    with pytest.raises(ValidationError, match=said):
        messages.read([], {column: kind})
    with pytest.raises(ValidationError, match=said):
        messages.write([], {column: kind})


def test_descriptors_have_to_be_whole(tmp_path: Path) -> None:
    whole = descriptors("proto3").file
    with pytest.raises(ValidationError, match=r"'common\.proto' is not in the descriptors.*all\.proto"):
        MessageType.of(FileDescriptorSet(file=whole[:1]).SerializeToString(), "test.All")
    with pytest.raises(ValidationError, match=r"(?s)no message 'All'.*test\.All"):
        MessageType.of(FileDescriptorSet(file=whole).SerializeToString(), "All")
    with pytest.raises(ValidationError, match="no FileDescriptorSet"):
        MessageType.of(b"syntax = 'proto3';", "All")


KAFKA = {
    "connector": "kafka",
    "topic": "t",
    "properties.bootstrap.servers": "h:1",
    "format": "protobuf",
    "protobuf.message-class-name": "test.All",
}


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        (KAFKA, NotSupportedError, r"(?s)Java classes.*protobuf\.descriptor-file.*protoc --include_imports"),
        ({**KAFKA, "protobuf.descriptor-file": "/no/file"}, ValidationError, "'/no/file' cannot be read"),
        (
            {
                "connector": "filesystem",
                "path": "/x",
                "format": "protobuf",
                "protobuf.message-class-name": "A",
            },
            NotSupportedError,
            "Files of format 'protobuf'",
        ),
    ],
)
def test_what_is_missing_is_named(options: dict[str, str], kind: type[TidemillError], said: str) -> None:
    with pytest.raises(kind, match=said):
        connector(options).validate(table({"i32": t.INT}, options), options)


def test_a_key_and_a_value_have_messages_of_their_own(tmp_path: Path) -> None:
    """And their files are places that a session may be kept from."""
    own = Messages(tmp_path, descriptors("proto3")).options
    options = {
        **{k: v for k, v in KAFKA.items() if "format" not in k and "protobuf" not in k},
        "key.format": "protobuf",
        "key.fields": "k_i32",
        "key.fields-prefix": "k_",
        "value.fields-include": "EXCEPT_KEY",
        "value.format": "protobuf",
        **{part + key: value for part in ("key.", "value.") for key, value in own.items()},
    }
    found = connector(options)
    found.validate(table({"k_i32": t.INT, "text": t.STRING}, options), options)
    place = own["protobuf.descriptor-file"]
    assert set(found.named_paths(options)) == {
        ("key.protobuf.descriptor-file", place),
        ("value.protobuf.descriptor-file", place),
    }
