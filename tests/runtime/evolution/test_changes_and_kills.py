"""Random queries that change again and again, on other numbers of partitions and with kills in between.

A change is taken over as it is, converted, backfilled or refused, as ``REFUSALS`` says beforehand. After
each change the sink has what a naive twin has, and what a batch query gives where the query has run from the
beginning; after a refusal and after some kills the old query goes on.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Crash, crash_at
from tests.session import differential_backfill as backfill
from tests.session.differential_backfill import FILTERS, INPUTS, agree, has, put
from tidemill.errors import StateError
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs.job import JobHandle

PARTITIONS = (1, 2, 3, 7)
KILLS = ("planned", "ran", "committed", "published")
UNCOMMITTED = ("planned", "ran")
HAVINGS = (0, 1, 3)
OTHER_KEY = "CAST(b AS INT)"
"""Of the type of the sink's key, so that the sink need not keep rows."""
Source = tuple[int, int | None, int]
Value = tuple[int | None, int]
CALLS: dict[str, Callable[[list[Value]], int | None]] = {
    "SUM(a)": lambda rows: sum(a for a, _ in rows if a is not None) if _some(rows) else None,
    "COUNT(a)": lambda rows: len(_some(rows)),
    "MAX(a)": lambda rows: max(_some(rows), default=None),
    "MIN(b)": lambda rows: min((b for _, b in rows), default=None),
    "COUNT(DISTINCT b)": lambda rows: len({b for _, b in rows}),
    "COUNT(a) FILTER (WHERE b > 1)": lambda rows: sum(a is not None and b > 1 for a, b in rows),
}
PASSES: dict[str, Callable[[int | None, int], bool]] = {
    "": lambda a, b: True,
    "WHERE a > 2": lambda a, b: a is not None and a > 2,
    "WHERE b <> 1": lambda a, b: b != 1,
    "WHERE a IS NULL OR b = 2": lambda a, b: a is None or b == 2,
}
OTHER, PARTIAL = "belongs to another query", "needs a job whose query has run from the beginning"
REFUSALS = {
    "calls": "",
    "shown": "",
    "having": "",
    "wider": "",
    "filter": OTHER,
    "key": OTHER,
    "input": OTHER,
}
"""Why the state of a query is refused after each change, if at all, where nothing is backfilled."""


def _some(rows: list[Value]) -> list[int]:
    return [a for a, _ in rows if a is not None]


@dataclass(frozen=True)
class Query:
    """``kind``: the type of the column ``a``; ``more``: what the HAVING wants COUNT(*) to be above;
    ``named``: the call whose name the first one has, if not its own."""

    calls: tuple[str, str] = ("SUM(a)", "COUNT(DISTINCT b)")
    factor: int = 1000
    more: int = 0
    key: str = "k"
    filter: str = ""
    source: str = "t"
    kind: str = "INT"
    named: str = ""

    @property
    def sql(self) -> str:
        first, second = (
            f"c{list(CALLS).index(call)}" for call in (self.named or self.calls[0], self.calls[1])
        )
        calls = f"{self.calls[0]} AS {first}, {self.calls[1]} AS {second}, COUNT(*) AS y"
        having = f" HAVING COUNT(*) > {self.more}" if self.more else ""
        return (
            f"SELECT k, CAST(COALESCE({first}, -9) * {self.factor} + COALESCE({second}, -9) AS BIGINT) AS x, "
            f"y FROM (SELECT {self.key} AS k, {calls} FROM {self.source} {self.filter} "
            f"GROUP BY {self.key}{having})"
        )

    def changed(self, change: str, chance: random.Random) -> Query:
        match change:
            case "calls":
                first, second = chance.sample(list(CALLS), 2)
                return replace(self, calls=(first, second))
            case "replaced":
                other = chance.choice([call for call in CALLS if call not in self.calls])
                return replace(self, calls=(other, self.calls[1]), named=self.calls[0])
            case "shown":
                return replace(self, factor=self.factor + 1)
            case "having":
                return replace(self, more=chance.choice([n for n in HAVINGS if n != self.more]))
            case "wider":
                return replace(self, kind="BIGINT")
            case "filter":
                return replace(self, filter=chance.choice([f for f in FILTERS if f != self.filter]))
            case "key":
                return replace(self, key=OTHER_KEY if self.key == "k" else "k")
        return replace(self, source=chance.choice([s for s in INPUTS if s != self.source]))


@dataclass
class Twin:
    """``since``: the row from which on a call has seen all. ``whole``: all calls always have, and the sink
    has what the query gives."""

    query: Query
    rows: list[Source] = field(default_factory=list)
    since: dict[str, int] = field(default_factory=dict)
    sink: dict[int, tuple[int, int]] = field(default_factory=dict)
    whole: bool = True

    def take_over(self, query: Query) -> None:
        old = {call: self.since.get(call, 0) for call in self.query.calls}
        self.since = {call: old.get(call, len(self.rows)) for call in query.calls}
        self.query, self.whole = query, self.whole and query == self.query

    def backfill(self, query: Query) -> None:
        self.query, self.since, self.sink = query, {}, {}
        self._show(self.rows)

    def take(self, rows: list[Source]) -> None:
        self.rows += rows
        self._show(rows)

    def _show(self, rows: list[Source]) -> None:
        """Keys of which rows came have their results; other keys keep what they have."""
        own = [row for row in rows if PASSES[self.query.filter](*row[1:])]
        for key in {self._key(row) for row in own}:
            seen = [
                (number, row[1:])
                for number, row in enumerate(self.rows)
                if self._key(row) == key and PASSES[self.query.filter](*row[1:])
            ]
            if len(seen) > self.query.more:
                first, second = (
                    CALLS[call]([row for number, row in seen if number >= self.since.get(call, 0)])
                    for call in self.query.calls
                )
                x = (-9 if first is None else first) * self.query.factor + (-9 if second is None else second)
                self.sink[key] = x, len(seen)

    def _key(self, row: Source) -> int:
        return row[0] if self.query.key == "k" else row[2]


