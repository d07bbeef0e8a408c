"""Which batch aggregations by window go by slices."""

from __future__ import annotations

import pytest

from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql.parser import parse_statement

TABLE = (
    "CREATE TABLE t (a INT, b INT, u INT, v INT, f DOUBLE, m MAP<STRING, INT>, ts TIMESTAMP(3)) "
    "WITH ('connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'json')"
)
HOP = "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '4' SECOND, INTERVAL '10' SECOND))"
CUMULATE = "TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '9' SECOND))"
TUMBLE = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '9' SECOND))"
MONTHS = "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MONTH, INTERVAL '1' YEAR))"
BY_WINDOW = "window_start, window_end"
BY_SLICES = [
    (HOP, f"{BY_WINDOW}, a"),
    (CUMULATE, "window_end, a"),
    (f"{HOP} WHERE v > 1", f"{BY_WINDOW}, window_time, CUBE(a, b)"),
    (CUMULATE, f"GROUPING SETS (({BY_WINDOW}, a), ({BY_WINDOW}))"),
]
NOT_BY_SLICES = [
    (TUMBLE, f"{BY_WINDOW}, a"),
    (MONTHS, f"{BY_WINDOW}, a"),
    (HOP, "a"),
    (HOP, "window_start, a"),
    (CUMULATE, f"CUBE({BY_WINDOW}, a)"),
    (f"{CUMULATE} WHERE window_start > TIMESTAMP '2024-01-01 00:00:00'", f"{BY_WINDOW}, a"),
    (HOP, f"{BY_WINDOW}, f"),
]
CALLS = "COUNT(DISTINCT u) FILTER (WHERE v > 1), COUNT(*), SUM(v), MAX(f), MIN(a)"
NOT_CALLS = [
    "COUNT(*)",
    "SUM(DISTINCT u)",
    "COUNT(DISTINCT u), COUNT(DISTINCT v)",
    "COUNT(DISTINCT u), COUNT(DISTINCT u) FILTER (WHERE v > 1)",
    "COUNT(DISTINCT u), SUM(f)",
    "COUNT(DISTINCT u), AVG(v)",
    "COUNT(DISTINCT u), MAX(window_end)",
    "COUNT(DISTINCT window_start)",
    "COUNT(DISTINCT m)",
]


@pytest.mark.parametrize(
    ("calls", "rows", "groups", "expected"),
    [
        *((CALLS, rows, groups, True) for rows, groups in BY_SLICES),
        *((CALLS, rows, groups, False) for rows, groups in NOT_BY_SLICES),
        *((calls, HOP, f"{BY_WINDOW}, a", False) for calls in NOT_CALLS),
    ],
)
def test_explain_says_so(calls: str, rows: str, groups: str, expected: bool) -> None:
    context = SessionContext()
    for text in ("SET 'execution.runtime-mode' = 'batch'", TABLE):
        execute(parse_statement(text), context)
    query = f"EXPLAIN SELECT {calls} FROM {rows} GROUP BY {groups}"
    ((text,),) = list(execute(parse_statement(query), context).collect())
    assert ("by slice, then by window" in str(text)) == expected
