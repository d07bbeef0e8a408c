"""Random tables: a changelog for the stream, and what it adds up to for the batch.

A table is a list of chains; a chain is the life of one row (inserted, updated, perhaps deleted), and an
event is one step of one chain. Leaving a chain out leaves a changelog that is valid again, which is how
failures are made smaller. Values are few, so that keys collide (see ``pools``).
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any

from tests.random_queries.pools import Theme, Type

Row = tuple[Any, ...]


class Changes(Enum):
    """What a table's changelog may hold."""

    APPEND = "append"
    KEYED = "keyed"


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
    sorted: bool = False
    theme: Theme = Theme.PLAIN

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
            # Nothing is late: a batch knows of no lateness.
            delay = "'0.001' SECOND" if self.sorted else "'15' MINUTE"
            columns.append(f"WATERMARK FOR {self.rowtime} AS {self.rowtime} - INTERVAL {delay}")
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
        return {c.name: _written(c.type, v) for c, v in zip(self.columns, row, strict=True)}


def _written(kind: Type, value: Any) -> Any:
    """An instant is told from a date and time by its zone."""
    plain = _plain(value)
    return f"{plain}Z" if kind is Type.INSTANT and value is not None else plain


def _plain(value: Any) -> Any:
    """As JSON has it."""
    match value:
        case dt.datetime():
            return value.isoformat(sep=" ", timespec="milliseconds")
        case dt.date() | dt.time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return value


def random_table(chance: Random, name: str, theme: Theme, *, repeats: bool) -> Table:
    """A table of 2 to 6 columns and as many events as the theme says."""
    changes = chance.choice((Changes.APPEND, Changes.KEYED) if repeats else tuple(Changes))
    key = chance.choice((1, 1, 2)) if changes is Changes.KEYED else 0
    columns = tuple(_columns(chance, key, theme))
    rowtime = ""
    if changes is Changes.APPEND:
        columns = (*columns, TableColumn(name=ROWTIME, type=Type.TIMESTAMP, nullable=False))
        rowtime = ROWTIME
    made = Table(
        name=name,
        columns=columns,
        changes=changes,
        key=key,
        events=(),
        repeats=repeats and changes is Changes.KEYED,
        rowtime=rowtime,
        sorted=bool(rowtime) and chance.random() < 0.5,
        theme=theme,
    )
    return again(made, chance)


def again(table: Table, chance: Random) -> Table:
    """Another life of the same table."""
    events = list(_events(chance, table.columns, table.changes, table.key, table.theme))
    if table.sorted:
        events.sort(key=_time)
    return replace(table, events=tuple(events))


def _time(event: Event) -> Any:
    """Of an event of an append-only table."""
    return None if event.after is None else event.after[-1]


def _columns(chance: Random, key: int, theme: Theme) -> Iterator[TableColumn]:
    for place in range(key):
        yield TableColumn(
            name=f"k{place}", type=chance.choice((Type.INT, Type.BIGINT, Type.STRING)), nullable=False
        )
    yield TableColumn(name="i", type=Type.INT, nullable=chance.random() < 0.8)
    for number in range(chance.randint(1, 4)):
        kind = chance.choice(list(theme.values))
        yield TableColumn(name=f"c{number}", type=kind, nullable=chance.random() < 0.8)


def _row(chance: Random, columns: tuple[TableColumn, ...], theme: Theme) -> Row:
    return tuple(
        None if c.nullable and chance.random() < 0.15 else chance.choice(_values(c, theme)) for c in columns
    )


def _values(column: TableColumn, theme: Theme) -> tuple[Any, ...]:
    """Event time stays where a watermark can follow it."""
    timed = column.name == ROWTIME and theme is Theme.HOSTILE
    return (Theme.PLAIN if timed else theme).values[column.type]


def _events(
    chance: Random, columns: tuple[TableColumn, ...], changes: Changes, key: int, theme: Theme
) -> Iterator[Event]:
    live: dict[int, Row] = {}
    keys: set[Row] = set()
    for number in range(chance.randint(theme.least, theme.most)):
        step = "insert" if changes is Changes.APPEND or not live else chance.choice(STEPS)
        row = _row(chance, columns, theme)
        if step == "insert":
            if key and row[:key] in keys:
                continue
            keys.add(row[:key])
            live[number] = row
            yield Event(chain=number, before=None, after=row)
            continue
        chain = chance.choice(list(live))
        before = live.pop(chain)
        after = before[:key] + row[key:] if step == "update" else None
        if after is None:
            keys.discard(before[:key])
        else:
            live[chain] = after
        yield Event(chain=chain, before=before, after=after)


ROWTIME = "rt"
STEPS = ("insert", "insert", "insert", "update", "update", "delete")
