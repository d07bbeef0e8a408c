"""Deduplication by event time: every improvement of an epoch, or only the last."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Change, Session, folded

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


@pytest.mark.parametrize(
    "options", [{"tidemill.epoch.max-rows": "1"}, {}, {"execution.runtime-mode": "batch"}]
)
def test_of_equal_times(spark: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    """One row that is kept is the last that came; of several the first ones that came are."""
    (tmp_path / "ev.csv").write_text("".join(f"a,{n},2024-01-01 00:00:10\n" for n in (1, 2, 3)))
    session = Session(options)
    session.execute(
        "CREATE TABLE ev (k STRING, n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}/ev.csv', 'format'='csv')"
    )
    for condition, kept in (("p = 1", {3}), ("p = 2", {2}), ("p <= 2", {1, 2}), ("p <= 1", {3})):
        rows = folded(session.changes(KEEP_LAST.replace("p = 1", condition)))
        assert {n for (_, n) in rows} == kept, condition
