"""Random tables: a changelog for the stream, and what it adds up to for the batch.

A table is a list of chains; a chain is the life of one row (inserted, updated, perhaps deleted), and an
event is one step of one chain. Leaving a chain out leaves a changelog that is valid again, which is how
failures are made smaller. Values are few, so that keys collide, and exact, so that sums have one answer.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any

Row = tuple[Any, ...]


class Type(Enum):
    """A column's type, by its text in DDL."""

    INT = "INT"
    BIGINT = "BIGINT"
    STRING = "STRING"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL(8, 2)"
    TIMESTAMP = "TIMESTAMP(3)"
    BOOLEAN = "BOOLEAN"
    INTS = "ARRAY<INT>"
    STRINGS = "ARRAY<STRING>"


VALUES: dict[Type, tuple[Any, ...]] = {
    Type.INT: (0, 1, 2, 3, -1),
    Type.BIGINT: (0, 1, 2, 5, 10_000_000_000),
    Type.STRING: ("a", "b", "ab", "", "B"),
    Type.DOUBLE: (0.5, 1.0, -2.25, 4.0),
    Type.DECIMAL: (Decimal("0.10"), Decimal("1.00"), Decimal("2.50"), Decimal("-1.00")),
    Type.TIMESTAMP: tuple(dt.datetime(2024, 1, 1, 0, 0, n) for n in (0, 1, 5, 30)),
    Type.BOOLEAN: (True, False),
    Type.INTS: ([], [1], [1, 2], [2, 2, None], [3]),
    Type.STRINGS: ([], ["a"], ["b", "a"], [None]),
}


class Changes(Enum):
    """What a table's changelog may hold."""

    APPEND = "append"
    KEYED = "keyed"
    BAG = "bag"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    name: str
    type: Type
    nullable: bool

    @property
    def ddl(self) -> str:
        return f"{self.name} {self.type.value}{'' if self.nullable else ' NOT NULL'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One step of a chain: no ``before`` is an insertion, no ``after`` a deletion."""

    chain: int
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``key``: how many of the first columns are the primary key; ``repeats``: every event may come twice;
    ``rowtime``: the column with a watermark."""

    name: str
    columns: tuple[TableColumn, ...]
    changes: Changes
    key: int
    events: tuple[Event, ...]
    repeats: bool = False
    rowtime: str = ""

    @property
    def rows(self) -> list[Row]:
        """What the changelog adds up to, in the order of the last changes."""
        live: dict[int, Row] = {}
        for event in self.events:
            live.pop(event.chain, None)
            if event.after is not None:
                live[event.chain] = event.after
        return list(live.values())

    @property
    def chains(self) -> list[int]:
        return sorted({e.chain for e in self.events})

    def without(self, chains: set[int]) -> Table:
        return replace(self, events=tuple(e for e in self.events if e.chain not in chains))

    def ddl(self, path: Path, *, changelog: bool) -> str:
        """CREATE TABLE over the changelog, or over the final rows."""
        columns = [c.ddl for c in self.columns]
        if self.rowtime:
            columns.append(f"WATERMARK FOR {self.rowtime} AS {self.rowtime}")
        if self.key:
            names = ", ".join(c.name for c in self.columns[: self.key])
            columns.append(f"PRIMARY KEY ({names}) NOT ENFORCED")
        name = "debezium-json" if changelog and self.changes is not Changes.APPEND else "json"
        options = f"'connector' = 'filesystem', 'path' = '{path}', 'format' = '{name}'"
        return f"CREATE TABLE {self.name} ({', '.join(columns)}) WITH ({options})"

    def changelog_lines(self) -> Iterator[str]:
        if self.changes is Changes.APPEND:
            yield from self.final_lines()
            return
        for event in self.events:
            op = "c" if event.before is None else "d" if event.after is None else "u"
            message = {"before": self._object(event.before), "after": self._object(event.after), "op": op}
            line = json.dumps(message)
            yield line
            if self.repeats and event.chain % 3 == 0:
                yield line

    def final_lines(self) -> Iterator[str]:
        yield from (json.dumps(self._object(row)) for row in self.rows)

    def _object(self, row: Row | None) -> dict[str, Any] | None:
        if row is None:
            return None
        return {c.name: _plain(v) for c, v in zip(self.columns, row, strict=True)}


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    return float(value) if isinstance(value, Decimal) else value


def random_table(chance: Random, name: str, *, repeats: bool) -> Table:
    """A table of 2 to 6 columns and at most two dozen events."""
    changes = chance.choice((Changes.APPEND, Changes.KEYED) if repeats else tuple(Changes))
    key = chance.choice((1, 1, 2)) if changes is Changes.KEYED else 0
    columns = tuple(_columns(chance, key))
    rowtime = ""
    if changes is Changes.APPEND:
        columns = (*columns, TableColumn(name="rt", type=Type.TIMESTAMP, nullable=False))
        rowtime = "rt"
    events = tuple(_events(chance, columns, changes, key))
    return Table(
        name=name,
        columns=columns,
        changes=changes,
        key=key,
        events=events,
        repeats=repeats and changes is Changes.KEYED,
        rowtime=rowtime,
    )


def _columns(chance: Random, key: int) -> Iterator[TableColumn]:
    for place in range(key):
        yield TableColumn(
            name=f"k{place}", type=chance.choice((Type.INT, Type.BIGINT, Type.STRING)), nullable=False
        )
    yield TableColumn(name="i", type=Type.INT, nullable=chance.random() < 0.8)
    for number in range(chance.randint(1, 4)):
        kind = chance.choice(list(Type))
        yield TableColumn(name=f"c{number}", type=kind, nullable=chance.random() < 0.8)


def _row(chance: Random, columns: tuple[TableColumn, ...]) -> Row:
    return tuple(
        None if c.nullable and chance.random() < 0.15 else chance.choice(VALUES[c.type]) for c in columns
    )


def _events(chance: Random, columns: tuple[TableColumn, ...], changes: Changes, key: int) -> Iterator[Event]:
    live: dict[int, Row] = {}
    for number in range(chance.randint(0, 24)):
        step = "insert" if changes is Changes.APPEND or not live else chance.choice(STEPS)
        row = _row(chance, columns)
        if step == "insert":
            if key and row[:key] in {r[:key] for r in live.values()}:
                continue
            live[number] = row
            yield Event(chain=number, before=None, after=row)
            continue
        chain = chance.choice(list(live))
        before = live.pop(chain)
        after = before[:key] + row[key:] if step == "update" else None
        if after is not None:
            live[chain] = after
        yield Event(chain=chain, before=before, after=after)


STEPS = ("insert", "insert", "insert", "update", "update", "delete")
