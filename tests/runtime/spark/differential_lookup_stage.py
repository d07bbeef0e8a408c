"""Rows with what a table gives for their keys, against a loop over both."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tidemill.connectors.api import LookedUp
from tidemill.connectors.lookup.asking import Asking
from tidemill.runtime.spark.lookup_stage import LookupStage

_TYPES = (pa.int32(), pa.string())
_SCOPES = count()


@dataclass
class Shelf:
    """A table in memory that remembers what it was asked."""

    rows: list[tuple[int | None, str | None, int]]
    asked: list[dict[str, Any]] = field(default_factory=list)

    def lookup(self, keys: pa.Table) -> LookedUp:
        self.asked += keys.to_pylist()
        columns = list(zip(*self.rows, strict=True)) if self.rows else [(), (), ()]
        types = (*_TYPES, pa.int64())
        arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
        return LookedUp(pa.table(arrays, names=["a", "b", "v"]), 1)


@dataclass
class Heard:
    reports: dict[str, Any] = field(default_factory=dict)

    def add(self, report: dict[str, Any]) -> None:
        self.reports |= report


_A = st.sampled_from([None, 1, 2, 3])
_B = st.sampled_from([None, "x", "y"])


@settings(max_examples=examples(150), deadline=None)
@given(
    rows=st.lists(st.tuples(_A, _B), max_size=8),
    table=st.lists(st.tuples(_A, _B, st.integers(0, 9)), max_size=8),
    keys=st.sampled_from([("a",), ("b",), ("a", "b")]),
    outer=st.booleans(),
    nested=st.booleans(),
    kinds=st.booleans(),
)
def test_as_a_loop(
    rows: list[tuple[int | None, str | None]],
    table: list[tuple[int | None, str | None, int]],
    keys: tuple[str, ...],
    outer: bool,
    nested: bool,
    kinds: bool,
) -> None:
    places = tuple(("a", "b").index(k) for k in keys)
    shelf, heard = Shelf(table), Heard()
    stage = LookupStage(
        asking=Asking(table=shelf, keys=keys, types=tuple(_TYPES[i] for i in places)),
        keys=places,
        outer=outer,
        nested=nested,
        kind=2 if kinds else None,
        width=2,
        name="lookup",
        scope=str(next(_SCOPES)),
        report=heard,
    )
    columns = [pa.array([r[i] for r in rows], t) for i, t in enumerate(_TYPES)]
    kind = pa.array([number % 4 if kinds else 0 for number in range(len(rows))], pa.int8())
    hidden = pa.array(range(len(rows)), pa.int64())
    batch = pa.RecordBatch.from_arrays([*columns, kind, hidden], names=["c0", "c1", "c2", "c3"])
    shown = [tuple(row.values()) for b in stage([batch]) for row in b.to_pylist()]
    expected: list[tuple[Any, ...]] = []
    asks = [
        None not in [r[i] for i in places] and not k & 1 for r, k in zip(rows, kind.to_pylist(), strict=True)
    ]
    for number, row in enumerate(rows):
        own, after = [row[i] for i in places], (kind[number].as_py(), number)
        found = [t for t in table if asks[number] and own == [t[i] for i in places]]
        if nested:
            listed = [{"r0": a, "r1": b, "r2": v} for a, b, v in found]
            expected.append((*row, listed, number, *after))
            continue
        expected += [(*row, *t, *after) for t in found]
        expected += [(*row, None, None, None, *after)] * (outer and not found)
    assert shown == expected
    asked = [tuple(k.values()) for k in shelf.asked]
    assert len(set(asked)) == len(asked)
    assert set(asked) == {tuple(r[i] for i in places) for r, ask in zip(rows, asks, strict=True) if ask}
    assert sum(r["requests"] for r in heard.reports.values()) == bool(rows)
