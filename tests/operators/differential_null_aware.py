"""NOT IN over one key against its definition: random changes with NULLs, epoch cuts, partitions, restarts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.operators.epochs import TINY, as_change, fold
from tests.operators.naive_aggregate import Change
from tests.tiers import examples
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.api import EpochContext
from tidemill.operators.join.null_aware import COUNTS
from tidemill.operators.join.operator import JoinSpec
from tidemill.operators.join.shape import JoinSide
from tidemill.runtime.spark.exchange import partition_of
from tidemill.state.slices import Slice, key_groups, resliced
from tidemill.state.store import StateStore

LEFT = (("lk", pa.string()), ("lv", pa.int32()))
RIGHT = (("rk", pa.string()),)
SPEC = JoinSpec(
    kind="ANTI",
    left=JoinSide(columns=LEFT, keys=("lk",), output=("lk", "lv"), retracts=True),
    right=JoinSide(columns=RIGHT, keys=("rk",), output=(), retracts=True),
    null_safe=(True,),
    null_aware=True,
)
Row = tuple[Any, ...]

keys = st.sampled_from(["a", "b", "c", "a longer key", None])
left_rows = st.tuples(keys, st.sampled_from([1, None]))
right_rows = st.tuples(keys)
action = st.one_of(
    st.tuples(st.just(0), st.one_of(left_rows, st.integers(0, 9))),
    st.tuples(st.just(1), st.one_of(right_rows, st.integers(0, 9))),
)
cut = st.tuples(st.lists(action, max_size=6), st.sampled_from([1, 2, 3]))


def not_in(left: list[Row], right: list[Row]) -> Counter[Row]:
    """The rows whose key differs from every right one, NULL being unlike nothing."""
    found = Counter[Row]()
    for row in left:
        in_doubt = any(key is None or row[0] is None or key == row[0] for (key,) in right)
        found[row] += not in_doubt
    return +found


def table_of(columns: tuple[tuple[str, pa.DataType], ...], changes: list[tuple[int, Row]]) -> pa.Table:
    names = [n for n, _ in columns]
    rows = [{**dict(zip(names, row, strict=True)), "$kind": kind} for kind, row in changes]
    return pa.Table.from_pylist(rows, schema=pa.schema([*columns, ("$kind", pa.int8())]))


@dataclass
class Partitions:
    """The operator's partitions, each with a state of its own, spread anew when their number changes."""

    root: str
    slices: dict[int, tuple[Slice, ...]] = field(default_factory=dict)
    number: int = 0

    def step(self, left: pa.Table, right: pa.Table, partitions: int) -> list[Change]:
        self.slices = resliced(self.slices, partitions)
        middle = len(right) // 2
        parts = [SPEC.counts.of(part) for part in (right.slice(0, middle), right.slice(middle))]
        counts = pa.concat_tables([COUNTS.empty_table(), *parts])
        shares = (spread(left, "lk", partitions), spread(right, "rk", partitions))
        found: list[Change] = []
        for partition, (own, other) in enumerate(zip(*shares, strict=True)):
            if len(own) or len(other) or len(counts):
                found += self._stepped(partition, partitions, own, other, counts)
        self.number += 1
        return found

    def _stepped(self, partition: int, partitions: int, *inputs: pa.Table) -> list[Change]:
        groups = key_groups(partition, partitions)
        base = self.slices.get(partition)
        store = StateStore.open(self.root, "op", partition, base, self.number, groups=groups, options=TINY)
        output = SPEC.step(inputs, store, EpochContext(epoch=self.number, time=0, partition=partition))
        assert output.schema.equals(SPEC.output_schema())
        name = store.flush()
        if name is not None:
            self.slices[partition] = (Slice(name, *groups),)
        return [as_change(row) for row in output.to_pylist()]


def spread(table: pa.Table, key: str, partitions: int) -> list[pa.Table]:
    """The rows of each partition, as the exchange sends them."""
    targets = partition_of(hash_columns([table.column(key)], len(table)), partitions)
    return [table.filter(pa.array(targets == p)) for p in range(partitions)]


@settings(max_examples=examples(150), deadline=None)
@given(cuts=st.lists(cut, min_size=1, max_size=7))
# One of two partitions has no state when they become one.
@example(cuts=[([(0, ("a longer key", 1))], 2), ([(0, ("a", 1))], 1), ([(1, (None,))], 2)])
@example(cuts=[([(0, ("a longer key", 1))], 2), ([(1, ("a",))], 1), ([(0, (None, 1))], 1)])
def test_not_in(cuts: list[tuple[list[tuple[int, Any]], int]]) -> None:
    live: tuple[list[Row], list[Row]] = ([], [])
    shown: dict[Any, int] = {}
    with TemporaryDirectory() as root:
        operator = Partitions(root)
        for drawn_rows, partitions in cuts:
            changes: tuple[list[tuple[int, Row]], ...] = ([], [])
            for side, drawn in drawn_rows:
                if isinstance(drawn, tuple):
                    live[side].append(drawn)
                    changes[side].append((0, drawn))
                elif live[side]:
                    changes[side].append((3, live[side].pop(drawn % len(live[side]))))
            tables = table_of(LEFT, changes[0]), table_of(RIGHT, changes[1])
            fold(shown, operator.step(*tables, partitions))
            assert Counter(shown) == not_in(*live)
