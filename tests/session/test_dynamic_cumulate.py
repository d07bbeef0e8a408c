"""DYNAMIC_CUMULATE end to end: as a stream in one epoch and row by row, and in batch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tidemill.errors import ValidationError
from tidemill.session.environment import TableEnvironment

_ROWS = """\
10:00:12,a,u,1
10:00:05,a,v,2
10:00:31,b,u,4
10:00:48,a,u,8
10:02:00,b,w,16
10:02:05,a,u,32
10:01:59,c,w,64
"""
"""The watermark is 10 seconds behind: nothing is late. With a gap of 50 seconds the windows of ``a`` end at
10:01:38 and 10:02:55, those of ``b`` at 10:01:21 and 10:02:50, that of ``c`` at 10:02:49."""
_STREAMS: dict[str, dict[str, str]] = {
    "one go": {},
    "row by row": {"tidemill__epoch__max_rows": "1"},
    "in batch": {"execution__runtime_mode": "batch"},
}


@pytest.fixture(params=_STREAMS)
def made(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    (tmp_path / "t.csv").write_text("".join(f"2024-05-01 {row}\n" for row in _ROWS.split()))
    session = new_session(**_STREAMS[request.param])
    session.execute_sql(
        "CREATE TABLE t (ts TIMESTAMP(3), k STRING, u STRING, n INT,"
        " WATERMARK FOR ts AS ts - INTERVAL '10' SECOND) "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}/t.csv', 'format'='csv')"
    )
    return session


def found(session: TableEnvironment, query: str) -> Counter[tuple[Any, ...]]:
    """What the rows add up to; times as minutes and seconds."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for row in session.execute_sql(query).collect():
        values = tuple(f"{v:%M:%S}" if hasattr(v, "strftime") else v for v in row)
        rows[values] += 1 if row.kind.short in ("+I", "+U") else -1
    return +rows


_SHOWN = """\
a 00:00 00:30 2 3
a 00:00 01:00 3 11
a 00:00 01:30 3 11
a 00:00 01:38 3 11
a 02:00 02:30 1 32
a 02:00 02:55 1 32
b 00:30 01:00 1 4
b 00:30 01:21 1 4
b 02:00 02:30 1 16
b 02:00 02:50 1 16
c 01:30 02:00 1 64
c 01:30 02:30 1 64
c 01:30 02:49 1 64
"""
_BY_KEY = Counter(
    (key, start, end, int(count), int(total))
    for key, start, end, count, total in map(str.split, _SHOWN.splitlines())
)
_TVF = "DYNAMIC_CUMULATE(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '50' SECOND)"
_GROUP = "DYNAMIC_CUMULATE(ts, INTERVAL '30' SECOND, INTERVAL '50' SECOND)"
_START, _END = (_GROUP.replace("CUMULATE", f"CUMULATE_{role}") for role in ("START", "END"))


@pytest.mark.one_case
def test_a_key_shows_what_it_holds_at_every_step(made: TableEnvironment) -> None:
    table_function = (
        f"SELECT k, window_start, window_end, COUNT(*), SUM(n) FROM TABLE({_TVF})"
        " GROUP BY k, window_start, window_end"
    )
    group_by = f"SELECT k, {_START}, {_END}, COUNT(*), SUM(n) FROM t GROUP BY k, {_GROUP}"
    computed = group_by.replace("SELECT k", "SELECT UPPER(k)").replace("BY k", "BY UPPER(k)")
    rows = found(made, f"{table_function} UNION ALL {group_by} UNION ALL {computed}")
    assert rows == _BY_KEY + _BY_KEY + Counter((k.upper(), *r) for (k, *r) in _BY_KEY)


def test_steps_are_cut_again_by_their_time(made: TableEnvironment) -> None:
    rowtime = _GROUP.replace("CUMULATE", "CUMULATE_ROWTIME")
    inner = f"SELECT {rowtime} AS rt, SUM(n) AS s FROM t GROUP BY k, {_GROUP}"
    tumble = "TUMBLE(rt, INTERVAL '1' MINUTE)"
    query = f"SELECT {tumble.replace('(', '_END(')}, SUM(s) FROM ({inner}) GROUP BY {tumble}"
    expected = Counter[str]()
    for (_, _, end, _, total), _ in _BY_KEY.items():
        minutes, seconds = map(int, end.split(":"))
        expected[f"{minutes + (seconds > 0):02d}:00"] += total
    assert found(made, query) == Counter(expected.items())


