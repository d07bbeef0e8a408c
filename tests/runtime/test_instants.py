"""Instants are kept alike in every time zone of a session, by every operator, within rows and arrays, too."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Row, Session, folded

RANKED = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS place FROM ticks)"
QUERIES = {
    "top n": f"SELECT id, z FROM {RANKED.format('n DESC, id')} WHERE place <= 2",
    "last": f"SELECT id, z FROM {RANKED.format('ts DESC')} WHERE place = 1",
    "by instant": f"SELECT id, z FROM {RANKED.format('z DESC')} WHERE place <= 2",
    "limit": "SELECT id, z FROM ticks ORDER BY n DESC, id LIMIT 3",
    "row": f"SELECT id, r FROM {RANKED.format('n, id')} WHERE place <= 2",
    "array": f"SELECT id, a FROM {RANKED.format('n, id')} WHERE place <= 2",
    "map": f"SELECT id, m FROM {RANKED.format('n, id')} WHERE place <= 2",
    "join": "SELECT l.id, r.z FROM ticks AS l JOIN ticks AS r ON l.z = r.z AND l.id <= r.id",
    "group": "SELECT z, COUNT(*) FROM ticks GROUP BY z",
    "over": "SELECT id, MAX(z) OVER (PARTITION BY k ORDER BY ts) FROM ticks",
    "interval join": "SELECT l.id, r.z FROM ticks AS l LEFT JOIN ticks AS r ON l.k = r.k"
    " AND l.ts BETWEEN r.ts - INTERVAL '2' SECOND AND r.ts",
}


def table(folder: Path, zone: str, query: str) -> set[Row]:
    """What ``query`` gives, three rows an epoch, with instants as wall clocks of ``zone`` show them."""
    made = Session({"tidemill.epoch.max-rows": "3", "table.local-time-zone": zone})
    made.execute(
        "CREATE TABLE ticks (id INT, k STRING, n INT, ts TIMESTAMP(3), z AS CAST(ts AS TIMESTAMP_LTZ(3)),"
        " r AS ROW(CAST(ts AS TIMESTAMP_LTZ(3)), n), a AS ARRAY[CAST(ts AS TIMESTAMP_LTZ(3))],"
        " m AS MAP['z', CAST(ts AS TIMESTAMP_LTZ(3))], WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)"
        f" WITH ('connector' = 'filesystem', 'path' = '{folder}/ticks', 'format' = 'csv')"
    )
    changes = made.changes(query)
    return set(folded([(kind, tuple(repr(_local(v, zone)) for v in row)) for kind, row in changes]))


def _local(value: object, zone: str) -> object:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if isinstance(value, list | tuple):
        return [_local(each, zone) for each in value]
    return {key: _local(each, zone) for key, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.one_case
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_kept_alike(tmp_path: Path, spark: SparkSession, query: str) -> None:
    lines = [f"{i},k{i % 2},{(i * 7) % 5},2024-05-01 00:00:{(i * 3) % 17:02d}\n" for i in range(14)]
    (tmp_path / "ticks").write_text("".join(lines))
    there = table(tmp_path, "Asia/Kolkata", query)
    assert there == table(tmp_path, "UTC", query)
    assert len(there) > 1
