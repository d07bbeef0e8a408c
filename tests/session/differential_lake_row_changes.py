"""DELETE and UPDATE of Delta and Iceberg tables without a key, beside a list of rows: random tables of all
types, random conditions with NULLs, and files of other writers."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.session.lake_tables import (
    KINDS,
    Row,
    append,
    append_by_library,
    files,
    session,
    stored,
    version,
)
from tests.tiers import examples
from tidemill.connectors.lakehouse import files as data_files
from tidemill.session.environment import TableEnvironment

COLUMNS = {
    "id": "BIGINT",
    "i": "INT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "m": "DECIMAL(10, 2)",
    "s": "STRING",
    "v": "VARCHAR(2)",
    "b": "BOOLEAN",
    "y": "BYTES",
    "dt": "DATE",
    "ts": "TIMESTAMP(6)",
    "millis": "TIMESTAMP(3)",
    "z": "TIMESTAMP_LTZ(6)",
    "a": "ARRAY<INT>",
    "mp": "MAP<STRING, INT>",
    "r": "ROW<x INT, y STRING>",
    "p": "STRING",
}
VALUES: dict[str, tuple[Any, ...]] = {
    "i": (0, 1, -5, 2**31 - 1),
    "f": (0.5, -0.0, float("nan"), float("inf")),
    "d": (0.1, -0.0, float("nan"), -1e300),
    "m": (Decimal("0.00"), Decimal("-12345678.90"), Decimal("7.50")),
    "s": ("", "x", "ä'\n", "longer than two"),
    "v": ("", "xy", "longer than two"),
    "b": (True, False),
    "y": (b"", b"\0\xff"),
    "dt": (date(1969, 12, 31), date(2024, 2, 29)),
    "ts": (datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 1, 2, 3, 456789)),
    "millis": (datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 1, 2, 3, 456789)),
    "z": (datetime(2024, 2, 29, 1, 2, 3, 456789, UTC),),
    "a": ([], [1, None, 3]),
    "mp": ([], [("k", 1), ("l", None)]),
    "r": ({"x": 1, "y": None}, {"x": None, "y": "é"}),
    "p": ("a", "b c", "d/e=f%20", "ü:"),
}
Judged = tuple[str, Callable[[Row], bool | None]]


def compared(column: str, text: str, holds: Callable[[Any], bool]) -> Judged:
    return text, lambda row: None if row[column] is None else holds(row[column])


ATOMS: tuple[Judged, ...] = (
    compared("i", "i > 0", lambda x: x > 0),
    compared("i", "i <> 1", lambda x: x != 1),
    compared("m", "m < 7.5", lambda x: x < Decimal("7.5")),
    compared("s", "s = 'x'", lambda x: x == "x"),
    compared("s", "CHAR_LENGTH(s) > 1", lambda x: len(x) > 1),
    compared("b", "b", lambda x: x),
    compared("dt", "dt >= DATE '2024-01-01'", lambda x: x >= date(2024, 1, 1)),
    compared("ts", "ts < TIMESTAMP '2000-01-01 00:00:00'", lambda x: x < datetime(2000, 1, 1)),
    compared("p", "p = 'd/e=f%20'", lambda x: x == "d/e=f%20"),
    compared("p", "p IN ('a', 'ü:')", lambda x: x in ("a", "ü:")),
    ("p IS NULL", lambda row: row["p"] is None),
    ("s IS NOT NULL", lambda row: row["s"] is not None),
    ("id IN (SELECT MAX(id) FROM t)", lambda row: row["id"] == row["$max"]),
    ("s NOT IN ('x', CAST(NULL AS STRING))", lambda row: False if row["s"] == "x" else None),
)
SETS: tuple[tuple[str, str, Callable[[Row], Any]], ...] = (
    ("i", "NULL", lambda row: None),
    ("i", "CAST(id + 1 AS INT)", lambda row: row["id"] + 1),
    ("s", "s || '!'", lambda row: None if row["s"] is None else f"{row['s']}!"),
    ("m", "1.25", lambda row: Decimal("1.25")),
    ("p", "'moved to'", lambda row: "moved to"),
    ("p", "NULLIF(s, '')", lambda row: row["s"] or None),
    ("ts", "CAST(NULL AS TIMESTAMP(6))", lambda row: None),
    ("b", "NOT b", lambda row: None if row["b"] is None else not row["b"]),
    ("a", "ARRAY[i, 7]", lambda row: [row["i"], 7]),
)


def condition(chance: random.Random, depth: int = 2) -> Judged:
    kind = chance.choice(("atom", "and", "or", "not")) if depth else "atom"
    if kind == "atom":
        return chance.choice(ATOMS)
    text, left = condition(chance, depth - 1)
    if kind == "not":
        return f"NOT ({text})", lambda row: None if (x := left(row)) is None else not x
    other, right = condition(chance, depth - 1)
    decides = kind == "or"

    def judge(row: Row) -> bool | None:
        both = left(row), right(row)
        if decides in both:
            return decides
        return None if None in both else not decides

    return f"({text}) {kind.upper()} ({other})", judge


def made_row(chance: random.Random, number: int) -> Row:
    picked = {c: chance.choice((None, *values)) for c, values in VALUES.items()}
    return {"id": number, **picked}


def shown(rows: list[Row]) -> list[str]:
    """NaN is equal to itself, -0.0 is not 0.0."""
    return sorted(repr([plain(row[name]) for name in COLUMNS]) for row in rows)


def plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


class Twin:
    """The rows of ``t`` in a list."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def run(self, chance: random.Random, made: TableEnvironment) -> set[int]:
        """Runs one random statement on both; the ids of the rows that it changes."""
        text, holds = condition(chance)
        newest = max((row["id"] for row in self.rows), default=None)
        changed = {row["id"] for row in self.rows if holds({**row, "$max": newest}) is True}
        if chance.random() < 0.4:
            made.execute_sql(f"DELETE FROM t WHERE {text}").wait()
            self.rows = [row for row in self.rows if row["id"] not in changed]
            return changed
        sets = {s[0]: s for s in chance.sample(SETS, chance.randint(1, 3))}.values()
        listed = ", ".join(f"{name} = {value}" for name, value, _ in sets)
        made.execute_sql(f"UPDATE t SET {listed} WHERE {text}").wait()
        self.rows = [
            {**row, **{name: new(row) for name, _, new in sets}} if row["id"] in changed else row
            for row in self.rows
        ]
        return changed


