"""Random relations: SQL text whose rows are determined by its input, and nothing else.

Every operator takes relations and gives one. What would leave an answer open (ties cut by ROW_NUMBER, sums
of inexact doubles, a global aggregate of nothing, of which a stream shows no row) is not generated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.random_queries.pools import HOSTILE, Theme, Type
from tests.random_queries.tables import Table

WHOLE = (Type.INT, Type.BIGINT, Type.TINYINT, Type.SMALLINT)
FLOATS = (Type.DOUBLE, Type.DYADIC, Type.FLOAT)
NUMBERS = (*WHOLE, *FLOATS, Type.DECIMAL, Type.WIDE, Type.WIDEST)
ARRAYS = (Type.INTS, Type.STRINGS)
UNORDERED = (*ARRAYS, Type.ROW, Type.MAP)
ELEMENTS = {Type.INTS: Type.INT, Type.STRINGS: Type.STRING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """``exact``: whether sums of it are the same in any order."""

    name: str
    type: Type
    exact: bool = True

    @property
    def ordered(self) -> bool:
        """Whether it can be compared, grouped and sorted."""
        return self.type not in UNORDERED


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """``source``: what stands in FROM before the alias; ``inputs``: the relations inside it; ``arrival``:
    the table, where the rows are those of an append-only table as it came; ``key``: columns of which no
    two rows have the same values, if any are known. ``at_its_time``: a row comes when its time has come."""

    source: str
    columns: tuple[Column, ...]
    inputs: tuple[Relation, ...] = ()
    key: tuple[Column, ...] = ()
    arrival: Table | None = None
    at_its_time: bool = False

    @property
    def query(self) -> str:
        """The relation as a whole query."""
        text = self.source
        return text[1:-1] if text.startswith("(") else f"SELECT * FROM {text}"

    @property
    def ordered(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.ordered)

    def of_type(self, *types: Type) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.type in types)

    def walk(self) -> Iterator[Relation]:
        """The relations inside, the smallest first, then this one."""
        for inner in self.inputs:
            yield from inner.walk()
        yield self


Operators = Mapping[str, tuple[int, Callable[["Maker", int], Relation]]]
"""By name: how often, and what makes one."""


@dataclass(slots=True, kw_only=True)
class Maker:
    """Draws relations; ``versions``: tables of what held when; ``names`` numbers aliases and columns so that
    every name is new."""

    chance: Random
    tables: Sequence[Table]
    versions: Sequence[Table] = ()
    theme: Theme = Theme.PLAIN
    names: int = 0
    operators: Operators = field(default_factory=dict)

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def relation(self, depth: int) -> Relation:
        """A relation of at most ``depth`` operators on top of each other."""
        if depth <= 0 or self.chance.random() < 0.1:
            return self.base()
        chosen = self.chance.choices(list(self.operators.values()), [n for n, _ in self.operators.values()])
        return chosen[0][1](self, depth - 1)

    def base(self) -> Relation:
        """A table as it is."""
        return self.of(self.chance.choice(self.tables))

    def of(self, table: Table) -> Relation:
        columns = tuple(
            Column(name=c.name, type=c.type, exact=self.theme.exact(c.type)) for c in table.columns
        )
        arrival = table if table.comes else None
        return Relation(source=table.name, columns=columns, arrival=arrival, key=columns[: table.key])

    def select(
        self,
        items: Sequence[tuple[str, Column]],
        rest: str,
        inputs: Sequence[Relation],
        distinct: bool = False,
    ) -> Relation:
        """SELECT items rest; every item is its text and the column it becomes, under a new name."""
        named = [(text, Column(name=self.name("c"), type=c.type, exact=c.exact)) for text, c in items]
        listed = ", ".join(f"{text} AS {column.name}" for text, column in named)
        word = "SELECT DISTINCT" if distinct else "SELECT"
        return Relation(
            source=f"({word} {listed} {rest})", columns=tuple(c for _, c in named), inputs=tuple(inputs)
        )

    def some(self, columns: Sequence[Column], least: int = 0, most: int = 99) -> list[Column]:
        """A few of the columns, in any order."""
        count = self.chance.randint(min(least, len(columns)), min(most, len(columns)))
        return self.chance.sample(list(columns), count)

    def flip(self, probability: float = 0.5) -> bool:
        return self.chance.random() < probability

    def literal(self, kind: Type) -> str:
        """A literal of a column's type."""
        value = self.chance.choice(self.theme.values.get(kind) or HOSTILE[kind])
        return LITERALS.get(kind, "CAST({} AS " + kind.value + ")").format(_text(kind, value))


LITERALS: dict[Type, str] = {
    Type.INT: "{}",
    Type.DECIMAL: "{}",
    Type.BOOLEAN: "{}",
    Type.STRING: "{}",
    Type.TIMESTAMP: "TIMESTAMP {}",
    Type.DATE: "DATE {}",
    Type.TIME: "TIME {}",
    Type.BYTES: "{}",
}


def _text(kind: Type, value: Any) -> str:
    """The value as it stands in a literal of its type, or in a CAST to it."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if kind is Type.BOOLEAN:
        return str(value).upper()
    if kind in NUMBERS and kind not in FLOATS:
        return f"'{value}'" if kind in (Type.WIDE, Type.WIDEST, Type.BIGINT) else str(value)
    shown = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), str(value))
    return "'" + shown.replace("'", "''") + "'"


def items(alias: str, columns: Sequence[Column]) -> list[tuple[str, Column]]:
    """Columns as they are."""
    return [(f"{alias}.{c.name}", c) for c in columns]


def same_type(left: Sequence[Column], right: Sequence[Column]) -> list[tuple[Column, Column]]:
    """Pairs that can be compared for equality."""
    return [(a, b) for a in left for b in right if a.ordered and a.type is b.type]
