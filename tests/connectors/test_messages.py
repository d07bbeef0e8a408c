"""Messages of a queue through the formats: which rows each gives, and which message is at fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.connectors.formats.api import DecodedMessages, DecodeRequest, RecordError
from tidemill.connectors.formats.registry import find_format
from tidemill.errors import ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field

PAIR: Mapping[str, t.LogicalType] = {"a": t.INT, "b": t.STRING}


def decode(
    identifier: str,
    messages: Sequence[bytes | None],
    columns: Mapping[str, t.LogicalType] = PAIR,
    options: Mapping[str, str] | None = None,
) -> DecodedMessages:
    fields = tuple(Field(n, k) for n, k in columns.items())
    request = DecodeRequest(
        columns=fields, wanted=fields, metadata=(), options=options or {}, time_zone="UTC"
    )
    return find_format(identifier).message_decoder(request).decode(messages)


def rows(found: DecodedMessages) -> list[tuple[int, object, object]]:
    """With the number of the message in front."""
    listed = found.table.to_pylist()
    return [(n, row["a"], row["b"]) for n, row in zip(found.messages.tolist(), listed, strict=True)]


def test_a_json_message_may_have_many_lines_or_rows() -> None:
    messages = [b'{"a":1,"b":"x"}', None, b'{"a":2,\n"b":"y\nz"}', b'[{"a":3},{"a":4}]', b""]
    assert rows(decode("json", messages)) == [(0, 1, "x"), (2, 2, "y\nz"), (3, 3, None), (3, 4, None)]


def test_bad_json_messages_are_skipped_when_told() -> None:
    messages = [b"{", b'{"a":"x","b":"y"}', b'{"a":3}']
    found = decode("json", messages, options={"json.ignore-parse-errors": "true"})
    assert rows(found) == [(1, None, "y"), (2, 3, None)]


def test_a_csv_message_is_its_first_record() -> None:
    assert rows(decode("csv", [b"1,x", None, b'2,"y\nz"', b"3,q\n4,r"])) == [
        (0, 1, "x"),
        (2, 2, "y\nz"),
        (3, 3, "q"),
    ]


def test_a_quote_that_stays_open_does_not_reach_the_next_message() -> None:
    with pytest.raises(RecordError) as error:
        decode("csv", [b"1,x", b'2,"y', b'3",z'])
    assert error.value.line == 1


def test_a_raw_message_without_bytes_is_null() -> None:
    found = decode("raw", [b"1\n2", None, b""], {"a": t.STRING})
    assert found.table.column("a").to_pylist() == ["1\n2", None, ""]
    assert found.messages.tolist() == [0, 1, 2]


def test_an_update_is_two_rows_of_one_message() -> None:
    messages = [b'{"op":"c","after":{"a":1}}', None, b'{"op":"u","before":{"a":1},"after":{"a":2}}']
    found = decode("debezium-json", messages)
    assert [RowKind(k).short for k in found.table.column(KIND_COLUMN).to_pylist()] == ["+I", "-U", "+U"]
    assert rows(found) == [(0, 1, None), (2, 1, None), (2, 2, None)]


@pytest.mark.parametrize(
    ("identifier", "good", "bad"),
    [
        ("json", b'{"a":1}', b'{"a":"x"}'),
        ("csv", b"1,x", b"x,1"),
        ("debezium-json", b'{"op":"c","after":{"a":1}}', b'{"op":"c"}'),
        ("canal-json", b'{"type":"INSERT","data":[{"a":1}]}', b'{"type":"?"}'),
        ("maxwell-json", b'{"type":"insert","data":{"a":1}}', b'{"type":"?"}'),
        ("ogg-json", b'{"op_type":"I","after":{"a":1}}', b'{"op_type":"?"}'),
    ],
)
def test_the_first_bad_message_is_named(identifier: str, good: bytes, bad: bytes) -> None:
    with pytest.raises(RecordError) as error:
        decode(identifier, [good, None, bad, good, bad])
    assert error.value.line == 2


def test_formats_of_files_are_refused() -> None:
    with pytest.raises(ValidationError, match="Could not find any format factory for identifier 'parquet'"):
        decode("parquet", [b""])
