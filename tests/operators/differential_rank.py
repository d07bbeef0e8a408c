"""Top-N and deduplication against sorting lists: random rows, ties, copies, epoch cuts, restarts."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.operators.epochs import Epochs, fold
from tests.operators.naive_aggregate import freeze
from tests.tiers import examples
from tidemill.operators.api import OperatorSpec
from tidemill.operators.rank import operator as rank_kernel
from tidemill.operators.rank.operator import RankSpec
from tidemill.operators.rows.ordering import OrderKey

COLUMNS = (("k", pa.string()), ("n", pa.int32()), ("s", pa.string()), ("x", pa.float64()))
NAMES = tuple(n for n, _ in COLUMNS)
Row = tuple[Any, ...]

ORDERS: dict[str, tuple[OrderKey, ...]] = {
    "number": (OrderKey("n", True, True),),
    "text-down": (OrderKey("s", False, False), OrderKey("n", True, False)),
    "float": (OrderKey("x", False, True),),
    "arrival": (),
}

rows_strategy = st.tuples(
    st.sampled_from(["a", "b", "long key", None]),
    st.sampled_from([1, 2, -(2**31), None]),
    st.sampled_from(["x", "yy", None]),
    st.sampled_from([0.5, -1.0, None]),
)
actions = st.lists(
    st.lists(
        st.one_of(rows_strategy, st.integers(-1, 9), st.tuples(st.integers(0, 9), rows_strategy)), max_size=8
    ),
    min_size=1,
    max_size=6,
)


@dataclass
class NaiveRank:
    """Per partition its rows by arrival; a retraction takes the earliest equal one, if there is any."""

    spec: RankSpec
    rows: dict[Any, list[Row]] = field(default_factory=lambda: defaultdict(list))

    def take(self, kind: int, row: Row) -> None:
        rows = self.rows[row[0] if self.spec.partition else None]
        if not kind & 1:
            rows.append(row)
        elif row in rows:
            rows.remove(row)

    def result(self) -> Counter[Row]:
        shown: Counter[Row] = Counter()
        for rows in self.rows.values():
            for rank, row in self._ranked(rows):
                if self.spec.start <= rank <= (self.spec.end or len(rows)):
                    shown[(*row, rank) if self.spec.rank else row] += 1
        return shown

    def _ranked(self, rows: list[Row]) -> list[tuple[int, Row]]:
        rows = sorted(reversed(rows) if self.spec.latest else rows, key=self._measure)
        found: list[tuple[int, Row]] = []
        for i, row in enumerate(rows):
            tie = i > 0 and self._measure(row) == self._measure(rows[i - 1])
            rank = i + 1
            if self.spec.function == "RANK" and tie:
                rank = found[-1][0]
            if self.spec.function == "DENSE_RANK" and i:
                rank = found[-1][0] + (not tie)
            found.append((rank, row))
        return found

    def _measure(self, row: Row) -> list[Any]:
        return [_sortable(row[NAMES.index(k.name)], k) for k in self.spec.order]


def _sortable(value: Any, key: OrderKey) -> tuple[int, Any]:
    if value is None:
        return (-1 if key.nulls_first else 1), 0
    if key.ascending:
        return 0, value
    return 0, -value if not isinstance(value, str) else [-ord(c) for c in value.ljust(8, "\0")]


def changes_of(action: Any, live: list[Row], retracts: bool) -> list[tuple[int, Row]]:
    if isinstance(action, tuple) and len(action) == 4:
        live.append(action)
        return [(0, action)]
    if not retracts:
        return []
    if action == -1:
        return [(3, ("never", 0, "seen", 0.0))]
    if not live:
        return []
    if isinstance(action, int):
        return [(3, live.pop(action % len(live)))]
    old = live.pop(action[0] % len(live))
    live.append(action[1])
    return [(1, old), (2, action[1])]


def table_of(changes: list[tuple[int, Row]], first: int, retracts: bool, weak: bool) -> pa.Table:
    rows = [
        {**dict(zip(NAMES, row, strict=True)), "$kind": kind, "$seq": first + i}
        for i, (kind, row) in enumerate(changes)
    ]
    table = pa.Table.from_pylist(
        rows, schema=pa.schema([*COLUMNS, ("$kind", pa.int8()), ("$seq", pa.int64())])
    )
    if weak:
        hashes = [0 if row[0] is None or len(row[0]) > 1 else 2**63 for _, row in changes]
        table = table.append_column("$hash", pa.array(hashes, pa.uint64()))
    # An exchange keeps no order.
    table = table.take(pa.array(range(len(rows) - 1, -1, -1), pa.int64()))
    return table if retracts else table.drop_columns(["$kind"])


def combined(spec: RankSpec, table: pa.Table) -> tuple[OperatorSpec, pa.Table]:
    """As rows come through an exchange: of each chunk (here every other row) what is worth sending."""
    chunks = [table.take(pa.array(range(first, len(table), 2), pa.int64())) for first in (0, 1)]
    with patch.object(rank_kernel, "STEP_ROWS", 0):
        return spec.merged(chunks[:1], [spec.combine(chunk) for chunk in chunks[1:]])


def run_twins(spec: RankSpec, cuts: list[list[Any]], weak: bool, local: bool = False) -> None:
    twin, live, seq = NaiveRank(spec), list[Row](), 0
    shown: dict[Any, int] = {}
    allowed = {0} if spec.insert_only else {0, 1, 2, 3} if spec.update_before else {0, 2, 3}
    with TemporaryDirectory() as root:
        epochs = Epochs(root, spec)
        for cut in cuts:
            changes = [c for action in cut for c in changes_of(action, live, spec.retracts)]
            for kind, row in changes:
                twin.take(kind, row)
            table = table_of(changes, seq, spec.retracts, weak and bool(spec.partition))
            if local and spec.combinable and len(changes) > 1:
                epochs.spec, table = combined(spec, table)
            output = epochs.step(table)
            epochs.spec = spec
            seq += len(changes)
            assert {kind for kind, _ in output} <= allowed
            if spec.update_before:
                fold(shown, output)
            else:
                fold_by_place(shown, output, spec)
            expected = {tuple(freeze(v) for v in row): n for row, n in twin.result().items()}
            assert shown == expected


def fold_by_place(shown: dict[Any, int], output: list[tuple[int, Row]], spec: RankSpec) -> None:
    """Without -U a +U replaces the row of its (partition, rank)."""

    def place(row: Row) -> Row:
        return (row[0] if spec.partition else None, *row[4:])

    for kind, row in output:
        if kind == 2:
            (old,) = [r for r in shown if place(r) == place(row)]
            fold(shown, [(1, old)])
        fold(shown, [(kind, row)])


BOUNDS = [(1, 1), (1, 2), (2, 3), (2, 2), (1, None)]
options = {
    "cuts": actions,
    "weak": st.booleans(),
    "rank": st.booleans(),
    "partitioned": st.booleans(),
    "rounds": st.sampled_from([0, 3]),
    "local": st.booleans(),
}


@pytest.mark.parametrize("function", ["ROW_NUMBER", "RANK", "DENSE_RANK"])
@pytest.mark.parametrize("retracts", [False, True], ids=["append", "retract"])
@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=examples(8), deadline=None)
@given(bounds=st.sampled_from(BOUNDS), latest=st.booleans(), **options)
def test_top_n(
    function: str,
    retracts: bool,
    order: str,
    bounds: tuple[int, int | None],
    cuts: list[list[Any]],
    weak: bool,
    rank: bool,
    partitioned: bool,
    rounds: int,
    local: bool,
    latest: bool,
) -> None:
    spec = RankSpec(
        function=function,
        columns=COLUMNS,
        partition=("k",) if partitioned else (),
        order=ORDERS[order],
        start=bounds[0],
        end=bounds[1],
        rank="rn" if rank else "",
        latest=latest,
        rounds=rounds,
        retracts=retracts,
    )
    run_twins(spec, cuts, weak, local)


@pytest.mark.parametrize("retracts", [False, True], ids=["append", "retract"])
@settings(max_examples=examples(15), deadline=None)
@given(
    latest=st.booleans(), update_before=st.booleans(), order=st.sampled_from(["arrival", "number"]), **options
)
@example(
    latest=True,
    update_before=True,
    order="arrival",
    cuts=[[("a", 1, "x", 0.5), ("a", 2, "x", 0.5), ("a", 1, "x", 0.5)]],
    weak=False,
    rank=False,
    partitioned=True,
    rounds=0,
    local=True,
)
def test_top_one_in_place(
    retracts: bool,
    latest: bool,
    update_before: bool,
    order: str,
    cuts: list[list[Any]],
    weak: bool,
    rank: bool,
    partitioned: bool,
    rounds: int,
    local: bool,
) -> None:
    """Deduplication and the sink's materialisation: the one row of a partition is replaced."""
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=COLUMNS,
        partition=("k",) if partitioned else (),
        order=ORDERS[order],
        start=1,
        end=1,
        rank="rn" if rank else "",
        latest=latest,
        rounds=rounds,
        by_place=True,
        retracts=retracts,
        update_before=update_before,
    )
    run_twins(spec, cuts, weak, local)


