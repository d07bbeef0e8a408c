"""What was found for a row stays with it: a row that goes takes back all that an equal one gave, at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.operators.epochs import Epochs, fold
from tests.operators.timed_epochs import TimedEpochs
from tests.tiers import examples
from tidemill.operators.lookup_join import LookupJoinSpec

INSERT, BEFORE, AFTER, DELETE = range(4)
Row = tuple[str | None, int]


def spec(outer: bool) -> LookupJoinSpec:
    return LookupJoinSpec(
        columns=(("k", pa.string()), ("n", pa.int64())),
        found=(("x", pa.int64()), ("y", pa.string())),
        outer=outer,
    )


@dataclass
class Input:
    """The changes of an epoch. Every look finds so many rows, with its own number in ``x``: two are equal."""

    rows: list[tuple[Row, int, int, bool, str | None]] = field(default_factory=list)
    expected: list[Any] = field(default_factory=list)

    def come(self, row: Row, number: int, count: int, outer: bool) -> None:
        kind = (INSERT, AFTER)[row[1]]
        looks: Sequence[str | None] = [str(i // 2) for i in range(count)] or [None]
        self.rows += [(row, kind, number, look is not None, look) for look in looks]
        if count or outer:
            self.expected += [(kind, (*row, number if look else None, look)) for look in looks]

    def go(self, row: Row) -> None:
        self.rows.append((row, (DELETE, BEFORE)[row[1]], -1, False, None))

    def port(self) -> pa.Table:
        return pa.table(
            {
                "k": pa.array([row[0] for row, *_ in self.rows], pa.string()),
                "n": pa.array([row[1] for row, *_ in self.rows], pa.int64()),
                "$row": pa.array([number for _, _, number, _, _ in self.rows], pa.int64()),
                "x": pa.array(
                    [number if there else None for _, _, number, there, _ in self.rows], pa.int64()
                ),
                "y": pa.array([look for *_, look in self.rows], pa.string()),
                "$there": pa.array([there or None for _, _, _, there, _ in self.rows], pa.bool_()),
                "$kind": pa.array([kind for _, kind, _, _, _ in self.rows], pa.int8()),
            }
        )


@settings(max_examples=examples(80), deadline=None)
@given(
    moves=st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 1), st.booleans(), st.integers(0, 3)),
        max_size=40,
    ),
    size=st.integers(1, 9),
    outer=st.booleans(),
)
def test_a_row_goes_with_what_an_equal_one_found(
    moves: list[tuple[str | None, int, bool, int]], size: int, outer: bool
) -> None:
    equal: Counter[Row] = Counter()
    there: dict[Any, int] = {}
    with TemporaryDirectory() as root:
        epochs = Epochs(root, spec(outer))
        for start in range(0, len(moves), size):
            given_ = Input()
            for number, (key, n, comes, count) in enumerate(moves[start : start + size], start=start):
                if comes or not equal[key, n]:
                    given_.come((key, n), number, count, outer)
                    equal[key, n] += 1
                else:
                    given_.go((key, n))
                    equal[key, n] -= 1
            shown = epochs.step(given_.port())
            assert not Counter(c for c in shown if not c[0] & 1) - Counter(given_.expected)
            fold(there, shown)
            looks = Counter[int]()
            for (_, _, x, _), copies in there.items():
                looks[x] += copies if x is not None else 0
            assert all(looks[x] == moves[x][3] for x in +looks)
            alive = Counter((k, n) for k, n, x in {row[:3] for row in there} if x is not None)
            alive.update({(k, n): copies for (k, n, x, _), copies in there.items() if x is None})
            assert not outer or alive == +equal
        rest = Input()
        for row, copies in equal.items():
            for _ in range(copies):
                rest.go(row)
        fold(there, epochs.step(rest.port()))
    assert there == {}


def test_what_was_never_there_goes_with_nothing() -> None:
    going = Input()
    going.go(("a", 1))
    with TemporaryDirectory() as root:
        assert Epochs(root, spec(True)).step(going.port()) == [(BEFORE, ("a", 1, None, None))]
    with TemporaryDirectory() as root:
        assert Epochs(root, spec(False)).step(going.port()) == []


@dataclass
class Naive:
    """Row by row: a row that goes takes what the oldest equal one found."""

    outer: bool
    there: dict[Row, list[list[Any]]] = field(default_factory=dict)
    shown: Counter[Any] = field(default_factory=Counter)

    def come(self, row: Row, number: int, count: int) -> None:
        found = [(number, str(i // 2)) for i in range(count)]
        self.there.setdefault(row, []).append(found)
        self.show((INSERT, AFTER)[row[1]], row, found, number)

    def go(self, row: Row, number: int) -> None:
        equal = self.there.get(row, [])
        self.show((DELETE, BEFORE)[row[1]], row, equal.pop(0) if equal else [], number)

    def show(self, kind: int, row: Row, found: list[Any], number: int) -> None:
        rows = found or [(None, None)] * self.outer
        self.shown.update((kind, *row, *one, number) for one in rows)


@settings(max_examples=examples(80), deadline=None)
@given(
    moves=st.lists(
        st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 1), st.booleans(), st.integers(0, 3)),
        max_size=20,
    ),
    size=st.integers(1, 20),
    outer=st.booleans(),
)
@example(moves=[("a", 0, True, 1), ("a", 0, False, 0)], size=20, outer=False)
@example(moves=[("a", 0, False, 0), ("a", 0, True, 1)], size=20, outer=True)
def test_by_time_every_change_is_shown(
    moves: list[tuple[str, int, bool, int]], size: int, outer: bool
) -> None:
    """Each behind its own watermark: what works by time above judges it by that, not by its epoch."""
    naive, shown = Naive(outer), Counter[Any]()
    with TemporaryDirectory() as root:
        epochs = TimedEpochs(root, replace(spec(outer), keeps_time=True))
        for start in range(0, len(moves), size):
            given_ = Input()
            for number, (key, n, comes, count) in enumerate(moves[start : start + size], start=start):
                if comes:
                    given_.come((key, n), number, count, outer)
                    naive.come((key, n), number, count)
                else:
                    given_.go((key, n))
                    given_.rows[-1] = (*given_.rows[-1][:2], number, *given_.rows[-1][3:])
                    naive.go((key, n), number)
            table = given_.port()
            # The number of a row for its watermark: of a row that went for nothing the table tells none.
            table = table.append_column("$wm", table.column("$row"))
            table = table.set_column(3, "x", pc.if_else(table.column("$there"), table.column("$row"), None))
            output = epochs.step(table, mark=start)
            columns = [output.column(name).to_pylist() for name in ("$kind", "k", "n", "x", "y", "$wm")]
            shown.update(zip(*columns, strict=True))
            assert columns[-1] == sorted(columns[-1])
    assert shown == naive.shown
