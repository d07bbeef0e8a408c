"""Random subqueries inside subqueries, which read the rows of all queries around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.random_queries.aggregates import MINIMA
from tests.random_queries.expressions import COMPARISONS, Operand, condition
from tests.random_queries.joins import keyed
from tests.random_queries.pools import Type
from tests.random_queries.relation import Column, Maker, Relation, items

Around = Sequence[Sequence[Operand]]
"""What can be read of the queries around, the nearest first."""


def nested(maker: Maker, depth: int) -> Relation:
    """A test of up to three levels, as a condition, or shown; or a scalar subquery, shown."""
    left = maker.relation(depth)
    inside = _Inside(maker)
    outer = items(maker.name("t"), left.columns)
    (alias, _), shown = outer[0][0].split("."), list(outer)
    rest = f"FROM {left.source} AS {alias}"
    if maker.flip(0.6):
        rest += f" WHERE {inside.test([outer], 2)}"
    elif maker.flip(0.5):
        shown.append((f"({inside.test([outer], 2)})", Column(name="", type=Type.BOOLEAN)))
    else:
        shown.append(inside.scalar([outer], 2))
    return keyed(maker.select(shown, rest, (left, *inside.read)), left)


@dataclass(slots=True)
class _Inside:
    """Writes subqueries; ``read``: the relations in them."""

    maker: Maker
    read: list[Relation] = field(default_factory=list)

    def test(self, around: Around, levels: int) -> str:
        """Something of which the answer hangs on a subquery."""
        forms = (self._exists, self._membership, self._membership, self._compared)
        text = self.maker.chance.choice(forms)(around, levels)
        if self.maker.flip(0.15):
            more = condition(self.maker, around[0])
            return self.maker.chance.choice((f"({text} OR {more})", f"NOT ({text})", f"({text}) IS NOT TRUE"))
        return text

    def _inner(self, around: Around, levels: int) -> tuple[list[Operand], str]:
        """The columns of a relation, and FROM and WHERE over it."""
        inner = self.maker.relation(0)
        self.read.append(inner)
        own = items(self.maker.name("t"), inner.columns)
        parts = []
        for operands in around:
            pairs = [(a, b) for a in own for b in operands if a[1].ordered and a[1].type is b[1].type]
            if pairs and self.maker.flip(0.7):
                (a, _), (b, _) = self.maker.chance.choice(pairs)
                parts.append(f"{a} {self.maker.chance.choice(('=', '=', '=', *COMPARISONS))} {b}")
        if levels > 1 and self.maker.flip(0.6):
            parts.append(self.test([own, *around], levels - 1))
        if not parts or self.maker.flip(0.2):
            parts.append(condition(self.maker, own))
        alias = own[0][0].split(".")[0]
        return own, f"FROM {inner.source} AS {alias} WHERE {' AND '.join(parts)}"

    def _exists(self, around: Around, levels: int) -> str:
        _, text = self._inner(around, levels)
        return f"{self.maker.chance.choice(('EXISTS', 'NOT EXISTS'))} (SELECT 1 {text})"

    def _membership(self, around: Around, levels: int) -> str:
        own, text = self._inner(around, levels)
        pairs = [(a, b) for a in around[0] for b in own if a[1].ordered and a[1].type is b[1].type]
        if not pairs:
            return f"EXISTS (SELECT 1 {text})"
        chosen = self.maker.chance.sample(pairs, min(len(pairs), self.maker.chance.choice((1, 1, 1, 2))))
        tested, given = (", ".join(side) for side in zip(*((a[0], b[0]) for a, b in chosen), strict=True))
        tested = f"({tested})" if len(chosen) > 1 else tested
        word = self.maker.chance.choice(("IN", "NOT IN", "NOT IN"))
        return f"{tested} {word} (SELECT {given} {text})"

    def _compared(self, around: Around, levels: int) -> str:
        text, column = self.scalar(around, levels)
        alike = [a for a, c in around[0] if c.type is column.type]
        other = self.maker.chance.choice(alike) if alike else self.maker.literal(column.type)
        return f"{other} {self.maker.chance.choice(COMPARISONS)} {text}"

    def scalar(self, around: Around, levels: int) -> Operand:
        """MIN, MAX or COUNT of what fits; the COUNT perhaps of a row that is always there."""
        own, text = self._inner(around, levels)
        measured, column = self.maker.chance.choice([o for o in own if o[1].ordered])
        words = ("MIN", "MAX", "COUNT") if column.type in MINIMA else ("COUNT",)
        function = self.maker.chance.choice(words)
        if function != "COUNT":
            return f"(SELECT {function}({measured}) {text})", Column(name="", type=column.type)
        count = f"SELECT COUNT({measured}) AS n {text}"
        if self.maker.flip(0.3):
            count = f"SELECT SUM(n) FROM ({count}) AS {self.maker.name('v')}"
        return f"({count})", Column(name="", type=Type.BIGINT)
