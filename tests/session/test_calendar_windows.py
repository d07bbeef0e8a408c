"""Windows of months, quarters and years: as a stream, row by row, in batch; in a zone with summer time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session.environment import TableEnvironment

_ROWS = """\
1969-12-31 23:59:59,a,1
1970-01-01 00:00:00,a,2
2023-12-31 23:30:00,b,4
2024-02-29 12:00:00,a,8
2024-02-01 00:00:00,b,16
2024-03-31 04:30:00,a,32
2024-04-01 00:00:00,b,64
"""
_STREAMS: dict[str, dict[str, str]] = {
    "one go": {},
    "row by row": {"tidemill__epoch__max_rows": "1"},
    "in batch": {"execution__runtime_mode": "batch"},
}


@pytest.fixture(params=_STREAMS)
def made(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    (tmp_path / "t.csv").write_text(_ROWS)
    session = new_session(**_STREAMS[request.param])
    for text in (
        "SET 'table.local-time-zone' = 'Europe/Berlin'",
        "CREATE TABLE t (ts TIMESTAMP(3), k STRING, n INT, z AS CAST(ts AS TIMESTAMP_LTZ(3)),"
        " WATERMARK FOR ts AS ts - INTERVAL '60' DAY) "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}/t.csv', 'format'='csv')",
        "CREATE TABLE zoned (ts TIMESTAMP(3), k STRING, n INT, z AS CAST(ts AS TIMESTAMP_LTZ(3)),"
        " WATERMARK FOR z AS z - INTERVAL '60' DAY) "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}/t.csv', 'format'='csv')",
    ):
        session.execute_sql(text)
    return session


def found(session: TableEnvironment, query: str) -> Counter[tuple[Any, ...]]:
    """Times as dates, with the hour where it is not midnight."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for row in session.execute_sql(query).collect():
        values = (f"{v:%y-%m-%d %H}".removesuffix(" 00") if hasattr(v, "strftime") else v for v in row)
        rows[tuple(values)] += 1 if row.kind.short in ("+I", "+U") else -1
    return +rows


_WINDOWS: dict[str, tuple[str, set[tuple[str, str, int]]]] = {
    "months": (
        "TUMBLE(TABLE {t}, DESCRIPTOR({c}), INTERVAL '1' MONTH)",
        {("69-12-01", "70-01-01", 1), ("70-01-01", "70-02-01", 2), ("23-12-01", "24-01-01", 4),
         ("24-02-01", "24-03-01", 24), ("24-03-01", "24-04-01", 32), ("24-04-01", "24-05-01", 64)},
    ),
    "quarters with an offset": (
        "TUMBLE(TABLE {t}, DESCRIPTOR({c}), INTERVAL '1' QUARTER, INTERVAL '1' MONTH)",
        {("69-11-01", "70-02-01", 3), ("23-11-01", "24-02-01", 4), ("24-02-01", "24-05-01", 120)},
    ),
    "years": (
        "HOP(TABLE {t}, DESCRIPTOR({c}), INTERVAL '1' YEAR, INTERVAL '2' YEAR)",
        {("68-01-01", "70-01-01", 1), ("69-01-01", "71-01-01", 3), ("70-01-01", "72-01-01", 2),
         ("22-01-01", "24-01-01", 4), ("23-01-01", "25-01-01", 124), ("24-01-01", "26-01-01", 120)},
    ),
    "quarters by months": (
        "CUMULATE(TABLE {t}, DESCRIPTOR({c}), INTERVAL '2' MONTH, INTERVAL '1' QUARTER)",
        {("69-10-01", "70-01-01", 1), ("70-01-01", "70-03-01", 2), ("70-01-01", "70-04-01", 2),
         ("23-10-01", "24-01-01", 4), ("24-01-01", "24-03-01", 24), ("24-01-01", "24-04-01", 56),
         ("24-04-01", "24-06-01", 64), ("24-04-01", "24-07-01", 64)},
    ),
    "months by days": (
        "CUMULATE(TABLE {t}, DESCRIPTOR({c}), INTERVAL '14' DAY, INTERVAL '1' MONTH, INTERVAL '12' HOUR)",
        {("69-12-01 12", "70-01-01 12", 3), ("23-12-01 12", "24-01-01 12", 4),
         ("24-01-01 12", "24-02-01 12", 16), ("24-02-01 12", "24-03-01 12", 8),
         ("24-03-01 12", "24-04-01 12", 96)},
    ),
}  # fmt: skip


@pytest.mark.one_case
@pytest.mark.parametrize(("table", "column"), [("t", "ts"), ("zoned", "z")])
def test_months(made: TableEnvironment, table: str, column: str) -> None:
    query = " UNION ALL ".join(
        f"SELECT '{name}', window_start, window_end, SUM(n) FROM TABLE({call.format(t=table, c=column)})"
        " GROUP BY window_start, window_end"
        for name, (call, _) in _WINDOWS.items()
    )
    expected = [(name, *row) for name, (_, rows) in _WINDOWS.items() for row in rows]
    assert found(made, query) == Counter(expected)


@pytest.mark.one_case
def test_in_group_by_and_below_others(made: TableEnvironment) -> None:
    call = "TUMBLE(z, INTERVAL '1' QUARTER)"
    query = (
        f"SELECT {call.replace('(', '_START(')}, k, SUM(n), COUNT(z) FROM zoned GROUP BY ROLLUP (k), {call}"
    )
    quarters = found(made, query)
    assert quarters["24-01-01", "a", 40, 2] == quarters["24-01-01", None, 56, 3] == 1
    assert quarters["24-01-01", "b", 16, 1] == quarters["24-04-01", None, 64, 1] == 1
    best = (
        "SELECT window_end, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end"
        " ORDER BY n DESC) AS place FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' YEAR)))"
        " WHERE place = 1"
    )
    assert found(made, best) == Counter([("70-01-01", 1), ("71-01-01", 2), ("24-01-01", 4), ("25-01-01", 64)])


_REFUSED: dict[str, type[Exception]] = {
    "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '1' MONTH)": NotSupportedError,
    "CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MONTH, INTERVAL '90' DAY)": NotSupportedError,
    "SESSION(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MONTH)": ValidationError,
    "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '0' MONTH)": ValidationError,
    "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MONTH, INTERVAL '1' MONTH)": ValidationError,
}


def test_what_it_refuses(made: TableEnvironment) -> None:
    for call, error in _REFUSED.items():
        with pytest.raises(error):
            made.execute_sql(f"SELECT * FROM TABLE({call})")
