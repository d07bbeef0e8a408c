"""NOT IN over one key against its definition: random changes with NULLs, epoch cuts, restarts, merges."""

from __future__ import annotations

from collections import Counter
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.epochs import Epochs, fold
from tidemill.operators.join.operator import JoinSpec
from tidemill.operators.join.shape import JoinSide

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


@settings(max_examples=150, deadline=None)
@given(cuts=st.lists(st.lists(action, max_size=6), min_size=1, max_size=7))
def test_not_in(cuts: list[list[tuple[int, Any]]]) -> None:
    live: tuple[list[Row], list[Row]] = ([], [])
    shown: dict[Any, int] = {}
    with TemporaryDirectory() as root:
        epochs = Epochs(root, SPEC)
        for cut in cuts:
            changes: tuple[list[tuple[int, Row]], ...] = ([], [])
            for side, drawn in cut:
                if isinstance(drawn, tuple):
                    live[side].append(drawn)
                    changes[side].append((0, drawn))
                elif live[side]:
                    changes[side].append((3, live[side].pop(drawn % len(live[side]))))
            fold(shown, epochs.step(table_of(LEFT, changes[0]), table_of(RIGHT, changes[1])))
            assert Counter(shown) == not_in(*live)