@settings(max_examples=examples(20), deadline=None)
@given(cuts=actions, weak=st.booleans(), end=st.integers(1, 3), local=st.booleans())
def test_first_rows_are_never_taken_back(cuts: list[list[Any]], weak: bool, end: int, local: bool) -> None:
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=COLUMNS,
        partition=("k",),
        order=(),
        start=1,
        end=end,
        insert_only=True,
    )
    run_twins(spec, cuts, weak, local)


def test_each_row_shows_its_change_where_rounds_are_few(tmp_path: Any) -> None:
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=COLUMNS,
        partition=("k",),
        order=(OrderKey("n", False, False),),
        start=1,
        end=1,
        by_place=True,
        rounds=2,
    )
    epochs = Epochs(str(tmp_path), spec)
    low, high = ("a", 1, "x", 0.5), ("a", 2, "x", 0.5)
    assert epochs.step(table_of([(0, low), (0, high)], 0, False, False)) == [(0, low), (1, low), (2, high)]
    higher = [("a", n, "x", 0.5) for n in (3, 4, 5)]
    net = epochs.step(table_of([(0, row) for row in higher], 2, False, False))
    assert net == [(1, high), (2, higher[-1])]


@pytest.mark.parametrize("latest", [False, True])
@pytest.mark.parametrize("copies", [2, 5])
def test_rows_of_one_place_in_the_sequence_keep_their_ranks_in_later_epochs(
    latest: bool, copies: int
) -> None:
    """Two tasks may give one number each; what was shown must be found again."""
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=COLUMNS,
        partition=(),
        order=(),
        start=1,
        end=1,
        latest=latest,
        retracts=True,
    )
    tied = [(f"row {n}", n, None, None) for n in range(copies)]
    shown: dict[Any, int] = {}
    with TemporaryDirectory() as root:
        epochs = Epochs(root, spec)
        first = table_of([(0, row) for row in tied], 0, True, False)
        fold(shown, epochs.step(first.set_column(5, "$seq", pa.array([0] * copies, pa.int64()))))
        for step, row in enumerate(tied):
            fold(shown, epochs.step(table_of([(3, row)], step + 1, True, False)))
            assert sum(shown.values()) == (step + 1 < copies)


def test_a_chunk_sends_the_best_row_of_each_partition() -> None:
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=COLUMNS,
        partition=("k",),
        order=ORDERS["number"],
        start=1,
        end=1,
        rounds=3,
    )
    rows = [("a", 2, "x", 0.5), ("a", 1, "y", 0.5), ("b", 1, "x", 0.5), ("a", 1, "z", 0.5)]
    table = table_of([(0, row) for row in rows], 0, False, False)
    assert spec.combine(table) is table
    with patch.object(rank_kernel, "STEP_ROWS", 3):
        sent = spec.combine(table)
    assert [tuple(row.values())[:4] for row in sent.to_pylist()] == [rows[1], rows[2]]
