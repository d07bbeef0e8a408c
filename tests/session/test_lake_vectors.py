"""A Delta table by key with deletion vectors in SQL: statements mark rows, merged by Spark's workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.connectors.delta_vectors import PROPERTY, marked
from tests.connectors.lake import delta_rows
from tests.session.environments import ask, new_session
from tidemill.connectors.lakehouse import units


def test_statements_by_key_mark_rows(spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "ON_DRIVER", -1)
    made = new_session(execution__runtime_mode="batch")
    options = f"'connector'='delta', 'table-path'='{tmp_path}', '{PROPERTY}'='true', 'sink.buckets'='1'"
    ask(made, f"CREATE TABLE t (k BIGINT, v STRING, PRIMARY KEY (k) NOT ENFORCED) WITH ({options})")
    ask(made, "INSERT INTO t VALUES " + ", ".join(f"({k}, 'old')" for k in range(40)))
    (first,) = DeltaTable(tmp_path).file_uris()
    expected = dict.fromkeys(range(40), "old")
    merge = (
        "MERGE INTO t USING (VALUES (5, 'm'), (6, ''), (50, 'm')) AS s (k, v) ON t.k = s.k"
        " WHEN MATCHED AND s.v = '' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v"
        " WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)"
    )
    for statement, changes, gone, lost in (
        ("INSERT INTO t VALUES (1, 'new'), (41, 'new')", {1: "new", 41: "new"}, (), 1),
        ("UPDATE t SET v = 'new' WHERE k IN (2, 3)", {2: "new", 3: "new"}, (), 3),
        ("DELETE FROM t WHERE k = 4", {}, (4,), 4),
        (merge, {5: "m", 50: "m"}, (6,), 6),
    ):
        ask(made, statement)
        expected |= changes
        for k in gone:
            del expected[k]
        assert sorted(ask(made, "SELECT k, v FROM t")) == sorted(expected.items())
        assert {r["k"]: r["v"] for r in delta_rows(tmp_path)} == expected
        assert marked(tmp_path)[Path(first).name] == lost
    assert ask(made, "SELECT COUNT(*) FROM t") == [(len(expected),)]
    assert ask(made, "SELECT COUNT(*) FROM t /*+ OPTIONS('versionAsOf'='1') */") == [(40,)]
    assert len(ask(made, "SELECT k FROM t LIMIT 38")) == 38
    ask(made, "INSERT OVERWRITE t VALUES (7, 'x')")
    assert delta_rows(tmp_path) == [{"k": 7, "v": "x"}]
    ask(made, "TRUNCATE TABLE t")
    assert delta_rows(tmp_path) == []