def test_the_parts_add_up_to_the_total(made: TableEnvironment) -> None:
    """Every combination of a set's keys has windows of its own."""
    query = (
        f"SELECT k, GROUPING(k), {_START}, {_END}, COUNT(*), SUM(n), COUNT(DISTINCT u) FROM t "
        f"GROUP BY GROUPING SETS ((k, {_GROUP}), ({_GROUP}))"
    )
    rows = found(made, query)
    assert Counter({r: c for r, c in rows.items() if r[1] == 0}) == Counter(
        {(k, 0, *r, 2 if k == "a" and r[0] == "00:00" else 1): 1 for (k, *r) in _BY_KEY}
    )
    assert [r for r in sorted(rows, key=str) if r[1] == 1] == [
        (None, 1, "00:00", "00:30", 2, 3, 2),
        (None, 1, "00:00", "01:00", 4, 15, 2),
        (None, 1, "00:00", "01:30", 4, 15, 2),
        (None, 1, "00:00", "01:38", 4, 15, 2),
        (None, 1, "01:30", "02:00", 1, 64, 1),
        (None, 1, "01:30", "02:30", 3, 112, 2),
        (None, 1, "01:30", "02:55", 3, 112, 2),
    ]


def test_without_a_gap_it_goes_on_to_the_last_step(made: TableEnvironment) -> None:
    call = _GROUP.removesuffix(", INTERVAL '50' SECOND)") + ")"
    end = call.replace("CUMULATE", "CUMULATE_END")
    query = f"SELECT k, {end}, SUM(n) FROM t WHERE k <> 'a' GROUP BY k, {call}"
    assert found(made, query) == Counter(
        [("b", e, 4) for e in ("01:00", "01:30", "02:00")] + [("b", "02:30", 20)]
        + [("c", e, 64) for e in ("02:00", "02:30")]
    )  # fmt: skip


@pytest.mark.one_case
def test_a_row_that_is_taken_back_leaves_no_trace(made: TableEnvironment) -> None:
    """The first row of ``w`` is that of 10:02:00 until that of 10:01:59 comes."""
    first = "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY ts) AS r FROM t) WHERE r = 1"
    window = _TVF.replace("TABLE t PARTITION BY k", f"({first})")
    bounds = "window_start, window_end"
    query = f"SELECT {bounds}, COUNT(*), SUM(n) FROM TABLE({window}) GROUP BY {bounds}"
    assert found(made, query) == Counter(
        [("00:00", end, 2, 3) for end in ("00:30", "01:00", "01:02")]
        + [("01:30", end, 1, 64) for end in ("02:00", "02:30", "02:49")]
    )


@pytest.mark.one_case
def test_rows_with_their_windows(made: TableEnvironment) -> None:
    """What stands above sees each row in every step that shows it, also through other windows' operators."""
    rows = found(made, f"SELECT n, window_start, window_end FROM TABLE({_TVF}) WHERE k = 'a' AND n < 8")
    ends = {1: ("00:30", "01:00", "01:30", "01:38")}
    assert rows == Counter((n, "00:00", end) for n in (1, 2) for end in ends[1])
    best = found(
        made,
        "SELECT k, window_end, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end "
        f"ORDER BY n DESC) AS place FROM TABLE({_TVF})) WHERE place = 1",
    )
    for row in (("a", "00:30", 2), ("a", "01:00", 8), ("b", "01:00", 4), ("c", "02:30", 64)):
        assert best[row] == 1
    other = found(
        made, f"SELECT window_end, COUNT(DISTINCT u) FROM TABLE({_TVF}) GROUP BY window_start, window_end"
    )
    assert other["02:30", 1] == 1
    assert other["02:30", 2] == 1


def test_what_it_refuses(made: TableEnvironment) -> None:
    step, gap = "INTERVAL '0' SECOND", "INTERVAL '5' SECOND, INTERVAL '-5' SECOND"
    for call, message in ((step, "requires a positive step"), (gap, "requires a positive gap")):
        with pytest.raises(ValidationError, match=message):
            made.execute_sql(f"SELECT * FROM TABLE(DYNAMIC_CUMULATE(TABLE t, DESCRIPTOR(ts), {call}))")
