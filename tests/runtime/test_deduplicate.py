"""Deduplication by event time: every improvement of an epoch, or only the last."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Change, Session

KEEP_LAST = """
SELECT k, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS p FROM ev) WHERE p = 1
"""
EVERY: list[Change] = [
    ("+I", ("a", 1)),
    ("-U", ("a", 1)),
    ("+U", ("a", 2)),
    ("-U", ("a", 2)),
    ("+U", ("a", 4)),
]


@pytest.mark.parametrize(
    ("compact", "cut", "expected"),
    [
        ("false", 9, EVERY),
        ("true", 9, [("+I", ("a", 4))]),
        ("true", 2, [("+I", ("a", 2)), ("-U", ("a", 2)), ("+U", ("a", 4))]),
    ],
)
def test_compact_changes(
    spark: SparkSession, tmp_path: Path, compact: str, cut: int, expected: list[Change]
) -> None:
    (tmp_path / "ev.csv").write_text("".join(f"a,{n},2024-01-01 00:00:{s}\n" for n, s in SECONDS.items()))
    session = Session(
        {
            "table.exec.mini-batch.enabled": "true",
            "table.exec.deduplicate.mini-batch.compact-changes-enabled": compact,
            "tidemill.epoch.max-rows": str(cut),
        }
    )
    session.execute(
        "CREATE TABLE ev (k STRING, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}/ev.csv', 'format'='csv')"
    )
    assert session.changes(KEEP_LAST) == expected


SECONDS = {1: "10", 2: "20", 3: "15", 4: "30"}
