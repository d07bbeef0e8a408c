"""Random queries with subqueries inside subqueries over two small tables of nullable integers.

Every row of an answer is determined: a scalar subquery has one row, LIMIT cuts rows that all columns order.
The text means the same to SQLite, but for LATERAL, ALL, ANY and ROLLUP, which it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

TABLES = {"o": ("k", "v"), "i": ("g", "w")}
COMPARISONS = ("=", "=", "=", "<", "<=", ">", "<>")
AGGREGATES = ("COUNT(*)", "COUNT({0})", "COUNT(DISTINCT {0})", "SUM({0})", "MIN({0})", "MAX({0})")
LISTED = ("EXISTS", "NOT EXISTS")
SETS = ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT")

Columns = Sequence[str]
Outer = tuple[Columns, ...]
"""The columns of the queries around, the nearest first."""
Form = Callable[[Columns, Outer, int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """``shared``: SQLite knows all of it."""

    text: str
    shared: bool


def random_query(seed: int) -> Nested:
    maker = _Maker(Random(seed))
    text = maker.top()
    return Nested(text=text, shared=maker.shared)


class _Maker:
    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.shared = True
        self._names = 0

    def top(self) -> str:
        """Three levels, the first of them over one or two relations."""
        source, columns = self._from((), 1)
        shown = [*self.chance.sample(columns, min(2, len(columns)))]
        if self._flip(0.6):
            shown.append(self._value(columns, (), 2))
        named = ", ".join(f"{x} AS {self._name('r')}" for x in shown)
        where = f" WHERE {self._condition(columns, (), 2)}" if len(shown) < 3 or self._flip(0.2) else ""
        return f"SELECT {named} FROM {source}{where}"

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    def _flip(self, probability: float) -> bool:
        return self.chance.random() < probability

    def _column(self, own: Columns, outer: Outer) -> str:
        """Mostly of the query itself, sometimes of one around it."""
        around = [c for columns in outer for c in columns]
        return self.chance.choice(around if around and self._flip(0.3) else own)

    def _from(self, outer: Outer, depth: int) -> tuple[str, Columns]:
        text, columns = self._relation(outer, depth)
        if not self._flip(0.2):
            return text, columns
        if self._flip(0.35):
            inner, more = self._lateral((columns, *outer), depth - 1)
            kind, on = self.chance.choice((("CROSS JOIN", ""), ("LEFT JOIN", "ON TRUE"), ("LEFT JOIN", "ON")))
            both = [*columns, *more]
            on = f"ON {self._simple(both, outer)}" if on == "ON" else on
            return f"{text} {kind} {inner} {on}", both
        other, more = self._relation(outer, depth)
        both = [*columns, *more]
        kind = self.chance.choice(("CROSS JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        if kind in ("RIGHT JOIN", "FULL JOIN") and "(" in text + other:
            self.shared = False  # SQLite does not pad what a query there reads of the rows around it
        equal = f"{self.chance.choice(columns)} = {self.chance.choice(more)}"
        more_on = f" AND {self._simple(both, outer)}" if self._flip(0.4) else ""
        return f"{text} {kind} {other}" + ("" if kind == "CROSS JOIN" else f" ON {equal}{more_on}"), both

    def _relation(self, outer: Outer, depth: int) -> tuple[str, Columns]:
        if depth > 0 and self._flip(0.15):
            alias, names = self._name("t"), [self._name("c"), self._name("c")]
            text = self._query(names, outer, depth - 1)
            return f"({text}) AS {alias}", [f"{alias}.{c}" for c in names]
        table, alias = self.chance.choice(list(TABLES)), self._name("t")
        return f"{table} AS {alias}", [f"{alias}.{c}" for c in TABLES[table]]

    def _lateral(self, outer: Outer, depth: int) -> tuple[str, Columns]:
        self.shared = False
        alias, names = self._name("t"), [self._name("c"), self._name("c")]
        text = self._query(names, outer, max(depth, 0))
        return f"LATERAL ({text}) AS {alias}", [f"{alias}.{c}" for c in names]

    def _query(self, names: Columns, outer: Outer, depth: int) -> str:
        """A query with columns of these names, which reads the rows around it."""
        forms = [self._plain, self._plain, self._global, self._global, self._grouped, self._limited]
        if depth > 0:
            forms += [self._set, self._ranked, self._plain, self._single]
        return self.chance.choice(forms)(names, outer, depth)

    def _select(self, expressions: Sequence[str], names: Columns, distinct: bool = False) -> str:
        listed = ", ".join(f"{x} AS {name}" for x, name in zip(expressions, names, strict=True))
        return f"SELECT {'DISTINCT ' if distinct else ''}{listed}"

    def _where(self, own: Columns, outer: Outer, depth: int) -> str:
        """Mostly correlated by equality."""
        around = [c for columns in outer for c in columns]
        parts = []
        if around and self._flip(0.75):
            parts.append(f"{self.chance.choice(own)} = {self.chance.choice(around)}")
        if not parts or self._flip(0.5):
            parts.append(self._condition(own, outer, depth))
        return f" WHERE {' AND '.join(parts)}" if self._flip(0.9) else ""

    def _plain(self, names: Columns, outer: Outer, depth: int) -> str:
        source, columns = self._from(outer, depth)
        shown = [self._column(columns, outer) for _ in names]
        select = self._select(shown, names, distinct=self._flip(0.15))
        return f"{select} FROM {source}{self._where(columns, outer, depth)}"

    def _global(self, names: Columns, outer: Outer, depth: int) -> str:
        source, columns = self._from(outer, depth)
        select = self._select([self._aggregate(columns) for _ in names], names, distinct=self._flip(0.1))
        having = f" HAVING {self._having(columns, outer)}" if self._flip(0.3) else ""
        limit = " LIMIT 1" if self._flip(0.1) else ""
        return f"{select} FROM {source}{self._where(columns, outer, depth)}{having}{limit}"

    def _aggregate(self, columns: Columns) -> str:
        text = self.chance.choice(AGGREGATES).format(self.chance.choice(columns))
        return f"{text} + 1" if self._flip(0.1) else text

    def _having(self, columns: Columns, outer: Outer) -> str:
        around = [c for more in outer for c in more]
        bound = self.chance.choice(around) if around and self._flip(0.3) else str(self.chance.randint(0, 2))
        return f"{self._aggregate(columns)} {self.chance.choice(COMPARISONS)} {bound}"

    def _grouped(self, names: Columns, outer: Outer, depth: int) -> str:
        source, columns = self._from(outer, depth)
        key = self.chance.choice(columns)
        shown = [key, *(self._aggregate(columns) for _ in names[1:])]
        group = key
        if self._flip(0.1):
            self.shared, group = False, f"ROLLUP ({key})"
        having = f" HAVING {self._having(columns, outer)}" if self._flip(0.3) else ""
        where = self._where(columns, outer, depth)
        return f"{self._select(shown, names)} FROM {source}{where} GROUP BY {group}{having}"

    def _limited(self, names: Columns, outer: Outer, depth: int) -> str:
        """Ordered by all that is shown."""
        directions = ("", " DESC")
        order = ", ".join(f"{name}{self.chance.choice(directions)}" for name in names)
        offset = f" OFFSET {self.chance.randint(1, 2)}" if self._flip(0.2) else ""
        inner = self._plain(names, outer, depth)
        return f"{inner} ORDER BY {order} LIMIT {self.chance.randint(1, 3)}{offset}"

    def _set(self, names: Columns, outer: Outer, depth: int) -> str:
        forms = (self._plain, self._global, self._grouped)
        left, right = (self._wrapped(self.chance.choice(forms), names, outer, depth - 1) for _ in range(2))
        return f"{left} {self.chance.choice(SETS)} {right}"

    def _wrapped(self, form: Form, names: Columns, outer: Outer, depth: int) -> str:
        """A branch of a set operation, whose own LIMIT is its own."""
        inner = [self._name("c") for _ in names]
        return f"{self._select(inner, names)} FROM ({form(inner, outer, depth)}) AS {self._name('t')}"

    def _ranked(self, names: Columns, outer: Outer, depth: int) -> str:
        """The first rows of each partition, by all that is shown."""
        alias, inner, rank = self._name("t"), [self._name("c") for _ in names], self._name("n")
        columns = [f"{alias}.{c}" for c in inner]
        over = f"ROW_NUMBER() OVER (PARTITION BY {columns[0]} ORDER BY {', '.join(columns)}) AS {rank}"
        text = f"SELECT {', '.join(columns)}, {over} FROM ({self._plain(inner, outer, depth - 1)}) AS {alias}"
        outside = self._name("t")
        shown = self._select([f"{outside}.{c}" for c in inner], names)
        return f"{shown} FROM ({text}) AS {outside} WHERE {outside}.{rank} <= {self.chance.randint(1, 2)}"

    def _single(self, names: Columns, outer: Outer, depth: int) -> str:
        """What is made of rows that are always there."""
        alias, inner = self._name("t"), [self._name("c"), self._name("c")]
        columns = [f"{alias}.{c}" for c in inner]
        source = f"({self._global(inner, outer, depth - 1)}) AS {alias}"
        if self._flip(0.5):
            return f"{self._select([self._aggregate(columns) for _ in names], names)} FROM {source}"
        values = [self._column(columns, outer) for _ in names]
        return f"{self._select(values, names)} FROM {source}{self._where(columns, outer, 0)}"

    def _simple(self, own: Columns, outer: Outer) -> str:
        """A condition without subqueries."""
        a, b = self._column(own, outer), self._column(own, outer)
        number = self.chance.randint(0, 3)
        return self.chance.choice(
            (
                f"{a} {self.chance.choice(COMPARISONS)} {b}",
                f"{a} {self.chance.choice(COMPARISONS)} {b}",
                f"{a} {self.chance.choice(COMPARISONS)} {number}",
                f"{a} IS {self.chance.choice(('', 'NOT '))}NULL",
                f"{a} IS NOT DISTINCT FROM {b}",
            )
        )

    def _condition(self, own: Columns, outer: Outer, depth: int) -> str:
        roll = self.chance.random()
        if depth <= 0 or roll < 0.2:
            return self._simple(own, outer)
        if roll < 0.35:
            left, right = (self._condition(own, outer, depth - 1) for _ in range(2))
            forms = f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})", f"({left}) IS NOT TRUE"
            return self.chance.choice(forms)
        return self._with_query(own, outer, depth)

    def _with_query(self, own: Columns, outer: Outer, depth: int) -> str:
        around = (own, *outer)
        a, b = self._column(own, outer), self._column(own, outer)
        forms = (self._exists, self._in, self._in, self._rows_in, self._compared, self._quantified)
        return self.chance.choice(forms)(a, b, around, depth - 1)

    def _exists(self, a: str, b: str, around: Outer, depth: int) -> str:
        return f"{self.chance.choice(LISTED)} ({self._query([self._name('c')], around, depth)})"

    def _in(self, a: str, b: str, around: Outer, depth: int) -> str:
        tested = str(self.chance.randint(0, 2)) if self._flip(0.15) else a
        word = self.chance.choice(("IN", "NOT IN"))
        return f"{tested} {word} ({self._query([self._name('c')], around, depth)})"

    def _rows_in(self, a: str, b: str, around: Outer, depth: int) -> str:
        names = [self._name("c"), self._name("c")]
        return f"({a}, {b}) {self.chance.choice(('IN', 'NOT IN'))} ({self._query(names, around, depth)})"

    def _compared(self, a: str, b: str, around: Outer, depth: int) -> str:
        return f"{a} {self.chance.choice(COMPARISONS)} {self._scalar(around, depth)}"

    def _quantified(self, a: str, b: str, around: Outer, depth: int) -> str:
        self.shared = False
        word = f"{self.chance.choice(COMPARISONS[2:])} {self.chance.choice(('ALL', 'ANY'))}"
        return f"{a} {word} ({self._query([self._name('c')], around, depth)})"

    def _scalar(self, around: Outer, depth: int) -> str:
        """Always one row, or none."""
        names = [self._name("c")]
        if self._flip(0.2):
            return f"({self._plain(names, around, depth)} ORDER BY {names[0]} LIMIT 1)"
        return f"({self._global(names, around, depth)})"

    def _value(self, own: Columns, outer: Outer, depth: int) -> str:
        """A scalar subquery, or what is asked of one as a number."""
        if self._flip(0.6):
            return self._scalar((own, *outer), depth)
        return f"CASE WHEN {self._with_query(own, outer, depth)} THEN 1 WHEN {own[0]} = 1 THEN 2 ELSE 0 END"
