"""One random case: tables, queries over them, and how the stream of each query is cut.

A case is all that its seed says: the same seed gives the same case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.random_queries import aggregates, joins, ranks, subqueries, temporal, windows
from tests.random_queries.pools import Theme, Type
from tests.random_queries.relation import Column, Maker, Relation
from tests.random_queries.tables import Table, random_table, random_versions

QUERIES_PER_CASE = 5

OPERATORS = {
    "filtered": (2, joins.filtered),
    "join": (6, joins.join),
    "within": (3, joins.within),
    "using": (1, joins.using),
    "lateral": (1, joins.lateral),
    "chain": (2, joins.chain),
    "exists": (2, joins.exists),
    "membership": (3, joins.membership),
    "scalar": (2, joins.scalar),
    "nested": (4, subqueries.nested),
    "unnest": (1, joins.unnest),
    "grouped": (6, aggregates.grouped),
    "distinct": (1, aggregates.distinct),
    "set_operation": (3, aggregates.set_operation),
    "doubled": (2, aggregates.doubled),
    "top_n": (5, ranks.top_n),
    "deduplicated": (1, ranks.deduplicated),
    "over": (2, ranks.over),
    "limited": (1, ranks.limited),
    "windowed": (4, windows.windowed),
    "window_top_n": (1, windows.window_top_n),
    "window_join": (1, windows.window_join),
    "over_time": (1, windows.over_time),
    "as_of": (4, temporal.as_of),
    "looked_up": (2, temporal.looked_up),
}

CHOICES: dict[str, tuple[str, ...]] = {
    "table.exec.mini-batch.enabled": ("true", "true", "false"),
    "table.optimizer.agg-phase-strategy": ("AUTO", "AUTO", "ONE_PHASE", "TWO_PHASE"),
    "table.optimizer.distinct-agg.split.enabled": ("false", "false", "true"),
    "parallelism.default": ("1", "1", "2"),
    "table.exec.state.ttl": ("0 ms", "0 ms", "1 d"),
    "tidemill.epoch.resident": ("true", "true", "false"),
    "tidemill.epoch.small-bytes": ("1 mb", "1 mb", "0"),
}
CALM = {name: chosen for name, chosen in OPERATORS.items() if name not in ("chain", "nested", "window_join")}
"""Without what makes millions of rows of thousands."""
THEMES = {Theme.PLAIN: 9, Theme.HOSTILE: 10, Theme.LARGE: 1}
STEPS = ("planned", "ran", "committed", "published")
"""Where a job may die."""
STORED = (Type.INT, Type.BIGINT, Type.STRING, Type.DOUBLE)
"""Types that a SQLite table gives back as they are."""
SINK = "sink"
REPEATS = "table.exec.source.cdc-events-duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A stretch of epochs of at most ``rows`` rows of each table; the job stops after ``epochs`` of them
    and the next stretch resumes it. 0 is to the end. ``crash``: it dies at that step of the last one."""

    rows: int
    epochs: int
    crash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """``limit``: LIMIT without an order, of which only the number of rows is determined, -1 is none.
    ``sink``: the stream goes into a table by the relation's key, so that no -U is needed, or by ``other``
    columns, under which rows meet."""

    relation: Relation
    options: dict[str, str]
    runs: tuple[Run, ...]
    limit: int = -1
    sink: bool = False
    other: tuple[Column, ...] = ()

    @property
    def key(self) -> tuple[Column, ...]:
        """The sink's."""
        return self.other or self.relation.key

    @property
    def stored(self) -> tuple[Column, ...]:
        """The columns that go into the sink."""
        return (*self.key, *(c for c in stored_columns(self.relation) if c not in self.key))

    @property
    def at_once(self) -> Query:
        """The same, its stream in one epoch."""
        return replace(self, runs=(Run(rows=1_000_000, epochs=0),))

    @property
    def query(self) -> str:
        """What the batch answers."""
        if not self.sink:
            return self.relation.query
        present = " AND ".join(f"{c.name} IS NOT NULL" for c in self.key)
        names = ", ".join(c.name for c in self.stored)
        return f"SELECT {names} FROM {self.relation.source} AS s WHERE {present}"

    @property
    def text(self) -> str:
        """What streams."""
        if self.sink:
            return f"INSERT INTO {SINK} {self.query}"
        return self.query + (f" LIMIT {self.limit}" if self.limit >= 0 else "")


def stored_columns(relation: Relation) -> tuple[Column, ...]:
    """Those of its columns that a sink can have."""
    return tuple(filter(_stored, relation.columns))


def _stored(column: Column) -> bool:
    """SQLite has no NaN, and takes -0.0 for the key 0.0."""
    return column.type in STORED and (column.exact or column.type is not Type.DOUBLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    seed: int
    theme: Theme
    tables: tuple[Table, ...]
    queries: tuple[Query, ...]


def random_case(seed: int) -> Case:
    chance = Random(seed)
    (theme,) = chance.choices(list(THEMES), list(THEMES.values()))
    repeats = chance.random() < 0.2
    names = [f"src{n}" for n in range(chance.randint(2, 3))]
    tables = tuple(random_table(chance, name, theme, repeats=repeats) for name in names)
    versions = (random_versions(chance, "ver0", theme, repeats=repeats),)
    queries = []
    for _ in range(QUERIES_PER_CASE):
        operators = CALM if theme is Theme.LARGE else OPERATORS
        maker = Maker(chance=chance, tables=tables, versions=versions, theme=theme, operators=operators)
        relation = maker.relation(0)
        while not relation.inputs:
            relation = maker.relation(chance.choice(theme.depth))
        queries.append(_query(chance, relation, theme, repeats))
    return Case(seed=seed, theme=theme, tables=(*tables, *versions), queries=tuple(queries))


def _query(chance: Random, relation: Relation, theme: Theme, repeats: bool) -> Query:
    options = {key: chance.choice(values) for key, values in CHOICES.items()}
    limit = -1
    sink = all(map(_stored, relation.key)) and bool(relation.key) and chance.random() < 0.8
    if chance.random() < 0.05 and " LIMIT " not in relation.query and not sink:
        limit = chance.randint(1, 8)
    other = _other_key(chance, relation) if limit < 0 else ()
    sink = sink or bool(other)
    return Query(
        relation=relation,
        options={**options, REPEATS: str(repeats).lower()},
        runs=_runs(chance, 50 if theme is Theme.LARGE else 1, sink),
        limit=limit,
        sink=sink,
        other=other,
    )


def _other_key(chance: Random, relation: Relation) -> tuple[Column, ...]:
    """A column under which rows may meet. Rows of tables that are only put together meet as they are read."""
    columns = stored_columns(relation)
    if chance.random() < 0.8 or len(columns) < 2 or " UNION ALL " in relation.query:
        return ()
    column = chance.choice(columns)
    return () if (column,) == relation.key else (column,)


def _runs(chance: Random, size: int, sink: bool) -> tuple[Run, ...]:
    """One stretch, or two with a stop or a crash between (only into a sink: a SELECT shows rows twice)."""
    last = Run(rows=size * chance.choice((6, 8, 10, 13, 100)), epochs=0)
    if chance.random() < 0.7:
        return (last,)
    crash = chance.choice(STEPS) if sink and chance.random() < 0.5 else ""
    return (Run(rows=size * chance.choice((3, 5, 8)), epochs=chance.choice((1, 1, 2)), crash=crash), last)
