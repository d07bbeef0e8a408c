"""A Top-N over an outer join, both over changes: what one operator takes back, the other finds."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.runtime.evolution.changing_query import ChangingQuery, Row, session
from tests.runtime.evolution.kept_images import Images, changelog
from tests.runtime.evolution.test_rows import LEFT, RIGHT, SEEDS, Fields, applied, named, table

GONE = (1, 3)


def right_changes(chance: random.Random, live: list[Row]) -> list[Row]:
    """At most one right row of each key is there."""
    events: list[Row] = []
    for key in (1, 2):
        there = [row for row in live if row["j"] == key]
        if there and chance.random() < 0.5:
            live.remove(there[0])
            events.append({**there.pop(), "kind": 3})
        if not there and chance.random() < 0.6:
            live.append({"j": key, **{n: chance.choice([None, 1, 2]) for n in "xyz"}})
            events.append({**live[-1], "kind": 0})
    return events


def best(left: list[Row], right: list[Row]) -> Counter[Fields]:
    """The two rows of each key with the greatest b, each beside the right row of its key."""
    found = Counter[Fields]()
    for key in (1, 2):
        own = sorted((row for row in left if row["k"] == key), key=lambda row: -int(row["b"]))
        partner = next(({**row, "j": None} for row in right if row["j"] == key), {})
        for row in own[:2]:
            found[tuple(sorted((n, v) for n, v in {**row, **partner}.items() if v is not None))] += 1
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_operators_of_a_chain_find_each_others_rows(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    tables = session(table("l", LEFT, changes=True), table("r", RIGHT, changes=True))
    join, rank = (ChangingQuery(tmp_path / kind, tables, kind=kind) for kind in ("join", "rank"))
    left, right = Images(), Images()
    live: tuple[list[Row], list[Row]] = [], []
    number = 0
    for _ in range(6):
        columns = [name for name in "acxyz" if chance.random() < 0.5]
        chance.shuffle(columns)
        joined = f"SELECT {', '.join(['k', 'b', *columns])} FROM l LEFT JOIN r ON k = j"
        ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY b DESC) AS rn FROM ({joined})"
        for query in (join, rank):
            query.start(f"SELECT {', '.join([*columns, 'k', 'b'])} FROM ({ranked}) WHERE rn <= 2")
        left.carry(sorted({"k", "b", *columns} - {*"xyz"}), join.number + 1)
        right.carry(sorted({"j", *columns} - {*"ac"}), join.number + 1)
        shown = best(left.rows, right.rows)
        for _ in range(chance.randrange(3)):
            made = []
            for _ in range(chance.randrange(4)):
                number += 1
                made.append({"k": chance.choice([1, 2]), "b": number, "a": chance.choice([None, 1]), "c": 1})
            came = changelog(chance, made, live[0]), right_changes(chance, live[1])
            changes = join.epoch(*came)
            assert join.columns is not None
            assert rank.columns is not None
            given = [{**dict(zip(join.columns, f, strict=False)), "kind": kind} for kind, f in changes]
            got = named(rank.columns, rank.epoch(given))
            for side, rows in zip((left, right), came, strict=True):
                for row in sorted(rows, key=lambda row: row["kind"] in GONE):
                    side.take(row)
            shown = applied(shown, [(kind, tuple(p for p in f if p[0] != "j")) for kind, f in got])
            assert shown == best(left.rows, right.rows)
