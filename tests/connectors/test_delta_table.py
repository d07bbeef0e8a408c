"""From a Delta table to a Delta table by key, over crashes: the short way through all layers."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.connectors.lake import delta_rows
from tests.runtime.running import Crash, Session, crash_at, folded
from tidemill.connectors.lakehouse import units

INSERT = "INSERT INTO totals SELECT k, COUNT(*), SUM(n) FROM events GROUP BY k"


def ddl(name: str, columns: str, root: Path, by: str = "") -> str:
    return f"CREATE TABLE {name} ({columns}) {by} WITH ('connector'='delta', 'table-path'='{root}')"


def test_appended_rows_become_a_table_by_key_exactly_once(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions in, epochs of a few rows, upserts out, merged by Spark's workers; the driver dies at two
    steps of commits."""
    monkeypatch.setattr(units, "ON_DRIVER", -1)
    events = ddl("events", "k STRING, n BIGINT, p INT", tmp_path / "events", "PARTITIONED BY (p)")
    totals = ddl("totals", "k STRING, c BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED", tmp_path / "totals")
    batch = Session({"execution.runtime-mode": "batch"})
    batch.execute(events, "INSERT INTO events VALUES ('a', 1, 1), ('b', 2, 1), ('a', 3, 2)")
    assert len(DeltaTable(tmp_path / "events").file_uris()) >= 2
    options = {"execution.checkpointing.dir": f"{tmp_path}/checkpoint", "tidemill.epoch.max-rows": "2"}
    with pytest.raises(Crash):
        Session(options, crash_at("committed", 1)).execute(events, totals, INSERT)
    assert DeltaTable(tmp_path / "totals").version() == 0
    with pytest.raises(Crash):
        Session(options, crash_at("published", 1)).execute(events, totals, INSERT)
    Session(options).execute(events, totals, INSERT)
    assert DeltaTable(tmp_path / "totals").version() == 2
    rows = [tuple(row.values()) for row in delta_rows(tmp_path / "totals")]
    assert sorted(rows) == [("a", 2, 4), ("b", 1, 2)]
    changes = batch.changes("SELECT k, n FROM events WHERE p = 2")
    assert folded(changes) == {("a", 3): 1}
