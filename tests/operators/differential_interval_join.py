"""Interval joins against a nested loop over all rows of both sides, whatever the epochs."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.epochs import TINY
from tests.tiers import examples
from tidemill.changelog.columns import Hashes, Ints
from tidemill.changelog.watermarks import END, NONE, Running
from tidemill.operators.api import EpochContext
from tidemill.operators.interval_join.judged import ROWS, CandidatesSpec, JudgedSpec
from tidemill.operators.interval_join.operator import IntervalJoinSpec
from tidemill.operators.interval_join.reach import Reach, pairs_in_reach
from tidemill.operators.join.residual import ColumnTerm, ComputedTerm, Residual
from tidemill.operators.join.shape import JoinSide
from tidemill.state.manifest import read_manifest
from tidemill.state.storage import StateFiles
from tidemill.state.store import StateStore

_STAMP = pa.timestamp("us")


@dataclass(frozen=True)
class Row:
    """``mark``: the watermark that the rows of its side before it had reached."""

    time: int | None
    key: str | None
    value: int
    mark: int = NONE

    @property
    def cells(self) -> tuple[int | None, str | None, int]:
        return self.time, self.key, self.value


def side(name: str) -> JoinSide:
    columns = ((f"{name}t", _STAMP), (f"{name}k", pa.string()), (f"{name}v", pa.int64()))
    return JoinSide(columns=columns, keys=(f"{name}k",), output=tuple(c for c, _ in columns), retracts=False)


def spec_of(kind: str, lower: int, upper: int, safe: bool, residual: bool) -> IntervalJoinSpec:
    smaller = ComputedTerm("<", (ColumnTerm("lv"), ColumnTerm("rv")))
    return IntervalJoinSpec(
        kind=kind,
        left=side("l"),
        right=side("r"),
        times=("lt", "rt"),
        lower=lower,
        upper=upper,
        null_safe=(safe,),
        residual=Residual(smaller) if residual else None,
        keeps_time=True,
    )


def shifted(spec: IntervalJoinSpec | Judged, mark: int) -> int:
    return NONE if mark == NONE else mark - spec.delay


def naive(spec: IntervalJoinSpec, sides: tuple[list[Row], list[Row]]) -> Counter[tuple[object, ...]]:
    """Every pair is looked at once; each row of the result with its watermark."""
    found: Counter[tuple[object, ...]] = Counter()
    matched: tuple[set[int], set[int]] = (set(), set())
    nothing = (None, None, None)
    for i, a in enumerate(sides[0]):
        for j, b in enumerate(sides[1]):
            if a.time is None or b.time is None or not _keys_match(a.key, b.key, spec.null_safe[0]):
                continue
            if not spec.lower <= a.time - b.time <= spec.upper or (spec.residual and not a.value < b.value):
                continue
            if a.time + spec.waits[0] < b.mark or b.time + spec.waits[1] < a.mark:
                continue
            found[(*a.cells, *b.cells, shifted(spec, max(a.mark, b.mark)))] += 1
            matched[0].add(i)
            matched[1].add(j)
    for number in (0, 1):
        for i, row in enumerate(sides[number] if spec.outer[number] else ()):
            if i in matched[number]:
                continue
            able = row.time is not None and (row.key is not None or spec.null_safe[0])
            able &= spec.lower <= spec.upper
            waited = max(row.mark, (row.time or 0) + spec.waits[number]) if able else row.mark
            cells = (*row.cells, *nothing) if number == 0 else (*nothing, *row.cells)
            found[(*cells, shifted(spec, waited))] += 1
    return found


def _keys_match(a: str | None, b: str | None, safe: bool) -> bool:
    return a == b if safe else a is not None and a == b


def marked(rows: list[tuple[int | None, str | None, int]], delay: int) -> tuple[list[Row], Running]:
    running, made = Running(), []
    for time, key, value in rows:
        at = running.highest if time is None else time - delay
        (mark,) = running.before(np.array([at], np.int64)).tolist()
        made.append(Row(time, key, value, mark))
    return made, running


def port(name: str, rows: list[Row]) -> pa.Table:
    times = [None if r.time is None else r.time * 1000 for r in rows]
    return pa.table(
        {
            f"{name}t": pa.array(times, _STAMP),
            f"{name}k": pa.array([r.key for r in rows], pa.string()),
            f"{name}v": pa.array([r.value for r in rows], pa.int64()),
            "$wm": pa.array([r.mark for r in rows], pa.int64()),
        }
    )


row = st.tuples(
    st.one_of(st.integers(-20, 40), st.sampled_from([None, 3, 3, -(10**12)])),
    st.sampled_from(["a", "a", "b", None]),
    st.integers(0, 3),
)
bounds = st.sampled_from([(0, 0), (-5, 5), (-7, 0), (2, 9), (-9, -4), (-1, 0), (3, 1)])
cuts = st.lists(st.integers(0, 14), max_size=5)


@settings(max_examples=examples(300), deadline=None)
@given(
    kind=st.sampled_from(["INNER", "LEFT", "RIGHT", "FULL"]),
    bound=bounds,
    safe=st.booleans(),
    residual=st.booleans(),
    judged=st.booleans(),
    delay=st.sampled_from([0, 4, 100]),
    rows=st.tuples(st.lists(row, max_size=14), st.lists(row, max_size=14)),
    cut=st.tuples(cuts, cuts),
)
def test_as_a_nested_loop(
    kind: str,
    bound: tuple[int, int],
    safe: bool,
    residual: bool,
    judged: bool,
    delay: int,
    rows: tuple[list[tuple[int | None, str | None, int]], list[tuple[int | None, str | None, int]]],
    cut: tuple[list[int], list[int]],
) -> None:
    """``judged``: the condition is computed between two operators."""
    spec = spec_of(kind, *bound, safe, residual)
    kernel = Judged(spec) if judged else spec
    sides = tuple(marked(r, delay)[0] for r in rows)
    with TemporaryDirectory() as root:
        shown = _run(kernel, (sides[0], sides[1]), delay, cut, root)
    assert shown == naive(spec, (sides[0], sides[1]))


@dataclass(frozen=True)
class Judged:
    """``whole`` as its two operators do it, and Spark between them."""

    whole: IntervalJoinSpec

    @property
    def delay(self) -> int:
        return self.whole.delay

    def output_schema(self) -> pa.Schema:
        return self.whole.output_schema()

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        join = replace(self.whole, residual=None)
        candidates = CandidatesSpec(join=join).step(inputs, state, epoch)
        assert candidates.schema.equals(CandidatesSpec(join=join).output_schema())
        if self.whole.residual is not None:
            smaller = pc.less(candidates.column("lv"), candidates.column("rv"))
            alone = pc.or_(*(pc.is_null(candidates.column(name)) for name in ROWS))
            candidates = candidates.filter(pc.or_kleene(alone, smaller))
        late = epoch.late.count
        output = JudgedSpec(join=join).step((candidates,), state, epoch)
        assert epoch.late.count == late
        return output


def _run(
    spec: IntervalJoinSpec | Judged,
    sides: tuple[list[Row], list[Row]],
    delay: int,
    cut: tuple[list[int], list[int]],
    root: str,
) -> Counter[tuple[object, ...]]:
    shown: Counter[tuple[object, ...]] = Counter()
    edges = [_edges(c, len(s), max(map(len, cut))) for c, s in zip(cut, sides, strict=True)]
    manifest, before = None, NONE
    for epoch, (at, to) in enumerate(itertools.pairwise(zip(*edges, strict=True)), start=1):
        last = epoch == len(edges[0]) - 1
        parts = [s[a:b] for s, a, b in zip(sides, at, to, strict=True)]
        reached = [marked([r.cells for r in s[:b]], delay)[1].mark for s, b in zip(sides, to, strict=True)]
        watermark = END if last else min(reached)
        store = StateStore.open(root, "op", 0, manifest, epoch, options=TINY)
        context = EpochContext(epoch=epoch, time=0, partition=0, watermark=watermark, before=before)
        output = spec.step((port("l", parts[0]), port("r", parts[1])), store, context)
        assert output.schema.equals(spec.output_schema())
        for made in output.to_pylist():
            # Nothing comes behind what the epochs before have handed on.
            assert made["$wm"] >= shifted(spec, before)
            cells = [None if v is None else _milliseconds(v) if n[1:] == "t" else v for n, v in made.items()]
            shown[tuple(cells)] += 1
        manifest, before = store.flush(), watermark
    if manifest is not None:
        kept = read_manifest(StateFiles.open(root), manifest)
        assert not any(layer for table in kept.tables.values() for layer in table.layers)
    return shown


def _milliseconds(value: object) -> int:
    return int(pa.scalar(value, _STAMP).cast(pa.int64()).as_py()) // 1000


def _edges(cut: list[int], size: int, count: int) -> list[int]:
    inner = sorted(min(c, size) for c in [*cut, *[size] * (count - len(cut))])
    return [0, *inner, size, size]


times = st.one_of(st.integers(0, 30), st.integers(-(2**40), 2**40))
keyed = st.lists(st.tuples(st.integers(0, 3), times), max_size=30)


@given(asking=keyed, rows=keyed, width=st.integers(0, 8))
def test_what_is_within_reach(asking: list[tuple[int, int]], rows: list[tuple[int, int]], width: int) -> None:
    """Near and far apart; hashes at both ends of their range."""
    ends = [0, 1 << 63, (1 << 63) - 1 << 1, 1 << 42]

    def of(made: list[tuple[int, int]]) -> tuple[Hashes, Ints]:
        return np.array([ends[k] for k, _ in made], np.uint64), np.array([t for _, t in made], np.int64)

    hashes, low = of(asking)
    found = pairs_in_reach(Reach(hashes=hashes, low=low, high=low + width), *of(rows))
    wanted = {
        (i, j)
        for (i, (k, t)), (j, (m, u)) in itertools.product(enumerate(asking), enumerate(rows))
        if k == m and t <= u <= t + width
    }
    pairs = list(zip(*(places.tolist() for places in found), strict=True))
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == wanted


def test_what_is_waited_for_no_more_is_forgotten(tmp_path: Path) -> None:
    """A thousand epochs of ten rows each keep no more than the interval holds."""
    spec = spec_of("LEFT", -20, 20, safe=False, residual=False)
    manifest, before, most = None, NONE, 0
    for epoch in range(1, 201):
        rows = [Row(epoch * 10 + i, f"k{i % 3}", 0, epoch * 10 - 1) for i in range(10)]
        store = StateStore.open(str(tmp_path), "op", 0, manifest, epoch)
        context = EpochContext(epoch=epoch, time=0, partition=0, watermark=epoch * 10 + 9, before=before)
        spec.step((port("l", rows), port("r", rows[::2])), store, context)
        manifest, before = store.flush(), context.watermark
        most = max(most, store.manifest.rows)
    # Per side 20 ms of rows that are waited for, one bucket of 20 ms, and the epoch's own.
    assert most <= 2 * 50
