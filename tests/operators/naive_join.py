"""The slow twin of the join: two lists of rows, every result from a nested loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.operators.naive_aggregate import freeze

Row = tuple[Any, ...]
Matches = Callable[[Row, Row], bool]


@dataclass
class NaiveJoin:
    """``keys``: places of the key columns in both sides' rows, and whether NULL equals NULL there."""

    kind: str
    keys: tuple[tuple[int, int, bool], ...]
    residual: Matches | None
    width: int
    sides: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))

    def take(self, side: int, row: Row, weight: int) -> None:
        if weight > 0:
            self.sides[side].append(row)
        else:
            self.sides[side].remove(row)

    def result(self) -> Counter[Row]:
        left, right = self.sides
        pairs = [(a, b) for a in left for b in right if self._match(a, b)]
        lonely_left = [a for a in left if not any(self._match(a, b) for b in right)]
        lonely_right = [b for b in right if not any(self._match(a, b) for a in left)]
        rows: list[Row] = []
        if self.kind in ("INNER", "LEFT", "RIGHT", "FULL"):
            rows += [a + b for a, b in pairs]
        if self.kind in ("LEFT", "FULL"):
            rows += [a + (None,) * self.width for a in lonely_left]
        if self.kind in ("RIGHT", "FULL"):
            rows += [(None,) * self.width + b for b in lonely_right]
        if self.kind == "SEMI":
            rows += [a for a in left if any(self._match(a, b) for b in right)]
        if self.kind == "ANTI":
            rows += lonely_left
        return Counter(tuple(freeze(v) for v in row) for row in rows)

    def _match(self, a: Row, b: Row) -> bool:
        for i, j, null_safe in self.keys:
            if a[i] is None or b[j] is None:
                if not (null_safe and a[i] is b[j]):
                    return False
            elif freeze(a[i]) != freeze(b[j]):
                return False
        return self.residual is None or self.residual(a, b)
