"""Top-N and joins of whole windows against a dict of lists, row by row, wherever the epochs are cut."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.timed_epochs import TimedEpochs, pieces
from tests.tiers import examples
from tidemill.changelog.watermarks import END, NONE
from tidemill.operators.api import OperatorSpec
from tidemill.operators.join.operator import JoinSpec
from tidemill.operators.join.shape import JoinSide
from tidemill.operators.rank.operator import RankSpec
from tidemill.operators.rows.ordering import OrderKey
from tidemill.operators.window.buffered_port import BufferedPort
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.window_buffer import WindowBufferSpec

SIZE = 10
STAMP = pa.timestamp("us")


@dataclass(frozen=True)
class Row:
    """``mark``: the watermark at which it came; ``weight``: -1 takes back."""

    key: str | None
    time: int
    value: int
    number: int
    mark: int
    weight: int = 1

    @property
    def end(self) -> int:
        return self.time // SIZE * SIZE + SIZE


@dataclass
class Side:
    """The rows of open windows by the end of the window; those that windows that ended had."""

    open: dict[int, list[Row]] = field(default_factory=dict)
    whole: dict[int, list[Row]] = field(default_factory=dict)
    late: int = 0

    def take(self, rows: list[Row]) -> None:
        for row in rows:
            self.reach(row.mark)
            if row.end - 1 <= row.mark:
                self.late += 1
            else:
                self.open.setdefault(row.end, []).append(row)
        self.reach(END)

    def reach(self, mark: int) -> None:
        for end in [e for e in self.open if e - 1 <= mark]:
            self.whole[end] = self.open.pop(end)

    def rows(self, end: int) -> list[Row]:
        """What the changes of a window add up to; a row that is taken back once too often is not there."""
        found = self.whole.get(end, [])
        sums = Counter[tuple[str | None, int]]()
        for row in found:
            sums[row.key, row.value] += row.weight
        kept = [r for r in found if r.weight > 0]
        return [r for i, r in enumerate(kept) if _copies(kept[i:], r) <= sums[r.key, r.value]]


def _copies(rows: list[Row], row: Row) -> int:
    return sum((r.key, r.value) == (row.key, row.value) for r in rows)


@st.composite
def arrivals(draw: st.DrawFn, retracts: bool = False) -> list[Row]:
    delay = draw(st.sampled_from([0, 3, 12, 100]))
    rows: list[Row] = []
    mark, now = NONE, 0
    for number in range(draw(st.integers(0, 30))):
        if retracts and rows and draw(st.integers(0, 3)) == 0:
            old = draw(st.sampled_from(rows))
            rows.append(Row(old.key, old.time, old.value, number, mark, -1))
            continue
        now += draw(st.integers(-2, 6))
        time = now - draw(st.sampled_from([0, 0, 0, 1, 5, 12]))
        rows.append(Row(draw(st.sampled_from(["a", "b", None])), time, draw(st.integers(0, 4)), number, mark))
        mark = max(mark, time - delay)
    return rows


def reached(rows: list[Row], upto: int) -> int:
    """The watermark after the first ``upto`` rows: the one of the next."""
    return END if upto == len(rows) else rows[upto].mark


def table_of(rows: list[Row], side: str = "", *, ordered: bool, retracts: bool) -> pa.Table:
    """Blocks in another order than that of arrival."""
    rows = [*rows[1::2], *rows[::2]]
    columns: dict[str, pa.Array] = {
        f"{side}k": pa.array([r.key for r in rows], pa.string()),
        f"{side}v": pa.array([r.value for r in rows], pa.int64()),
        f"{side}s": pa.array([(r.end - SIZE) * 1000 for r in rows], pa.int64()).cast(STAMP),
        f"{side}e": pa.array([r.end * 1000 for r in rows], pa.int64()).cast(STAMP),
        "$wm": pa.array([r.mark for r in rows], pa.int64()),
        "$hash": pa.array([0 if r.key is None else hash_of(r.key) for r in rows], pa.uint64()),
    }
    if ordered:
        columns["n"] = pa.array([r.number for r in rows], pa.int64())
        columns["$seq"] = pa.array([r.number for r in rows], pa.int64())
    if retracts:
        columns["$kind"] = pa.array([0 if r.weight > 0 else 3 for r in rows], pa.int8())
    return pa.table(columns)


def hash_of(key: str) -> int:
    return ord(key) << 56


COLUMNS = (("k", pa.string()), ("v", pa.int64()), ("s", STAMP), ("e", STAMP))


def top(start: int, end: int, *, function: str = "ROW_NUMBER", keyed: bool, append: bool) -> WindowBufferSpec:
    columns = (*COLUMNS, *((("n", pa.int64()),) if append else ()))
    partition = ("s", "e", "k") if keyed else ("s", "e")
    # Of changes the order is by all columns: among rows that tie it is that of their contents.
    keys = ("v",) if append else ("v", "k")
    return WindowBufferSpec(
        inner=RankSpec(
            function=function,
            columns=columns,
            partition=partition,
            order=tuple(OrderKey(name, False, False) for name in keys),
            start=start,
            end=end,
            rank="r",
        ),
        ports=(
            BufferedPort(
                name="rows",
                columns=columns,
                keys=("k",) if keyed else (),
                end="e",
                ordered=append,
                retracts=not append,
            ),
        ),
        clock=Clock(),
        ends=("e",),
        keeps_time=True,
        sequence=True,
    )


def _by_value(row: Row) -> tuple[int, bool, str]:
    return -row.value, row.key is None, "".join(chr(-ord(c) + 255) for c in row.key or "")


def best(spec: WindowBufferSpec, rows: list[Row], append: bool) -> list[tuple[Any, ...]]:
    inner = spec.inner
    assert isinstance(inner, RankSpec)
    parts: dict[Any, list[Row]] = {}
    for row in rows:
        parts.setdefault(row.key if "k" in inner.partition else None, []).append(row)
    found = []
    for part in parts.values():
        part.sort(key=(lambda r: (-r.value, r.number)) if append else _by_value)
        for place, row in enumerate(part):
            rank = place + 1
            if inner.function == "RANK":
                rank = 1 + sum(r.value > row.value for r in part)
            if inner.start <= rank <= (inner.end or 0):
                found.append((row.key, row.value, row.end, rank, *((row.number,) if append else ())))
    return found


def sent(
    spec: WindowBufferSpec, rows: list[Row], splits: list[int], combines: int
) -> tuple[OperatorSpec, pa.Table]:
    """``rows`` of several tasks, each with the watermarks of its own rows at first."""
    raw: list[pa.Table] = []
    combined: list[pa.Table] = []
    for task, (first, behind) in enumerate(pieces(len(rows), splits)):
        if first == behind:
            continue
        before = rows[first].mark
        own = [replace(r, mark=r.mark if r.mark > before else NONE) for r in rows[first:behind]]
        table = table_of(own, ordered=True, retracts=False)
        combine = bool(combines >> task & 1)
        table = spec.combine(table) if combine else table
        marks = np.maximum(table.column("$wm").to_numpy(), before)
        table = table.set_column(table.schema.get_field_index("$wm"), "$wm", pa.array(marks))
        (combined if combine else raw).append(table)
    if combined:
        return spec.merged(raw, combined)
    return spec, pa.concat_tables(raw) if raw else table_of([], ordered=True, retracts=False)


TOPS = {
    "the best of each key": (top(1, 1, keyed=True, append=True), True),
    "three of each window": (top(1, 3, keyed=False, append=True), True),
    "the second and third": (top(2, 3, keyed=True, append=True), True),
    "with equal ranks": (top(1, 2, function="RANK", keyed=False, append=True), True),
    "the best, rows go": (top(1, 1, keyed=True, append=False), False),
    "three, rows go": (top(1, 3, keyed=False, append=False), False),
}


@pytest.mark.parametrize("shape", TOPS)
@settings(max_examples=examples(60), deadline=None)
@given(
    data=st.data(),
    cuts=st.lists(st.integers(0, 30), max_size=6),
    splits=st.lists(st.integers(1, 12), max_size=2),
    combines=st.integers(0, 7),
)
def test_top_n(shape: str, data: st.DataObject, cuts: list[int], splits: list[int], combines: int) -> None:
    """An epoch's rows come from several tasks, of which some combine theirs before they are sent."""
    spec, append = TOPS[shape]
    assert spec.combinable == append
    rows = data.draw(arrivals(retracts=not append))
    twin = Side()
    twin.take(rows)
    expected = [found for end in sorted(twin.whole) for found in best(spec, twin.rows(end), append)]
    shown = []
    with tempfile.TemporaryDirectory() as root:
        kernel = TimedEpochs(root, spec)
        for first, behind in pieces(len(rows), cuts):
            table = table_of(rows[first:behind], ordered=append, retracts=not append)
            if append:
                kernel.spec, table = sent(spec, rows[first:behind], splits, combines)
            shown += kernel.step(table, mark=reached(rows, behind)).to_pylist()
    names = ("k", "v", "e", "r", *(("n",) if append else ()))
    assert Counter(tuple(plain(row[name]) for name in names) for row in shown) == Counter(expected)
    assert [plain(r["e"]) for r in shown] == sorted(e for _, _, e, *_ in expected), "windows in order"
    assert [r["$wm"] for r in shown] == [plain(r["e"]) - 2 for r in shown]
    assert [r["$seq"] for r in shown] == sorted({r["$seq"] for r in shown})
    assert kernel.late == twin.late