@dataclass
class Job:
    """One job, its sink and its twin; ``done`` counts what has happened."""

    folder: Path
    chance: random.Random
    twin: Twin
    files: int = 0
    done: Counter[str] = field(default_factory=Counter)

    def session(self, query: Query, backfills: bool = False) -> TableEnvironment:
        more = {"tidemill__evolution": "backfill"} if backfills else {}
        checkpoint = {"execution__checkpointing__dir": str(self.folder / "state")}
        return backfill.session(self.folder, self.chance, PARTITIONS, query.kind, **checkpoint, **more)

    def came(self) -> list[Source]:
        """The rows of a new file."""
        name = f"f{self.files:03d}"
        self.files += 1
        put(self.folder, name, self.chance)
        lines = (self.folder / "in" / f"{name}.csv").read_text().splitlines()
        fields = [line.split(",") for line in lines]
        return [(int(k), int(a) if a else None, int(b)) for k, a, b in fields]

    def agree(self) -> None:
        """Waits until the sink has what it must have."""
        if self.twin.whole:
            rows = agree(self.session(self.twin.query), self.folder, self.twin.query.sql)
            if self.twin.query.source != "t":
                self.twin.sink = {k: (x, y) for k, x, y in rows}
        wanted = [(k, *shown) for k, shown in sorted(self.twin.sink.items())]
        has(self.folder, wanted, self.twin.query)

    def killed(self, query: Query, backfills: bool) -> str:
        """Where the job was killed that was started with rows that it had not read."""
        made, step = self.session(query, backfills), self.chance.choice(KILLS)
        made.context.fault = crash_at(step, 1)
        with pytest.raises(Crash):
            started(made, query).wait(backfill.SECONDS)
        self.done["killed"] += 1
        return step

    def go_on(self, query: Query, backfills: bool, *, takes: bool) -> None:
        """``takes``: the query takes over the state that there is; otherwise it is computed anew."""
        new = self.came()
        step = self.killed(query, backfills) if self.chance.random() < 0.6 else ""
        if takes and step in UNCOMMITTED and self.chance.random() < 0.4:
            query, backfills = self.twin.query, False
            self.done["given up"] += 1
        if takes:
            self.twin.take_over(query)
            self.twin.take(new)
        else:
            self.twin.rows += new
            self.twin.backfill(query)
        job = started(self.session(query, backfills), query)
        try:
            self.agree()
            self.twin.take(self.came())
            self.agree()
        finally:
            job.cancel()

    def change(self, change: str, backfills: bool) -> None:
        old, new = self.twin.query, self.twin.query.changed(change, self.chance)
        why = REFUSALS[change] if new != old else ""
        anew = backfills and new != old
        if anew:
            why = "" if self.twin.whole else PARTIAL
        self.done["backfilled" if anew and not why else f"{change}: {why or 'taken over'}"] += 1
        if why:
            with pytest.raises(StateError, match=why):
                started(self.session(new, backfills), new)
            self.agree()
            new, backfills, anew = old, False, False
        self.go_on(new, backfills, takes=not anew)


def started(made: TableEnvironment, query: Query) -> JobHandle:
    job = made.execute_sql(f"INSERT INTO s {query.sql}").job
    assert job is not None
    return job


def begun(folder: Path, seed: int) -> Job:
    """A job that has run once."""
    (folder / "in").mkdir()
    with sqlite3.connect(folder / "db") as db:
        db.execute("CREATE TABLE s (k INTEGER PRIMARY KEY, x BIGINT, y BIGINT)")
    job = Job(folder, random.Random(seed), Twin(Query()))
    job.go_on(job.twin.query, False, takes=True)
    return job


def test_each_kind_of_change_once(spark: SparkSession, tmp_path: Path) -> None:
    job = begun(tmp_path, 3)
    for change, backfills in (("filter", False), ("key", True), ("calls", False), ("wider", False)):
        job.change(change, backfills)
    assert job.done.pop("killed")
    assert sorted(job.done) == ["backfilled", "calls: taken over", f"filter: {OTHER}", "wider: taken over"]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(10, 14))
def test_many_changes_kills_and_partitions(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    job = begun(tmp_path, seed)
    for _ in range(8):
        backfills = job.chance.random() < (0.6 if job.twin.whole else 0.2)
        known = list(REFUSALS)
        if backfills:
            known = [change for change in known if change not in ("wider", "replaced")]
        elif job.twin.query.source != "t":
            known = ["filter", "key", "input"]
        job.change(job.chance.choice(known), backfills)
    assert job.done["killed"] > 1
