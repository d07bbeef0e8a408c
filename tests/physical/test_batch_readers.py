"""EXPLAIN of a batch query says what reads a file table, and why it is not Spark's own reader."""

from __future__ import annotations

import re
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.session.environments import new_session
from tidemill.session.environment import TableEnvironment

FILES = ("spark", "mixed", "dated", "gone")
RANKED = "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY v) AS n FROM spark) WHERE n <= 2"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    folder = tmp_path_factory.mktemp("tables")
    for name in FILES[:3]:
        (folder / name).mkdir()
    plain = pa.table({"v": pa.array([1], pa.int64()), "d": [date(2024, 1, 1)]})
    pq.write_table(plain, folder / "spark" / "a")
    pq.write_table(plain, folder / "mixed" / "a")
    pq.write_table(pa.table({"v": pa.array([1], pa.decimal128(3, 0))}), folder / "mixed" / "b")
    orc.write_table(pa.table({"v": [1], "d": [date(1500, 1, 1)]}), folder / "dated" / "a")
    made = new_session(execution__runtime_mode="batch")
    for name in (*FILES, "lines"):
        kind = {"dated": "orc", "lines": "csv"}.get(name, "parquet")
        made.execute_sql(
            f"CREATE TABLE {name} (v BIGINT, d DATE) WITH "
            f"('connector' = 'filesystem', 'path' = '{folder}/{name}', 'format' = '{kind}')"
        )
    return made


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM spark", "by Spark's reader"),
        ("SELECT COUNT(*) FROM spark", "by Spark's reader"),
        ("SELECT v FROM dated", "by Spark's reader"),
        ("SELECT * FROM dated", "files by our decoders: column `d` in {dated}/a"),
        ("SELECT v FROM mixed", "1 of 2 files by our decoders: column `v` in {mixed}/b"),
        ("SELECT * FROM lines", "by our decoders: the format is csv"),
        (RANKED, "by our decoders: the order of rows matters"),
        ("SELECT * FROM gone", None),
    ],
)
def test_what_reads_a_table(environment: TableEnvironment, query: str, expected: str | None) -> None:
    text = environment.explain_sql(query)
    plan = text[text.index("== Optimized Physical Plan") : text.index("== Optimized Execution Plan")]
    scan = next(line for line in plan.splitlines() if "TableSourceScan" in line)
    found = re.search(r", runs=\[(.*)\]\)", scan)
    shown = None if found is None else re.sub(r"/\S*/(\w+)/(\w)$", r"{\1}/\2", found[1])
    assert shown == expected


@pytest.mark.parametrize(
    ("mode", "shown"), [("BLOCKING", "BLOCKING"), ("HYBRID_FULL", "PIPELINED: 2 tasks at once")]
)
def test_how_exchanges_run_for_who_asks(environment: TableEnvironment, mode: str, shown: str) -> None:
    query = "SELECT v, COUNT(*) FROM spark GROUP BY v"
    assert "shuffle_mode" not in environment.explain_sql(query)
    environment.execute_sql(f"SET 'execution.batch-shuffle-mode' = 'ALL_EXCHANGES_{mode}'")
    exchanges = [line for line in environment.explain_sql(query).splitlines() if "Exchange(" in line]
    environment.execute_sql("RESET 'execution.batch-shuffle-mode'")
    assert exchanges
    assert all(f"shuffle_mode=[{shown}]" in line for line in exchanges)
