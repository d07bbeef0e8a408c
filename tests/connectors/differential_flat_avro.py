"""Messages read field by field against fastavro, one by one: whole, cut off, and with flipped bits."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tidemill.connectors.formats.api import RecordError
from tidemill.connectors.formats.avro.flat import flat_columns
from tidemill.connectors.formats.avro.row_reader import RowReader
from tidemill.connectors.formats.avro.schema import branch, expanded
from tidemill.types import logical as t
from tidemill.types.logical import Field

TEXT = (
    '{"type":"record","name":"r","fields":[{"name":"i","type":["null","int"]},{"name":"l","type":"long"},'
    '{"name":"s","type":["string","null"]},{"name":"d","type":["null","double"]},{"name":"f","type":"float"},'
    '{"name":"b","type":["null","boolean"]},{"name":"x","type":["null","bytes"]},'
    '{"name":"n","type":["null",{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}]},'
    '{"name":"t","type":["null",{"type":"long","logicalType":"timestamp-millis"}]},'
    '{"name":"y","type":{"type":"int","logicalType":"date"}}]}'
)
SCHEMA = fastavro.parse_schema(json.loads(TEXT))
FIELDS = (
    Field("i", t.INT),
    Field("l", t.BIGINT),
    Field("s", t.STRING),
    Field("d", t.DOUBLE),
    Field("f", t.FloatType()),
    Field("b", t.BOOLEAN),
    Field("x", t.BYTES),
    Field("n", t.DecimalType(precision=12, scale=2)),
    Field("t", t.TimestampType(precision=3)),
    Field("y", t.DATE),
)
LONGS = st.integers(-(2**63), 2**63 - 1)
ROWS = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**31), 2**31 - 1),
        "l": LONGS,
        "s": st.none() | st.text(max_size=5),
        "d": st.none() | st.floats(allow_nan=False),
        "f": st.floats(width=32, allow_nan=False),
        "b": st.none() | st.booleans(),
        "x": st.none() | st.binary(max_size=200),
        "n": st.none() | st.decimals("-9999999999.99", "9999999999.99", places=2),
        "t": st.none() | st.integers(-(10**12), 10**13),
        "y": st.integers(-10000, 100000),
    }
)
WANTED = st.sets(st.sampled_from(FIELDS), min_size=1)


def message(row: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, SCHEMA, row)
    return stream.getvalue()


def by_message(reader: RowReader, messages: list[bytes]) -> pa.Table | None:
    try:
        return reader.table([reader.one(io.BytesIO(m)) for m in messages])
    except RecordError:
        return None


@settings(max_examples=examples(60), deadline=None)
@given(rows=st.lists(ROWS, min_size=1, max_size=8), wanted=WANTED, damage=st.none() | st.tuples(LONGS, LONGS))
def test_flat_messages(
    rows: list[dict[str, Any]], wanted: set[Field], damage: tuple[int, int] | None
) -> None:
    messages = [message(row) for row in rows]
    if damage is not None:
        place, number = damage[0] % len(messages), damage[1]
        data = bytearray(messages[place])
        if number % 3:
            data[number % len(data)] ^= 1 << number % 8
        else:
            del data[number % len(data) :]
        messages[place] = bytes(data)
    fields = tuple(f for f in FIELDS if f in wanted)
    reader = RowReader.of(TEXT, fields, tuple(f.name for f in FIELDS))
    found = flat_columns(branch(expanded(TEXT)), {f.name for f in fields}, messages)
    expected = by_message(reader, messages)
    if damage is None:
        assert found is not None
    numbered = list(enumerate(messages))
    if expected is None:
        with pytest.raises(RecordError):
            reader.numbered(numbered)
    else:
        assert str(reader.numbered(numbered).to_pylist()) == str(expected.to_pylist())  # NaN, too