def plain(value: Any) -> Any:
    return int(value.timestamp() * 1000) if hasattr(value, "timestamp") else value


KINDS = ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")


def join(kind: str, *, retracts: bool) -> WindowBufferSpec:
    filters = kind in ("SEMI", "ANTI")
    sides = [
        JoinSide(
            columns=tuple((f"{side}{name}", of) for name, of in COLUMNS),
            keys=(f"{side}s", f"{side}e", f"{side}k"),
            output=()
            if side == "r" and kind in ("SEMI", "ANTI")
            else tuple(f"{side}{n}" for n, _ in COLUMNS),
            retracts=False,
        )
        for side in "lr"
    ]
    ports = tuple(
        BufferedPort(name=side, columns=own.columns, keys=(f"{side}k",), end=f"{side}e", retracts=retracts)
        for side, own in zip("lr", sides, strict=True)
    )
    inner = JoinSpec(
        kind=kind, left=sides[0], right=sides[1], null_safe=(False, False, False), insert_only=True
    )
    ends = ("le",) if filters else ("le", "re")
    return WindowBufferSpec(inner=inner, ports=ports, clock=Clock(), ends=ends, keeps_time=True)


def joined(kind: str, left: list[Row], right: list[Row]) -> list[tuple[Any, ...]]:
    pairs = [(a, b) for a in left for b in right if a.key is not None and a.key == b.key]
    lonely = [a for a in left if all(a is not x for x, _ in pairs)]
    alone = [b for b in right if all(b is not x for _, x in pairs)]
    none = (None, None, None)
    if kind in ("SEMI", "ANTI"):
        return [_shown(a) for a in left if any(a is x for x in lonely) == (kind == "ANTI")]
    found = [(*_shown(a), *_shown(b)) for a, b in pairs]
    found += [(*_shown(a), *none) for a in lonely] if kind in ("LEFT", "FULL") else []
    return found + ([(*none, *_shown(b)) for b in alone] if kind in ("RIGHT", "FULL") else [])


