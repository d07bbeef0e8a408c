"""What a Kafka sink leaves for the commit, without a broker."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tidemill.connectors.formats.api import TextEncoder
from tidemill.connectors.kafka.staging import MessageEncoder
from tidemill.errors import ConnectorError
from tidemill.types import logical as t
from tidemill.types.logical import Field

INSTANT = pa.timestamp("us", tz="UTC")


class Texts(TextEncoder):
    """The column v as it is."""

    def texts(self, table: pa.Table) -> pa.Array:
        return table.column("v").combine_chunks()


def encoded(**columns: pa.Array) -> list[dict[str, Any]]:
    encoder = MessageEncoder(
        fields=tuple(Field(name, t.STRING) for name in columns),
        value=Texts(),
        key=None,
        key_columns=(),
        key_names=(),
        metadata={key: key for key in columns if key != "v"},
    )
    rows: list[dict[str, Any]] = encoder.encode(pa.table(columns)).to_pylist()
    return rows


def test_headers_are_the_entries_that_are_not_null() -> None:
    headers = pa.array([[("a", b"1"), ("b", None)], None, []], pa.map_(pa.string(), pa.binary()))
    listed = pa.array([[{"key": "a", "value": b"1"}, {"key": None, "value": b"2"}], None, []])
    for column in (headers, listed):
        found = [row["headers"] for row in encoded(v=pa.array(["x", "y", "z"]), headers=column)]
        assert found == [[("a", b"1")], None, []]


@pytest.mark.parametrize("micros", [0, 999, -1])
def test_times_that_kafka_would_not_keep_are_refused(micros: int) -> None:
    """Sent as 0 the message would get the time of sending."""
    assert encoded(v=pa.array(["x", "y"]), timestamp=pa.array([1000, None], INSTANT))[0]["timestamp"] == 1
    with pytest.raises(ConnectorError, match="cannot have the timestamp"):
        encoded(v=pa.array(["x"]), timestamp=pa.array([micros], INSTANT))
