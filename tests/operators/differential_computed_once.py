"""Values that stay with their rows: what goes had come, whatever the epochs."""

from __future__ import annotations

from collections import Counter
from tempfile import TemporaryDirectory

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.epochs import Epochs
from tests.tiers import examples
from tidemill.operators.computed_once import ComputedOnceSpec

SPEC = ComputedOnceSpec(
    columns=(("k", pa.string()), ("n", pa.int64())),
    computed=(("x", pa.int64()), ("y", pa.list_(pa.string()))),
)
INSERT, BEFORE, AFTER, DELETE = range(4)
Row = tuple[str | None, int]


@settings(max_examples=examples(120), deadline=None)
@given(
    moves=st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 1), st.booleans()), max_size=40
    ),
    size=st.integers(1, 9),
)
def test_a_row_goes_as_an_equal_one_came(moves: list[tuple[str | None, int, bool]], size: int) -> None:
    """``x`` is another number for every row that is looked at; a row goes only where one is there."""
    equal: Counter[Row] = Counter()
    there: Counter[tuple[Row, int]] = Counter()
    with TemporaryDirectory() as root:
        epochs = Epochs(root, SPEC)
        for start in range(0, len(moves), size):
            rows = []
            for number, (key, n, comes) in enumerate(moves[start : start + size], start=start):
                comes |= equal[key, n] == 0
                equal[key, n] += 1 if comes else -1
                rows.append(((key, n), number, (INSERT, AFTER)[n] if comes else (DELETE, BEFORE)[n]))
            shown = epochs.step(port(rows))
            assert [(kind, (k, n)) for kind, (k, n, _, _) in shown] == [(kind, row) for row, _, kind in rows]
            for (kind, (k, n, x, y)), (_, number, _) in zip(shown, rows, strict=True):
                assert list(y) == [str(x)]
                assert kind & 1 or x == number
                there[(k, n), x] += -1 if kind & 1 else 1
                assert there[(k, n), x] >= 0
    assert sum(there.values()) == sum(equal.values())


def port(rows: list[tuple[Row, int, int]]) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([row[0] for row, _, _ in rows], pa.string()),
            "n": pa.array([row[1] for row, _, _ in rows], pa.int64()),
            "x": pa.array([x for _, x, _ in rows], pa.int64()),
            "y": pa.array([[str(x)] for _, x, _ in rows], pa.list_(pa.string())),
            "$kind": pa.array([kind for _, _, kind in rows], pa.int8()),
        }
    )


def test_what_was_never_there_goes_as_it_is() -> None:
    with TemporaryDirectory() as root:
        epochs = Epochs(root, SPEC)
        assert epochs.step(port([(("a", 1), 7, DELETE)])) == [(DELETE, ("a", 1, 7, ("7",)))]
        assert epochs.step(port([(("a", 1), 8, INSERT)])) == [(INSERT, ("a", 1, 8, ("8",)))]
        assert epochs.step(port([(("a", 1), 9, DELETE)])) == [(DELETE, ("a", 1, 8, ("8",)))]
