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
    VERSIONS = "versions"
    """As KEYED, for FOR SYSTEM_TIME AS OF alone: a row that goes may say a later time than it had."""


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

    @property
    def comes(self) -> bool:
        """Whether rows with an event time come, and none goes."""
        return bool(self.rowtime) and self.changes is Changes.APPEND

    def without(self, chains: set[int]) -> Table:
        return replace(self, events=tuple(e for e in self.events if e.chain not in chains))

    def ddl(self, path: Path, *, changelog: bool) -> list[str]:
        """What makes the table over the changelog, or over the final rows (or versions), and the one to look
        these up in."""
        columns = [c.ddl for c in self.columns]
        plain = "debezium-json" if changelog and self.changes is not Changes.APPEND else "json"
        versions = self.changes is Changes.VERSIONS and not changelog
        if versions:
            columns.append(f"{GONE} BOOLEAN")
        looked_up = _table(f"{LOOKED_UP}{self.name}", columns, path.with_suffix(".rows"), "json")
        if self.rowtime:
            # Nothing is late: a batch knows of no lateness.
            delay = "'0.001' SECOND" if self.sorted else "'15' MINUTE"
            columns.append(f"WATERMARK FOR {self.rowtime} AS {self.rowtime} - INTERVAL {delay}")
        if self.key:
            names = ", ".join(c.name for c in self.columns[: self.key])
            columns.append(f"PRIMARY KEY ({names}) NOT ENFORCED")
        if not versions:
            made = [_table(self.name, columns, path, plain)]
            return made if self.changes is Changes.VERSIONS else [*made, looked_up]
        names = ", ".join(c.name for c in self.columns)
        view = f"CREATE VIEW {self.name} AS SELECT {names} FROM {self.name}_all WHERE NOT {GONE}"
        return [_table(f"{self.name}_all", columns, path, plain), view]

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
        if self.changes is not Changes.VERSIONS:
            yield from (json.dumps(self._object(row)) for row in self.rows)
            return
        for event in self.events:
            row = self._object(event.after or event.before)
            yield json.dumps({**(row or {}), GONE: event.after is None})

    def _object(self, row: Row | None) -> dict[str, Any] | None:
        if row is None:
            return None
        return {c.name: _written(c.type, v) for c, v in zip(self.columns, row, strict=True)}


def _table(name: str, columns: list[str], path: Path, written: str) -> str:
    options = f"'connector' = 'filesystem', 'path' = '{path}', 'format' = '{written}'"
    return f"CREATE TABLE {name} ({', '.join(columns)}) WITH ({options})"


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
    changes = chance.choice((Changes.APPEND, Changes.KEYED))
    key = chance.choice((1, 1, 2)) if changes is Changes.KEYED else 0
    columns = tuple(_columns(chance, key, theme))
    rowtime = ""
    if changes is Changes.APPEND or chance.random() < 0.5:
        columns = (*columns, TIME)
        rowtime = ROWTIME
    made = Table(
        name=name,
        columns=columns,
        changes=changes,
        key=key,
        events=(),
        repeats=repeats and changes is Changes.KEYED,
        rowtime=rowtime,
        sorted=changes is Changes.APPEND and chance.random() < 0.5,
        theme=theme,
    )
    return again(made, chance)


def random_versions(chance: Random, name: str, theme: Theme, *, repeats: bool) -> Table:
    """A table to ask for what held at a time: versions come in any order, some of one time."""
    key = chance.choice((1, 1, 2))
    made = Table(
        name=name,
        columns=(*_columns(chance, key, theme), TIME),
        changes=Changes.VERSIONS,
        key=key,
        events=(),
        repeats=repeats,
        rowtime=ROWTIME,
        theme=theme,
    )
    return again(made, chance)


def again(table: Table, chance: Random) -> Table:
    """Another life of the same table."""
    events = list(_events(chance, table.columns, table.changes, table.key, table.theme))
    if table.sorted:
        events.sort(key=_time)
    if table.changes is Changes.VERSIONS and not table.repeats:
        # Where changes may repeat, the row that goes is the one that is known.
        events = [_gone_later(e, chance, table) for e in events]
    return replace(table, events=tuple(events))


def _gone_later(event: Event, chance: Random, table: Table) -> Event:
    """A deletion with a time of its own."""
    if event.before is None or event.after is not None or chance.random() < 0.3:
        return event
    time = chance.choice(_values(table.columns[-1], table.theme))
    return replace(event, before=(*event.before[:-1], time))


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
GONE = "gone"
LOOKED_UP = "look_"
TIME = TableColumn(name=ROWTIME, type=Type.TIMESTAMP, nullable=False)
STEPS = ("insert", "insert", "insert", "update", "update", "delete")
