"""Correlated subqueries on Spark: the forms whose answer hangs on rows that are not there, in both modes.

SQLite says what is right where it knows the form. Of a stream, rows come, change and go, two an epoch.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.plan.differential_subqueries import of_sqlite
from tests.session.environments import new_session
from tests.tiers import sampled
from tidemill.session.environment import TableEnvironment
from tidemill.session.rows.pandas_frames import folded

Row = tuple[int | None, int | None]

OUTER: list[Row] = [(0, 1), (1, 2), (2, 0), (3, None), (None, 5)]
INNER: list[Row] = [(0, 2), (0, 3), (2, 7), (2, None), (None, 9)]
GONE: dict[str, list[Row]] = {"o": [(2, 2), (1, None)], "i": [(1, 4), (0, 2), (3, None)]}
"""Rows that came first and are taken back last."""
COLUMNS = {"o": ("k", "v"), "i": ("g", "w")}

SHARED = (
    "SELECT k, (SELECT COUNT(*) FROM i WHERE i.w > o.v AND i.g NOT IN "
    "(SELECT j.g FROM i AS j WHERE j.w > 5)) AS c FROM o",
    "SELECT k FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.g = o.k AND i.w > "
    "(SELECT MAX(p.v) FROM o AS p WHERE p.k <= i.g))",
    "SELECT k FROM o WHERE k NOT IN (SELECT MAX(w) FROM i WHERE i.g = o.k)",
    "SELECT k, (SELECT COUNT(*) FROM i WHERE i.g = o.k HAVING COUNT(*) < 2) AS b, "
    "(SELECT SUM(c) FROM (SELECT COUNT(*) AS c FROM i WHERE i.g = o.k) AS x) AS c FROM o",
    "SELECT k, (SELECT COUNT(*) FROM (SELECT w FROM i WHERE i.g = o.k LIMIT 1) AS x) AS n, "
    "(SELECT w FROM i WHERE i.w > o.v ORDER BY w LIMIT 1 OFFSET 1) AS m FROM o",
    "SELECT k, (SELECT SUM(c) FROM (SELECT COUNT(*) AS c FROM i WHERE w > 99) AS x) AS n FROM o "
    "WHERE k IN (SELECT COUNT(*) FROM i WHERE w > 99 UNION ALL SELECT w FROM i)",
)
OWN: dict[str, list[tuple[Any, ...]]] = {
    "SELECT k FROM o WHERE k >= ALL (SELECT COUNT(*) FROM i WHERE i.g = o.k)": [(1,), (2,), (3,)],
    "SELECT o.k, x.c, x.d FROM o LEFT JOIN LATERAL (SELECT COUNT(*) AS c, MAX(w) AS d FROM i "
    "WHERE i.g = o.k HAVING COUNT(*) < 2) AS x ON TRUE": [
        (0, None, None),
        (1, 0, None),
        (2, None, None),
        (3, 0, None),
        (None, 0, None),
    ],
}


def wanted() -> dict[str, Counter[tuple[Any, ...]]]:
    known = {text: of_sqlite(text, {"o": OUTER, "i": INNER}) for text in SHARED}
    return known | {text: Counter(rows) for text, rows in OWN.items()}


def environment(folder: Path, mode: str) -> TableEnvironment:
    batch = mode == "batch"
    made = new_session(execution__runtime_mode=mode, parallelism__default="2", tidemill__epoch__max_rows="6")
    for table, rows in (("o", OUTER), ("i", INNER)):
        first = [] if batch else GONE[table]
        changes = [("c", row) for row in (*first, *rows)] + [("d", row) for row in first]
        path = folder / f"{table}.json"
        path.write_text("".join(f"{line(table, op, row, batch)}\n" for op, row in changes))
        declared = ", ".join(f"{c} INT" for c in COLUMNS[table])
        made.execute_sql(
            f"CREATE TABLE {table} ({declared}) WITH ('connector' = 'filesystem', 'path' = '{path}', "
            f"'format' = '{'json' if batch else 'debezium-json'}')"
        )
    return made


def line(table: str, op: str, row: Row, plain: bool) -> str:
    value = dict(zip(COLUMNS[table], row, strict=True))
    if plain:
        return json.dumps(value)
    before, after = (None, value) if op == "c" else (value, None)
    return json.dumps({"before": before, "after": after, "op": op})


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_answers_of_rows_that_are_not_there(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    session = environment(tmp_path, mode)
    found, asked = {}, sampled((*SHARED, *OWN))
    for text in asked:
        result = session.execute_sql(text)
        found[text] = Counter(tuple(row) for row in folded(result.fields, result.changes()))
    expected = wanted()
    assert found == {text: expected[text] for text in asked}