@pytest.mark.parametrize("by", ["", "p"])
@pytest.mark.parametrize("kind", KINDS)
def test_random_statements(
    spark: object, tmp_path: Path, kind: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(examples(5)):
        monkeypatch.setattr(data_files, "_WORN", (0.25, 1.0)[seed % 2])
        chance, root = random.Random(f"{kind}{by}{seed}"), tmp_path / str(seed)
        made = session(kind, root, ", ".join(f"{n} {k}" for n, k in COLUMNS.items()), by=by)
        rows = [made_row(chance, number) for number in range(24)]
        append(made, rows[:5], rows[5:9])
        append(made, rows[9:14], job="other")
        append_by_library(kind, root, made, rows[14:20])
        append_by_library(kind, root, made, rows[20:])
        twin = Twin(rows)
        assert shown(stored(kind, root)) == shown(twin.rows)
        for _ in range(4):
            before, at, had = files(kind, root), version(kind, root), twin.rows
            changed = twin.run(chance, made)
            assert shown(stored(kind, root)) == shown(twin.rows)
            kept = {name for name, ids in before.items() if not changed & set(ids)}
            stays = set(before) & set(files(kind, root))
            assert kept <= stays if kind == "vectors" else kept == stays
            assert shown(stored(kind, root, at)) == shown(had)
            assert (version(kind, root) == at) == (not changed)