def _shown(row: Row) -> tuple[Any, ...]:
    return row.key, row.value, row.end


@pytest.mark.parametrize("retracts", [False, True], ids=["rows stay", "rows go"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), cuts=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6))
def test_join(kind: str, retracts: bool, data: st.DataObject, cuts: list[tuple[int, int]]) -> None:
    sides = data.draw(arrivals(retracts)), data.draw(arrivals(retracts))
    twins = Side(), Side()
    for twin, rows in zip(twins, sides, strict=True):
        twin.take(rows)
    expected = Counter[tuple[Any, ...]]()
    for end in {*twins[0].whole, *twins[1].whole}:
        expected.update(joined(kind, twins[0].rows(end), twins[1].rows(end)))
    spec, shown = join(kind, retracts=retracts), []
    # Each side is cut at places of its own.
    both = [sorted(min(c[i], len(sides[i])) for c in cuts) for i in (0, 1)]
    steps = list(zip(*([0, *own, len(rows)] for own, rows in zip(both, sides, strict=True)), strict=True))
    with tempfile.TemporaryDirectory() as root:
        kernel = TimedEpochs(root, spec)
        for before, after in pairwise(steps):
            tables = [
                table_of(rows[first:behind], side, ordered=False, retracts=retracts)
                for side, rows, first, behind in zip("lr", sides, before, after, strict=True)
            ]
            mark = min(reached(rows, upto) for rows, upto in zip(sides, after, strict=True))
            shown += kernel.step(*tables, mark=mark).to_pylist()
    names = [n for n in spec.output_schema().names if n[1:] in ("k", "v", "e")]
    assert Counter(tuple(plain(row[name]) for name in names) for row in shown) == expected
    assert all(r["$wm"] == plain(r["le"] or r.get("re")) - 2 for r in shown)
    assert kernel.late == sum(twin.late for twin in twins)
