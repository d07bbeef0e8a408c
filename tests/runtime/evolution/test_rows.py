"""Another query takes over the rows that a join, a Top-N or OVER keeps: columns that it adds are NULL in rows
from before, and what it gives is what a list of these rows gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.runtime.evolution.changing_query import ChangingQuery, Row, session
from tests.runtime.evolution.kept_images import Images, changelog
from tidemill.errors import StateError

Fields = tuple[Any, ...]
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 6))]
_FORMATS = {False: "'json', 'source.monitor-interval'='1 s'", True: "'debezium-json'"}


def table(name: str, columns: str, *, changes: bool, options: str = "") -> str:
    place = f"'connector'='filesystem', 'path'='/{name}', 'format'={_FORMATS[changes]}{options}"
    return f"CREATE TABLE {name} ({columns}) WITH ({place})"


def applied(shown: Counter[Fields], changes: Iterable[tuple[int, Fields]]) -> Counter[Fields]:
    result = Counter(shown)
    for kind, fields in changes:
        result[fields] += -1 if kind in (1, 3) else 1
    assert all(count >= 0 for count in result.values()), "what goes was there"
    return +result


# -- joins ------------------------------------------------------------------------------------------

LEFT, RIGHT = "k INT, a BIGINT, b BIGINT, c BIGINT", "j INT, x BIGINT, y BIGINT, z BIGINT"
JOINS = {
    "inner": "l JOIN r ON k = j",
    "two keys": "l JOIN r ON k = j AND a = x",
    "left": "l LEFT JOIN r ON k = j",
    "full": "l FULL JOIN r ON k = j",
    "residual": "l LEFT JOIN r ON k = j AND a < x",
    "full residual": "l FULL JOIN r ON k = j AND a < x",
    "semi": "l WHERE EXISTS (SELECT 1 FROM r WHERE k = j)",
    "not in": "l WHERE k NOT IN (SELECT j FROM r)",
    "inner ttl": "l JOIN r ON k = j",
    "full ttl": "l FULL JOIN r ON k = j AND a < x",
    "semi ttl": "l WHERE EXISTS (SELECT 1 FROM r WHERE k = j)",
    "anti": "l WHERE NOT EXISTS (SELECT 1 FROM r WHERE k = j AND a < x)",
}

FILTERS = frozenset({"semi", "semi ttl", "anti", "not in"})


def meets(kind: str, left: Row, right: Row) -> bool:
    if left["k"] is None or left["k"] != right["j"]:
        return False
    if kind == "two keys":
        return left["a"] is not None and left["a"] == right["x"]
    if "residual" in kind or kind in ("anti", "full ttl"):
        return left["a"] is not None and right["x"] is not None and left["a"] < right["x"]
    return True


def joined(kind: str, left: list[Row], right: list[Row]) -> Counter[tuple[tuple[str, Any], ...]]:
    rows: list[Row] = []
    for own in left:
        partners = [other for other in right if meets(kind, own, other)]
        if kind == "not in":
            unknown = bool(right) and (own["k"] is None or any(other["j"] is None for other in right))
            rows += [own] * (not partners and not unknown)
        elif kind in FILTERS:
            rows += [own] * (bool(partners) == (kind != "anti"))
        else:
            rows += [{**own, **other} for other in partners]
            rows += [own] * (not partners and kind not in ("inner", "two keys", "inner ttl"))
    if "full" in kind:
        rows += [other for other in right if not any(meets(kind, own, other) for own in left)]
    return Counter(tuple(sorted((n, v) for n, v in row.items() if v is not None)) for row in rows)


def named(columns: tuple[str, ...], changes: list[tuple[int, Fields]]) -> list[tuple[int, Fields]]:
    return [
        (kind, tuple(sorted((n, v) for n, v in zip(columns, fields, strict=True) if v is not None)))
        for kind, fields in changes
    ]


def made(chance: random.Random, names: str, count: int, *, nulls: bool = True) -> list[Row]:
    """``nulls``: the key may be NULL. An outer join does not keep such rows, and hands on what goes as it
    is."""
    first, others = names[0], names[1:]
    return [
        {first: chance.choice([*[None] * nulls, 1, 2]), **{n: chance.choice([None, 1, 2, 3]) for n in others}}
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("changes", [(False, False), (True, True), (True, False)])
@pytest.mark.parametrize("kind", JOINS)
def test_joins_go_on_with_other_columns(
    tmp_path: Path, kind: str, changes: tuple[bool, bool], seed: int
) -> None:
    chance = random.Random(seed)
    tables = (table(n, c, changes=x) for n, c, x in zip("lr", (LEFT, RIGHT), changes, strict=True))
    ttl = {"table__exec__state__ttl": "1 h"} if "ttl" in kind else {}
    query = ChangingQuery(tmp_path, session(*tables, **ttl))
    sides = Images(), Images()
    live: list[list[Row] | None] = [[] if x else None for x in changes]
    filters = kind in FILTERS
    for number in range(6):
        # What expires, where it may be taken back, can only lose columns.
        loses = bool(ttl) and any(changes) and number > 0
        pools = [sorted(s.since) if loses else [*n] for s, n in zip(sides, ("kabc", "jxyz"), strict=True)]
        chosen = [
            chance.sample(pool, chance.randrange(least, len(pool) + 1))
            for pool, least in zip(pools, (1, 0), strict=True)
        ]
        shown_columns = [*chosen[0], *(chosen[1] if not filters else ())]
        chance.shuffle(shown_columns)
        text = ", ".join(f"{name} AS c{number}_{i}" for i, name in enumerate(shown_columns))
        found = query.start(f"SELECT {text} FROM {JOINS[kind]}")
        needed = {*"ka"}, {*"jx"}
        if kind not in ("two keys", "residual", "full residual", "full ttl", "anti"):
            needed = {"k"}, {"j"}
        before = {name for side in sides for name in side.since}
        for side, own, keys in zip(sides, chosen if not filters else [chosen[0], []], needed, strict=True):
            side.carry(sorted({*own, *keys}), query.number + 1)
        if found is not None:
            told = {c.part.split()[-1] for c in found.changes if "is NULL for rows stored" in c.detail}
            assert told == {n for side in sides for n in side.since} - before
        shown = joined(kind, sides[0].rows, sides[1].rows)
        for _ in range(chance.randrange(3)):
            came = [
                changelog(
                    chance, made(chance, n, chance.randrange(4), nulls=rows is None or kind == "not in"), rows
                )
                for n, rows in zip(("kabc", "jxyz"), live, strict=True)
            ]
            got = query.epoch(*came)
            for side, rows in zip(sides, came, strict=True):
                # Those of an epoch are told apart by no order: what comes is there for what goes.
                for row in sorted(rows, key=lambda r: r.get("kind", 0) in (1, 3)):
                    side.take(row)
            assert query.columns is not None
            shown = applied(shown, named(query.columns, got))
            assert shown == joined(kind, sides[0].rows, sides[1].rows)
            for side, there in zip(sides, live, strict=True):
                assert there is None or len(there) == len(side.rows)


WIDER = {"INT": pa.int32(), "BIGINT": pa.int64()}


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("kind", ["inner", "two keys", "full residual", "not in"])
def test_joins_go_on_with_wider_types(tmp_path: Path, kind: str, changes: bool) -> None:
    query, sides = ChangingQuery(tmp_path), tuple[list[Row], list[Row]](([], []))
    chance = random.Random(kind)
    shows = "k, a, b, c" if kind in FILTERS else "k, a, b, c, j, x, y, z"
    for name, made_of in WIDER.items():
        columns = (text.replace("BIGINT", "INT").replace("INT", name) for text in (LEFT, RIGHT))
        tables = (table(n, c, changes=changes) for n, c in zip("lr", columns, strict=True))
        query.context, query.types = session(*tables), dict.fromkeys("kabcjxyz", made_of)
        found = query.start(f"SELECT {shows} FROM {JOINS[kind]}")
        if found is not None:
            assert {c.verdict.value for c in found.changes} == {"kept", "converted"}
        shown = joined(kind, *sides)
        for _ in range(2):
            came = [made(chance, names, 4, nulls=kind == "not in") for names in ("kabc", "jxyz")]
            for rows in came if name == "BIGINT" else ():
                rows.append({**rows[0], next(iter(rows[0])): 1 << 40})
            for side, rows in zip(sides, came, strict=True):
                side.extend(rows)
            gone = [[{**side.pop(0), "kind": 3}] if changes else [] for side in sides]
            got = query.epoch(*([*old, *rows] for old, rows in zip(gone, came, strict=True)))
            assert query.columns is not None
            shown = applied(shown, named(query.columns, got))
            assert shown == joined(kind, *sides)


# -- Top-N ------------------------------------------------------------------------------------------


def top(rows: list[Row], n: int, *, ranked: bool) -> Counter[Fields]:
    found = Counter[Fields]()
    for key in {row["k"] for row in rows}:
        own = [row for row in rows if row["k"] == key]
        own.sort(key=lambda row: -order(row))
        own = [{**row, "rn": place} if ranked else row for place, row in enumerate(own[:n], 1)]
        found.update(tuple(sorted((c, v) for c, v in row.items() if v is not None)) for row in own)
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("ttl", ["0 ms", "1 h"])
@pytest.mark.parametrize("changes", [False, True])
def test_a_top_n_goes_on_with_other_columns_and_fewer_rows(
    tmp_path: Path, changes: bool, ttl: str, most: int, seed: int
) -> None:
    chance = random.Random(seed)
    tables = session(table("t", LEFT, changes=changes), table__exec__state__ttl=ttl)
    query = ChangingQuery(tmp_path, tables)
    rows = Images()
    live: list[Row] | None = [] if changes else None
    n = most
    for _ in range(6):
        is_ranked = chance.random() < 0.5
        n = chance.randrange(1, 6) if changes else chance.randrange(max(1, n - 1), n + 1)
        loses = changes and ttl != "0 ms" and bool(rows.since)
        pool = sorted(rows.since) if loses else [*"kabc"]
        columns = chance.sample(pool, chance.randrange(1, len(pool) + 1))
        ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY a DESC) AS rn FROM t"
        shows = ", ".join([*columns, *["rn"] * is_ranked])
        query.start(f"SELECT {shows} FROM ({ranked}) WHERE rn <= {n}")
        is_ranked = is_ranked and n > 1
        rows.carry(sorted({*columns, *"ka"}), query.number + 1)
        shown = top(rows.rows, n, ranked=is_ranked)
        for _ in range(chance.randrange(3)):
            came = changelog(chance, made(chance, "kabc", chance.randrange(4)), live)
            got = query.epoch(came)
            for row in came:
                rows.take(row)
            assert query.columns is not None
            own = [*query.columns[: len(rows.since)], *["rn"] * is_ranked]
            shown = applied(shown, named(tuple(own), got))
            assert shown == top(rows.rows, n, ranked=is_ranked)


RANKED = "FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY a) AS rn FROM t) WHERE rn <= 3"


@pytest.mark.parametrize(
    ("changes", "before", "after", "why"),
    [
        (
            False,
            f"SELECT k {RANKED}",
            f"SELECT k, d {RANKED}",
            r"column d is NULL .* its type is BIGINT NOT NULL",
        ),
        (False, f"SELECT k {RANKED}", f"SELECT k {RANKED.replace('3', '4')}", "those beyond were not kept"),
        (True, f"SELECT k {RANKED}", f"SELECT k, c {RANKED}", "takes rows back, which would not be found"),
        (
            False,
            "SELECT k, SUM(b) OVER (PARTITION BY k ORDER BY a) FROM t",
            "SELECT k, SUM(b) OVER (PARTITION BY k ORDER BY c) FROM t",
            "column c is NULL for rows stored before epoch 2, and rows are ordered by it",
        ),
    ],
)
def test_what_rows_cannot_do_without_is_refused(
    tmp_path: Path, changes: bool, before: str, after: str, why: str
) -> None:
    tables = table("t", LEFT + ", d BIGINT NOT NULL", changes=changes)
    # Of rows that expire one that is gone might be taken for another.
    query = ChangingQuery(tmp_path, session(tables, table__exec__state__ttl="1 h" if changes else "0 ms"))
    query.start(before)
    query.number = 1
    with pytest.raises(StateError, match=f"belongs to another query .*{why}"):
        query.start(after)


def test_keys_that_are_one_twice_are_other_keys(tmp_path: Path) -> None:
    query = ChangingQuery(tmp_path, session(table("t", LEFT, changes=False)))
    rows = "(SELECT k, k AS j, a, {} FROM t)"
    ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {{}} ORDER BY a) AS rn FROM {rows}"
    query.start(f"SELECT a, k, j FROM ({ranked.format('k', 'b')}) WHERE rn <= 2")
    query.number = 1
    with pytest.raises(StateError, match=r"it is kept by \(k\), the query needs it by \(k, k\)"):
        query.start(f"SELECT a, k, j FROM ({ranked.format('k, j', 'c')}) WHERE rn <= 2")


def test_an_order_by_a_column_that_came_later_stays_refused(tmp_path: Path) -> None:
    query = ChangingQuery(tmp_path, session(table("t", LEFT, changes=False)))
    counted = "SELECT k, {}COUNT(*) OVER (PARTITION BY k ORDER BY {}) FROM t"
    for number, text in enumerate((counted.format("", "a"), counted.format("c, ", "a"))):
        query.number = number
        query.start(text)
    query.number = 5
    with pytest.raises(
        StateError, match="column c is NULL for rows stored before epoch 2, and rows are ordered"
    ):
        query.start(counted.format("c, ", "c"))


def test_conditions_count_in_any_order(tmp_path: Path) -> None:
    tables = [table(n, c, changes=False) for n, c in (("l", LEFT), ("r", RIGHT))]
    query = ChangingQuery(tmp_path, session(*tables))
    both = "SELECT k, y FROM l JOIN r ON {} WHERE {}"
    query.start(both.format("k = j AND a = x", "b > 1 AND c < 5 AND (y = 1 OR z = 2)"))
    row, other = {"k": 1, "a": 2, "b": 3, "c": 4}, {"j": 1, "x": 2, "y": 1, "z": 9}
    assert query.epoch([row], []) == []
    found = query.start(both.format("a = x AND k = j", "(z = 2 OR y = 1) AND c < 5 AND b > 1"))
    assert found is not None
    assert {change.verdict.value for change in found.changes} == {"kept"}
    assert len(query.epoch([], [other])) == 1, "keys are hashed in the order of the stored ones"
    union = "SELECT k, COUNT(*) FROM (SELECT k, a FROM l UNION ALL SELECT j, x FROM r) GROUP BY k"
    turned = "SELECT k, COUNT(*) FROM (SELECT j AS k, x FROM r UNION ALL SELECT k, a FROM l) GROUP BY k"
    query = ChangingQuery(tmp_path / "union", session(*tables))
    query.start(union)
    query.start(turned)


# -- rows that never came -----------------------------------------------------------------------------

KEEPERS = {
    "join": "SELECT k, a{} FROM l LEFT JOIN r ON k = j",
    "top": "SELECT k, a{} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY a) AS n FROM l)"
    " WHERE n < 9",
    "over": "SELECT k, a{}, COUNT(*) OVER (PARTITION BY k ORDER BY a) FROM l",
}


@pytest.mark.parametrize("kind", KEEPERS)
def test_a_row_that_never_came_takes_no_other_row_along(tmp_path: Path, kind: str) -> None:
    """NULL in a column that was added is a value of the rows that came after it."""
    tables = [table(n, c, changes=True) for n, c in (("l", LEFT), ("r", RIGHT))]
    query = ChangingQuery(tmp_path, session(*tables))
    others: tuple[list[Row], ...] = ([],) if kind == "join" else ()

    def gone(*rows: tuple[int, int | None], kinds: int = 3) -> set[Fields]:
        came = [{"k": 1, "a": a, "b": b, "c": b, "kind": kinds} for a, b in rows]
        return {fields[1:3] for change, fields in query.epoch(came, *others) if change in (1, 3)}

    query.start(KEEPERS[kind].format(""))
    assert gone((1, 7), kinds=0) == set()
    query.start(KEEPERS[kind].format(", b"))
    assert gone((5, None), (6, 3), kinds=0) == set()
    assert (5, None) not in gone((5, 8)), "a row with another value came"
    query.start(KEEPERS[kind].format(", b, c"))
    assert (6, 3) not in gone((6, None)), "rows of two queries before"
    assert (6, 3) in gone((6, 3)), "stored without c"
    assert (5, None) in gone((5, None))
    assert (1, None) in gone((1, 7)), "stored without b and c"


# -- OVER -------------------------------------------------------------------------------------------

CALLS: dict[str, tuple[str, Callable[[list[Row]], Any]]] = {
    "SUM(b) OVER (PARTITION BY k ORDER BY a)": ("b", lambda up: _sum(r["b"] for r in up)),
    "COUNT(c) OVER (PARTITION BY k ORDER BY a)": ("c", lambda up: sum(r["c"] is not None for r in up)),
    "COUNT(*) OVER (PARTITION BY k ORDER BY a)": ("a", lambda up: len(up)),
    "MAX(c) OVER (PARTITION BY k ORDER BY a)": ("c", lambda up: _max(r["c"] for r in up)),
}


def _sum(values: Iterable[Any]) -> Any:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _max(values: Iterable[Any]) -> Any:
    return max((v for v in values if v is not None), default=None)


def order(row: Row) -> int:
    """NULL is lowest."""
    return -99 if row["a"] is None else int(row["a"])


def over(rows: list[Row], calls: list[str]) -> Counter[Fields]:
    found = Counter[Fields]()
    for row in rows:
        up = [r for r in rows if r["k"] == row["k"] and order(r) <= order(row)]
        results = {f"w{i}": CALLS[call][1](up) for i, call in enumerate(calls)}
        found[tuple(sorted((c, v) for c, v in {**row, **results}.items() if v is not None))] += 1
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("changes", [False, True])
def test_over_goes_on_with_other_columns_and_calls(tmp_path: Path, changes: bool, seed: int) -> None:
    chance = random.Random(seed)
    query = ChangingQuery(tmp_path, session(table("t", LEFT, changes=changes)))
    rows = Images()
    live: list[Row] | None = [] if changes else None
    for number in range(6):
        columns = chance.sample("kabc", chance.randrange(1, 4))
        calls = chance.sample(sorted(CALLS), chance.randrange(1, 4))
        text = ", ".join([*columns, *(f"{call} AS s{number}_{i}" for i, call in enumerate(calls))])
        query.start(f"SELECT {text} FROM t")
        rows.carry(sorted({*columns, *"ka", *(CALLS[call][0] for call in calls)}), query.number + 1)
        shown = over(rows.rows, calls)
        for _ in range(chance.randrange(3)):
            came = changelog(chance, made(chance, "kabc", chance.randrange(4)), live)
            got = query.epoch(came)
            for row in came:
                rows.take(row)
            assert query.columns is not None
            width = len(query.columns) - len(calls)
            names = (*query.columns[:width], *(f"w{i}" for i in range(len(calls))))
            shown = applied(shown, named(names, got))
            assert shown == over(rows.rows, calls)
