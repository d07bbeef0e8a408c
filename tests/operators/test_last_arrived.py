"""Of rows that meet under a key the same one wins, however they are cut and in whatever order tasks end."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.operators.epochs import Epochs
from tidemill.operators.last_arrived import LastArrivedSpec
from tidemill.operators.rank.operator import RankSpec
from tidemill.operators.rank.shape import EVERY_STEP
from tidemill.operators.rows.ordering import OrderKey, by_columns

COLUMNS = (("k", pa.string()), ("v", pa.int32()), ("s", pa.string()))


def table(rows: list[tuple[Any, ...]], **hidden: pa.DataType) -> pa.Table:
    schema = pa.schema([*COLUMNS, *((f"${name}", kind) for name, kind in hidden.items())])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


def test_of_rows_that_waited_the_last_by_watermark_and_columns(tmp_path: Path) -> None:
    spec = LastArrivedSpec(columns=COLUMNS, keys=("k",), timed=True)
    rows = [("a", 9, "z", 10), ("a", 1, None, 20), ("a", 1, "b", 20), ("b", None, "x", 5), ("b", -5, None, 5)]
    for number, order in enumerate(permutations(rows)):
        found = Epochs(str(tmp_path / str(number)), spec).step(table(list(order), wm=pa.int64()))
        assert sorted(found) == [(0, ("a", 1, "b")), (0, ("b", -5, None))]


def test_of_rows_of_a_source_the_last_by_place(tmp_path: Path) -> None:
    spec = LastArrivedSpec(columns=COLUMNS, keys=("k",))
    rows = [("a", 9, "z", 3), ("b", 1, None, 1), ("a", 1, "b", 7), ("b", 0, None, 2)]
    found = Epochs(str(tmp_path), spec).step(table(rows, seq=pa.int64()))
    assert sorted(found) == [(0, ("a", 1, "b")), (0, ("b", 0, None))]


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(("latest", "winner"), [(True, ("a", 7, "b")), (False, ("a", None, "q"))])
def test_the_greatest_row_is_kept_through_retractions(
    tmp_path: Path, size: int, latest: bool, winner: tuple[Any, ...]
) -> None:
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=COLUMNS,
        partition=("k",),
        order=by_columns(COLUMNS, greatest_first=latest),
        start=1,
        end=1,
        latest=latest,
        by_place=True,
        retracts=True,
    )
    changes = [("a", 7, "a", 0, 1), ("a", 8, "z", 0, 2), ("a", None, "q", 0, 3), ("a", 7, "b", 0, 4)]
    changes += [("a", 8, "z", 3, 5)]
    epochs, shown = Epochs(str(tmp_path), spec), []
    for start in range(0, len(changes), size):
        shown += epochs.step(table(changes[start : start + size], kind=pa.int8(), seq=pa.int64()))
    assert [row for kind, row in shown if not kind & 1][-1] == winner


def test_a_step_has_the_place_of_the_row_that_made_it(tmp_path: Path) -> None:
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=COLUMNS,
        partition=("k",),
        order=(OrderKey("v", True, True),),
        start=1,
        end=2,
        rounds=EVERY_STEP,
        retracts=True,
        sequence=True,
    )
    rows = [("a", 5, "x", 0, 11), ("b", 1, "x", 0, 12), ("a", 7, "y", 0, 13), ("a", 6, "z", 0, 17)]
    output = Epochs(str(tmp_path), spec).output(table(rows, kind=pa.int8(), seq=pa.int64()))
    found = [(row["$seq"], row["$kind"], row["v"]) for row in output.to_pylist()]
    assert sorted(found) == [(11, 0, 5), (12, 0, 1), (13, 0, 7), (17, 0, 6), (17, 3, 7)]
