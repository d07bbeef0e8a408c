"""Another query takes over the rows that wait for event time: in interval and temporal joins, and in
windows."""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.evolution.changing_query import ChangingQuery, Row, session
from tests.runtime.evolution.kept_images import Images
from tests.runtime.evolution.test_rows import SEEDS, Fields, named, table
from tidemill.changelog.watermarks import END
from tidemill.errors import StateError

LEFT = "k INT, a BIGINT, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
RIGHT = "j INT, x BIGINT, y BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
NEAR = 4


def rows_of(chance: random.Random, names: str) -> list[Row]:
    return [
        {**{n: chance.choice([1, 2]) for n in names}, "ts": chance.randrange(20)}
        for _ in range(chance.randrange(4))
    ]


def seen(rows: list[tuple[int, Fields]], *without: str) -> Counter[Fields]:
    """Rows without their times, which the twin has as numbers."""
    return Counter(tuple((n, v) for n, v in fields if n not in without) for _, fields in rows)


def values(*rows: Row) -> Fields:
    whole = {n: v for row in rows for n, v in row.items() if n != "ts" and v is not None}
    return tuple(sorted(whole.items()))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
def test_interval_joins_go_on_with_other_columns(tmp_path: Path, kind: str, seed: int) -> None:
    chance = random.Random(seed)
    tables = [table(n, c, changes=False) for n, c in (("l", LEFT), ("r", RIGHT))]
    query = ChangingQuery(tmp_path, session(*tables))
    sides = Images(), Images()
    matched: tuple[list[bool], list[bool]] = [], []
    for _ in range(5):
        chosen = [chance.sample("kab", chance.randrange(1, 4)), chance.sample("jxy", chance.randrange(0, 4))]
        near = f"BETWEEN r.ts - INTERVAL '0.00{NEAR}' SECOND AND r.ts + INTERVAL '0.00{NEAR}' SECOND"
        query.start(f"SELECT {', '.join(chain(*chosen))} FROM l {kind} r ON k = j AND l.ts {near}")
        for side, own, key in zip(sides, chosen, "kj", strict=True):
            side.carry(sorted({*own, key, "ts"}), query.number + 1)
        came = [rows_of(chance, names) for names in ("kab", "jxy")]
        got = query.epoch(*came)
        wanted = Counter[Fields]()
        before = [len(side.rows) for side in sides]
        for side, rows, flags in zip(sides, came, matched, strict=True):
            for row in rows:
                side.take(row)
                flags.append(False)
        for i, left in enumerate(sides[0].rows):
            for j, right in enumerate(sides[1].rows):
                is_near = left["k"] == right["j"] and abs(left["ts"] - right["ts"]) <= NEAR
                if is_near:
                    matched[0][i] = matched[1][j] = True
                    wanted[values(left, right)] += i >= before[0] or j >= before[1]
        assert query.columns is not None
        assert seen(named(query.columns, got), "ts", "ts0") == +wanted
    last = Counter[Fields]()
    for side, flags, word in zip(sides, matched, ("LEFT", "RIGHT"), strict=True):
        if word in kind or "FULL" in kind:
            last.update(
                values(row) for row, is_matched in zip(side.rows, flags, strict=True) if not is_matched
            )
    assert query.columns is not None
    assert seen(named(query.columns, query.epoch([], [], watermark=END)), "ts", "ts0") == last


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_keep_rows_with_other_columns_until_they_end(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    query = ChangingQuery(tmp_path, session(table("l", LEFT, changes=False)))
    rows, n = Images(), 4
    for _ in range(5):
        n = chance.randrange(max(1, n - 1), n + 1)
        columns = chance.sample("kab", chance.randrange(1, 4))
        order = "PARTITION BY window_start, window_end, k ORDER BY a DESC"
        query.start(
            f"SELECT {', '.join(columns)} FROM (SELECT *, ROW_NUMBER() OVER ({order}) AS rn FROM "
            f"TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '0.010' SECOND))) WHERE rn <= {n}"
        )
        rows.carry(sorted({*columns, "k", "a", "ts"}), query.number + 1)
        came = [{**row, "a": chance.randrange(9)} for row in rows_of(chance, "kb")]
        assert query.epoch(came) == []
        for row in came:
            rows.take(row)
    wanted = Counter[Fields]()
    for group in {(row["k"], row["ts"] // 10) for row in rows.rows}:
        own = [row for row in rows.rows if (row["k"], row["ts"] // 10) == group]
        wanted.update(values(row) for row in sorted(own, key=lambda row: -row["a"])[:n])
    assert query.columns is not None
    got = named(query.columns, query.epoch([], watermark=END))
    assert seen(got, "ts", "window_start", "window_end", "window_time") == wanted


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
@pytest.mark.parametrize("seed", SEEDS)
def test_window_joins_keep_rows_with_other_columns_until_they_end(
    tmp_path: Path, kind: str, seed: int
) -> None:
    chance = random.Random(seed)
    tables = [table(n, c, changes=False) for n, c in (("l", LEFT), ("r", RIGHT))]
    query = ChangingQuery(tmp_path, session(*tables))
    sides = Images(), Images()
    window = "(SELECT * FROM TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '0.010' SECOND))) {}"
    for _ in range(4):
        chosen = [chance.sample("kab", chance.randrange(1, 4)), chance.sample("jxy", chance.randrange(0, 4))]
        equal = [f"p.{c} = q.{c}" for c in ("window_start", "window_end")]
        conditions = chance.sample([*equal, "k = j"], 3)
        query.start(
            f"SELECT {', '.join(chain(*chosen))} FROM {window.format('l', 'p')} {kind} "
            f"{window.format('r', 'q')} ON {' AND '.join(conditions)}"
        )
        for side, own, key in zip(sides, chosen, "kj", strict=True):
            side.carry(sorted({*own, key, "ts"}), query.number + 1)
        came = [rows_of(chance, names) for names in ("kab", "jxy")]
        assert query.epoch(*came) == []
        for side, rows in zip(sides, came, strict=True):
            for row in rows:
                side.take(row)
    wanted, pairs = Counter[Fields](), [(left, right) for left in sides[0].rows for right in sides[1].rows]
    met = [(a, b) for a, b in pairs if (a["k"], a["ts"] // 10) == (b["j"], b["ts"] // 10)]
    wanted.update(values(left, right) for left, right in met)
    for number, side in enumerate(sides):
        if ("LEFT", "RIGHT")[number] in kind or "FULL" in kind:
            there = {id(pair[number]) for pair in met}
            wanted.update(values(row) for row in side.rows if id(row) not in there)
    assert query.columns is not None
    ends = [c for c in query.columns if c.startswith(("window", "ts"))]
    assert seen(named(query.columns, query.epoch([], [], watermark=END)), *ends) == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_temporal_joins_go_on_with_other_columns(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    right = RIGHT + ", PRIMARY KEY (j) NOT ENFORCED"
    tables = [table("l", LEFT, changes=False), table("r", right, changes=True)]
    query = ChangingQuery(tmp_path, session(*tables), kind="temporal-join")
    left, versions, newest = Images(), Images(), 0
    for _ in range(4):
        chosen = [chance.sample("kab", chance.randrange(1, 4)), chance.sample("jxy", chance.randrange(0, 4))]
        query.start(
            f"SELECT {', '.join(chain(*chosen))} FROM l LEFT JOIN r FOR SYSTEM_TIME AS OF l.ts ON k = j"
        )
        left.carry(sorted({*chosen[0], "k", "ts"}), query.number + 1)
        versions.carry(sorted({*chosen[1], "j", "ts"}), query.number + 1)
        came = [rows_of(chance, names) for names in ("kab", "jxy")]
        for row in came[1]:
            newest += 1
            row["ts"] = newest
        assert query.epoch(*came) == []
        for side, rows in zip((left, versions), came, strict=True):
            for row in rows:
                side.take(row)
    wanted = Counter[Fields]()
    for row in left.rows:
        held = [v for v in versions.rows if v["j"] == row["k"] and v["ts"] <= row["ts"]]
        wanted[values(row, *held[-1:])] += 1
    assert query.columns is not None
    got: list[tuple[int, Any]] = query.epoch([], [], watermark=END)
    assert seen(named(query.columns, got), "ts", "ts0") == wanted


OVERS = {
    "running": ("SUM(b) OVER (PARTITION BY k ORDER BY ts)", "b", None),
    "last two": ("SUM(b) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "b", 1),
    "first": ("", "", None),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", OVERS)
def test_rows_that_wait_for_their_turn_get_other_columns(tmp_path: Path, kind: str, seed: int) -> None:
    """OVER by event time, and the first row of a key by event time, which is that with the number 1."""
    chance = random.Random(seed)
    query = ChangingQuery(tmp_path, session(table("l", f"{LEFT}, c BIGINT", changes=False)))
    (call, argument, back), rows = OVERS[kind], Images()
    for number in range(5):
        columns, mark = chance.sample("kac", chance.randrange(1, 4)), number * 10
        if call:
            query.start(f"SELECT {', '.join(columns)}, {call} AS n FROM l")
        else:
            ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM l"
            query.start(f"SELECT {', '.join(columns)} FROM ({ranked}) WHERE n = 1")
        rows.carry(sorted({*columns, "k", "ts", *argument}), query.number + 1)
        # Each at a time of its own, after all that have had their turn.
        taken = {row["ts"] for row in rows.rows}
        times = [t for t in chance.sample(range(mark + 1, mark + 20), 4) if t not in taken]
        came = [{**{n: chance.randrange(1, 3) for n in "kabc"}, "ts": t} for t in times]
        got = query.epoch(came, watermark=mark + 10)
        for row in came:
            rows.take(row)
        assert query.columns is not None
        columns_of_query = tuple(c if c in ("ts", *"kabc") else "n" for c in query.columns)
        turns = [row for row in _by_turn(rows.rows, argument, back) if mark < row["ts"] <= mark + 10]
        assert seen(named(columns_of_query, got), "ts") == Counter(map(values, turns))


def _by_turn(rows: list[Row], argument: str, back: int | None) -> list[Row]:
    """The rows, each with the sum of those before it and of itself, or without an argument their number."""
    found = []
    for key in (1, 2):
        own = sorted((row for row in rows if row["k"] == key), key=lambda row: row["ts"])
        for place, row in enumerate(own):
            near = own[: place + 1] if back is None else own[max(0, place - back) : place + 1]
            found.append({**row, "n": sum(each[argument] if argument else 1 for each in near)})
    return found


PATTERN = (
    "SELECT * FROM l MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES {} ONE ROW PER MATCH "
    "AFTER MATCH SKIP PAST LAST ROW PATTERN (P Q) DEFINE P AS P.a = 1, Q AS Q.a = 2)"
)


@pytest.mark.parametrize("seed", SEEDS)
def test_patterns_show_other_columns_of_the_rows_that_they_have_begun_with(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    query = ChangingQuery(tmp_path, session(table("l", f"{LEFT}, c BIGINT", changes=False)))
    rows, total = Images(), 0
    for number in range(8):
        mark = number * 10
        measures = chance.sample(["P.b", "P.c", "Q.b", "Q.c", "P.a"], chance.randrange(1, 5))
        named_measures = ", ".join(f"{m} AS m{number}_{i}" for i, m in enumerate(measures))
        found = query.start(PATTERN.format(named_measures))
        before = {*rows.since}
        rows.carry(sorted({*"ka", "ts", *(m[2:] for m in measures)}), query.number + 1)
        if found is not None:
            told = {c.part.split()[-1] for c in found.changes if "is NULL for rows stored" in c.detail}
            assert told == {*rows.since} - before
        taken = {row["ts"] for row in rows.rows}
        times = [t for t in chance.sample(range(mark + 1, mark + 20), 5) if t not in taken]
        came = [{**{n: chance.randrange(1, 3) for n in "kabc"}, "ts": t} for t in times]
        got = query.epoch(came, watermark=mark + 10)
        for row in came:
            rows.take(row)
        matches = [{"k": p["k"], "P": p, "Q": q} for p, q in _matches(rows.rows, mark)]
        wanted = [(match["k"], *(match[m[0]][m[2:]] for m in measures)) for match in matches]
        assert Counter(fields for _, fields in got) == Counter(wanted)
        total += len(wanted)
    assert total


def _matches(rows: list[Row], mark: int) -> list[tuple[Row, Row]]:
    """Those whose last row is due in the ten milliseconds after ``mark``."""
    found = []
    for key in (1, 2):
        own = sorted((row for row in rows if row["k"] == key), key=lambda row: row["ts"])
        found += [
            (p, q) for p, q in pairwise(own) if (p["a"], q["a"]) == (1, 2) and mark < q["ts"] <= mark + 10
        ]
    return found


@pytest.mark.parametrize(
    ("then", "now", "why"),
    [
        ("P.a = 1", "P.a = 2", "where this query has Match"),
        ("PATTERN (P Q)", "PATTERN (P+ Q)", "where this query has Match"),
        ("PARTITION BY k", "PARTITION BY b", "where this query has Match"),
        ("SKIP PAST LAST ROW", "SKIP TO NEXT ROW", "where this query has Match"),
        ("ORDER BY ts", "ORDER BY ts, c", "where this query has Match"),
        ("P.b AS x", "P.d AS x", "is NULL for rows stored before epoch 2, and its type is BIGINT NOT NULL"),
    ],
)
def test_other_patterns_are_refused(tmp_path: Path, then: str, now: str, why: str) -> None:
    columns = f"{LEFT}, c BIGINT, d BIGINT NOT NULL"
    query = ChangingQuery(tmp_path, session(table("l", columns, changes=False)))
    sql = PATTERN.format("P.b AS x")
    query.start(sql)
    query.epoch([{"k": 1, "a": 1, "b": 2, "c": 3, "d": 4, "ts": 5}])
    with pytest.raises(StateError, match=f"belongs to another query .*{why}"):
        query.start(sql.replace(then, now))
