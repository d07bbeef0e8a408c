"""Another query takes over the state of an aggregation: what it gives is what each call gives over the rows
that it has seen."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.runtime.evolution.changing_query import CDC, CLICKS, ChangingQuery, Row, session
from tidemill.changelog.watermarks import END
from tidemill.errors import StateError

Values = list[Any]


def _sum(values: Values) -> int | None:
    return sum(values) if values else None


def _average(values: Values) -> int | None:
    return int(sum(values) / len(values)) if values else None


CALLS: dict[str, tuple[str, Callable[[Values], Any], frozenset[str]]] = {
    "COUNT(*)": ("k", len, frozenset({"rows"})),
    "COUNT(a)": ("a", len, frozenset({"COUNT(a)"})),
    "SUM(a)": ("a", _sum, frozenset({"SUM(a)"})),
    "SUM(b)": ("b", _sum, frozenset({"SUM(b)"})),
    "AVG(a)": ("a", _average, frozenset({"SUM(a)", "COUNT(a)"})),
    "MIN(b)": ("b", lambda v: min(v, default=None), frozenset({"MIN(b)"})),
    "MAX(a)": ("a", lambda v: max(v, default=None), frozenset({"MAX(a)"})),
    "COUNT(DISTINCT b)": ("b", lambda v: len(set(v)), frozenset({"distinct", "COUNT(DISTINCT b)"})),
    "SUM(DISTINCT b)": ("b", lambda v: _sum(list(set(v))), frozenset({"distinct", "SUM(DISTINCT b)"})),
    "SUM(a) FILTER (WHERE f)": ("a", _sum, frozenset({"SUM(a) f"})),
    "COUNT(DISTINCT b) FILTER (WHERE f)": ("b", lambda v: len(set(v)), frozenset({"d f", "COUNT f"})),
}
"""By call: the column it reads, its value, and the parts of state that it is made of."""


def value(call: str, rows: list[Row]) -> Any:
    column, made, _ = CALLS[call]
    counted = [row for row in rows if "FILTER" not in call or row["f"]]
    return made([row[column] for row in counted if row[column] is not None])


def sinces(before: dict[str, int], calls: list[str], epoch: int) -> dict[str, int]:
    """The first epoch that each of ``calls`` sees: a new one sees what calls have that have all its parts."""
    found = {}
    for call in calls:
        parts = CALLS[call][2]
        shared = [
            since
            for since in sorted(set(before.values()))
            if parts <= frozenset().union(*(CALLS[c][2] for c, s in before.items() if s == since))
        ]
        found[call] = before.get(call, min(shared, default=epoch))
    return found


def rows(chance: random.Random, count: int, first: int, last: int) -> list[Row]:
    return [
        {
            "k": chance.randrange(3),
            "a": chance.choice([None, *range(-3, 9)]),
            "b": chance.randrange(5),
            "f": chance.choice([True, False, None]),
            "ts": chance.randrange(first, last),
        }
        for _ in range(count)
    ]


def changes(chance: random.Random, calls: Sequence[str] = tuple(CALLS)) -> list[list[str]]:
    """``calls`` of one query after another: added, dropped, in another order."""
    return [chance.sample(calls, chance.randrange(1, 7)) for _ in range(5)]


@pytest.mark.parametrize("seed", range(20))
def test_calls_come_and_go_and_each_counts_what_it_has_seen(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    query, seen, known = ChangingQuery(tmp_path), list[tuple[int, Row]](), dict[str, int]()
    for number, calls in enumerate(changes(chance)):
        named = ", ".join(f"{call} AS c{number}_{i}" for i, call in enumerate(calls))
        query.start(f"SELECT k, {named} FROM clicks GROUP BY k")
        known = sinces(known, calls, query.number + 1) if known else dict.fromkeys(calls, 0)
        for _ in range(chance.randrange(0, 3)):
            came = rows(chance, 4, 0, 1)
            shown = {fields[0]: fields for kind, fields in query.epoch(came) if kind in (0, 2)}
            before = [row for _, row in seen]
            seen += [(query.number, row) for row in came]
            for key in {row["k"] for row in came}:
                own = [(epoch, row) for epoch, row in seen if row["k"] == key]
                wanted = tuple(value(c, [r for e, r in own if e >= known[c]]) for c in calls)
                is_new = key not in {row["k"] for row in before}
                assert key in shown or not is_new
                if key in shown:
                    assert shown[key] == (key, *wanted)


WINDOWS: dict[str, tuple[str, Callable[[int], list[int]]]] = {
    "TUMBLE": ("INTERVAL '0.010' SECOND", lambda t: [t // 10 * 10 + 10]),
    "HOP": ("INTERVAL '0.005' SECOND, INTERVAL '0.010' SECOND", lambda t: [t // 5 * 5 + 5, t // 5 * 5 + 10]),
    "CUMULATE": (
        "INTERVAL '0.005' SECOND, INTERVAL '0.010' SECOND",
        lambda t: [end for end in (t // 10 * 10 + 5, t // 10 * 10 + 10) if t < end],
    ),
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("function", WINDOWS)
def test_open_windows_go_on_under_another_query(tmp_path: Path, function: str, seed: int) -> None:
    chance = random.Random(seed)
    text, ends_of = WINDOWS[function]
    query, seen, known = ChangingQuery(tmp_path), list[tuple[int, Row]](), dict[str, int]()
    for number, calls in enumerate(changes(chance)):
        named = ", ".join(f"{call} AS c{number}_{i}" for i, call in enumerate(calls))
        windows = f"{function}(TABLE clicks, DESCRIPTOR(ts), {text})"
        query.start(
            f"SELECT k, window_start, window_end, {named} FROM TABLE({windows}) "
            "GROUP BY k, window_start, window_end"
        )
        known = sinces(known, calls, query.number + 1) if known else dict.fromkeys(calls, 0)
        came = rows(chance, 6, 0, 20)
        assert query.epoch(came) == []
        seen += [(query.number, row) for row in came]
    got = [fields for _, fields in query.epoch([], watermark=END)]
    assert len(got) == len({(row["k"], end) for _, row in seen for end in ends_of(row["ts"])})
    for key, *shown, _, end in got:
        at = (end - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)
        own = [(epoch, row) for epoch, row in seen if row["k"] == key and at in ends_of(row["ts"])]
        assert shown == [value(c, [row for epoch, row in own if epoch >= known[c]]) for c in calls]


ACCUMULATED = [call for call in CALLS if "DISTINCT" not in call]
"""Others make such windows keep their rows."""
EARLY = {
    "table.exec.emit.early-fire.enabled": "true",
    "table.exec.emit.early-fire.delay": "0 ms",
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("window", ["SESSION", "TUMBLE, early"])
def test_sessions_and_windows_that_were_shown_go_on(tmp_path: Path, window: str, seed: int) -> None:
    chance = random.Random(seed)
    name, _, early = window.partition(",")
    query = ChangingQuery(tmp_path, session(**EARLY if early else {}))
    seen, known = list[tuple[int, Row]](), dict[str, int]()
    for number, calls in enumerate(changes(chance, ACCUMULATED)):
        named = ", ".join(f"{call} AS c{number}_{i}" for i, call in enumerate(calls))
        query.start(f"SELECT k, {named} FROM clicks GROUP BY k, {name}(ts, INTERVAL '0.100' SECOND)")
        known = sinces(known, calls, query.number + 1) if known else dict.fromkeys(calls, 0)
        came = rows(chance, 6, 0, 20)
        seen += [(query.number + 1, row) for row in came]
        shown = {fields[0]: fields for kind, fields in query.epoch(came) if kind in (0, 2)}
        assert early or not shown
    shown |= {fields[0]: fields for kind, fields in query.epoch([], watermark=END) if kind in (0, 2)}
    assert shown.keys() >= {row["k"] for row in (came if early else [row for _, row in seen])}
    for key, fields in shown.items():
        own = [(epoch, row) for epoch, row in seen if row["k"] == key]
        last = tuple(value(c, [row for epoch, row in own if epoch >= known[c]]) for c in calls)
        assert fields[1 : len(calls) + 1] == last


def test_a_wider_type_goes_on_and_a_narrower_one_does_not(tmp_path: Path) -> None:
    sums = "SELECT k, SUM(a) AS s FROM clicks GROUP BY k"
    narrow, wide = (session(CLICKS.replace("a BIGINT", f"a {kind}")) for kind in ("INT", "BIGINT"))
    query = ChangingQuery(tmp_path, narrow)
    query.start(sums)
    query.number, query.context = 1, wide
    found = query.start(sums)
    assert found is not None
    assert [str(change) for change in found.changes][1:] == [
        "GroupAggregate(groupBy=[k]): SUM(a): converted (SUM(a) of INT, now of BIGINT)"
    ]
    query.context = narrow
    with pytest.raises(StateError, match=r"it has SUM\(a\) of BIGINT, now of INT"):
        query.start(sums)


INTEGERS = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()}
DECIMALS = {f"DECIMAL({digits}, 1)": pa.decimal128(digits, 1) for digits in (4, 18, 19, 38)}
GROWN = "SELECT a, COUNT(*) AS n, MIN(b) AS l, MAX(b) AS m, COUNT(DISTINCT b) AS d FROM clicks GROUP BY a"


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("types", [INTEGERS, DECIMALS], ids=["integers", "decimals"])
def test_keys_and_values_of_wider_types_go_on(
    tmp_path: Path, types: dict[str, pa.DataType], changes: bool
) -> None:
    tables, query = CDC if changes else CLICKS, ChangingQuery(tmp_path)
    seen: list[Row] = []
    for number, (kind, made) in enumerate(types.items()):
        wide = tables.replace("a BIGINT", f"a {kind}").replace("b BIGINT", f"b {kind}")
        query.context, query.types = session(wide), {"a": made, "b": made}
        found = query.start(GROWN)
        if found is not None:
            verdicts = [(change.part, change.verdict.value) for change in found.changes]
            counts = [("COUNT(*)", "kept"), ("MIN(b)", "converted"), ("MAX(b)", "converted")]
            keys = [("", "kept"), ("key a", "converted")]
            assert verdicts == [*keys, *counts, ("COUNT(DISTINCT b)", "converted")]
        # The values of a type that is wide are such that no narrower one has them.
        most = 10 ** (number + 2) if types is INTEGERS else Decimal(10 ** (number + 2)) + Decimal("0.5")
        gone = [seen.pop(0)] if changes and seen else []
        came = [{"a": a, "b": b} for a in (None, 1, most, -most) for b in (most, 2)]
        if types is INTEGERS and number == 0:
            came = [{"a": a, "b": b} for a in (None, 1, 100) for b in (2, -100)]
        seen += came
        shown = query.epoch([{**row, "kind": 3} for row in gone] + came)
        got = {fields[0]: fields[1:] for op, fields in shown if op in (0, 2)}
        for key in {row["a"] for row in came}:
            own = [row["b"] for row in seen if row["a"] == key]
            assert got[key] == (len(own), min(own), max(own), len(set(own)))


def test_keys_and_calls_that_are_one_twice_stay_two(tmp_path: Path) -> None:
    query = ChangingQuery(tmp_path)
    query.start(
        "SELECT k, j, SUM(a) AS s, SUM(c) AS t FROM (SELECT k, k AS j, a, a AS c FROM clicks) GROUP BY k, j"
    )
    row = {"k": 1, "j": 1, "a": 3, "c": 3}
    assert query.epoch([row]) == [(0, (1, 1, 3, 3))]


def test_values_that_are_drawn_twice_are_two(tmp_path: Path) -> None:
    job = ChangingQuery(tmp_path)
    job.start(
        "SELECT k, SUM(x) AS s, SUM(y) AS t FROM (SELECT k, RAND() AS x, RAND() AS y FROM clicks) GROUP BY k"
    )
    assert job.epoch([{"k": 1, "x": 3, "y": 5}]) == [(0, (1, 3.0, 5.0))]
