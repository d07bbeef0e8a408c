"""Rows of joins and of Top-N in a savepoint: weights and rows are changed, and kernels read what is left."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import NotSupportedError
from tidemill.files.storage import Storage
from tidemill.operators.join.state import multiset_layout, records_layout
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.operator_schema import OperatorSchema
from tidemill.runtime.checkpoint.savepoint import Savepoint, Snapshot
from tidemill.runtime.state_tables.editing import Edit, SavepointSink, sink_of
from tidemill.runtime.state_tables.naming import find_table, operators_of
from tidemill.runtime.state_tables.writer import Told, told_by
from tidemill.state.layout import Layout
from tidemill.state.run import WEIGHT
from tidemill.state.slices import KEY_GROUPS, Slice
from tidemill.state.store import StateStore
from tidemill.types.logical import BIGINT, STRING, Field

KEY = (pa.field("k", pa.int64()),)
VALUES = (pa.field("text", pa.string()), pa.field("n", pa.int64()))
GROWING = multiset_layout("left", KEY, VALUES, growing=True)
COUNTED = multiset_layout("left", KEY, VALUES, growing=False)
ROWS = Layout(name="rows", keys=KEY, columns=VALUES, ttl=1000)
COLUMNS = tuple(Field(f.name, STRING if f.name == "text" else BIGINT) for f in (*KEY, *VALUES))
Row = tuple[int, str | None, int | None, int | None]


def codes(layout: Layout, columns: Mapping[str, pa.Array]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    hashes = hash_columns([columns["k"]], len(columns["k"]))
    return layout.codes(hashes, [columns[f.name] for f in layout.coded])


def arrays(layout: Layout, rows: list[Row]) -> dict[str, pa.Array]:
    """Of rows of key, text, number and weight."""
    names = ("k", "text", "n", *([WEIGHT] if layout.additive else []))
    return {
        name: pa.array(list(column), pa.string() if name == "text" else pa.int64())
        for name, column in zip(names, zip(*rows, strict=True), strict=False)
    }


def stored(root: Path, kind: str, layout: Layout, *layers: list[Row]) -> Savepoint:
    """A savepoint of one operator, in one partition."""
    operator, manifest = f"{kind}-0123456789abcdef", ""
    for epoch, rows in enumerate(layers, start=1):
        store = StateStore.open(str(root / "job" / "state"), operator, 0, manifest or None, epoch)
        columns = arrays(layout, rows)
        store.table(layout).put(codes(layout, columns), columns)
        manifest = store.flush() or ""
    schema = OperatorSchema(
        kind=kind, text=kind, rows="", identity="", types={"n": "BIGINT NOT NULL", "text": "STRING"}
    )
    identity = JobIdentity(
        job_id="j", fingerprint="f", nodes={}, operators={operator: "x"}, schema={operator: schema}
    )
    held = {operator: {"0": [[manifest, 0, KEY_GROUPS]]}}
    commit = EpochCommit(epoch=len(layers), time=5, offsets={}, manifests=held, tokens={})
    Snapshot(identity=identity, commit=commit, checkpoint=Storage(str(root / "job"))).write(
        Storage(str(root / "old"))
    )
    return Savepoint.open(Storage(str(root / "old")))


def sink(savepoint: Savepoint, root: Path, *, deletes: bool = False) -> SavepointSink:
    operators = operators_of(savepoint)
    found = find_table(operators, operators[0].name)
    assert found is not None
    weight = (Field("weight", BIGINT),) if any(c.stored == WEIGHT for c in found[1].columns) else ()
    edit = Edit(fields=(*COLUMNS, *weight), deletes=deletes)
    return sink_of(savepoint, operators, *found, Storage(str(root / "new")), edit)


def edited(made: SavepointSink, rows: list[Row], root: Path) -> StateStore:
    """The new state, as a kernel opens it."""
    made.begin()
    columns = arrays(made.writer.layout, rows)
    if made.edit.deletes:
        columns["$kind"] = pa.array([int(RowKind.DELETE)] * len(rows), pa.int8())
    tokens = [
        token
        for batch in made.writer.write(made.writer.route([pa.RecordBatch.from_pydict(columns)]))
        for token in batch.column(0).to_pylist()
    ]
    made.publish(1, tokens)
    new = Savepoint.open(Storage(str(root / "new")))
    new.check_whole()
    (manifest,) = [json.loads(token)["manifest"] for token in tokens]
    return StateStore.open(
        str(root / "new" / "state"), made.operator.id, 0, [Slice(manifest, 0, KEY_GROUPS)], 9, now=5
    )


def held(store: StateStore, layout: Layout, key: int) -> list[tuple[Any, ...]]:
    """As a join reads the rows of a key: nothing is settled that the state has in several pieces."""
    keys = [pa.array([key], pa.int64())]
    _, rows = store.table(layout).pieces(hash_columns(keys, 1), keys)
    return sorted((row["text"], row["n"], row[WEIGHT]) for row in rows.to_pylist())


@pytest.mark.parametrize("layout", [GROWING, COUNTED])
def test_rows_of_a_join_go_and_weigh_something_else(layout: Layout, tmp_path: Path) -> None:
    """A side that only grows has no row that takes another back: its kernel reads pieces as they are."""
    first: list[Row] = [(1, "a", 10, 1), (1, "b", 10, 2), (2, "a", 10, 1)]
    savepoint = stored(tmp_path, "join", layout, first, [(1, "a", 10, 4), (3, "c", 1, 1)])
    made = sink(savepoint, tmp_path, deletes=True)
    assert held(edited(made, [(1, "a", 10, 5)], tmp_path), layout, 1) == [("b", 10, 2)]
    (tmp_path / "new").rename(tmp_path / "once")
    again = sink(Savepoint.open(Storage(str(tmp_path / "once"))), tmp_path)
    store = edited(again, [(1, "b", 10, 7)], tmp_path)
    assert [held(store, layout, key) for key in (1, 2, 3)] == [[("b", 10, 7)], [("a", 10, 1)], [("c", 1, 1)]]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ((1, "a", 10, 0), "column 'weight' must be 1 or more"),
        ((1, "a", 10, None), "column 'weight' must not be NULL"),
        ((1, "z", 10, 1), "it is not in the state: rows of this table can only be changed"),
        ((1, "a", None, 1), "it is not in the state"),
    ],
)
def test_what_breaks_a_join_is_refused(row: Row, why: str, tmp_path: Path) -> None:
    made = sink(stored(tmp_path, "join", GROWING, [(1, "a", 10, 1)]), tmp_path)
    with pytest.raises(WorkerError, match=f"A row for 'join_1' breaks the state: {why}.*The row: .*text"):
        edited(made, [row], tmp_path)


def test_the_row_of_a_key_is_changed(tmp_path: Path) -> None:
    """A deduplicated row. Its columns may be NULL only if the query's types say so."""
    savepoint = stored(tmp_path, "rank", ROWS, [(1, "a", 10, 0), (2, "b", 20, 0)])
    table = edited(sink(savepoint, tmp_path), [(1, None, 11, 0)], tmp_path).table(ROWS)
    rows = table.everything().select(["k", "text", "n"]).sort_by("k").to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, None, 11), (2, "b", 20)]
    (tmp_path / "new").rename(tmp_path / "once")
    for row, why in (
        ((1, "a", None, 0), "column 'n' must not be NULL"),
        ((5, "a", 1, 0), "is not in the state"),
    ):
        made = sink(savepoint, tmp_path)
        with pytest.raises(WorkerError, match=why):
            edited(made, [row], tmp_path)
        made.discard(1)


@pytest.mark.parametrize(
    ("values", "how", "expected"),
    [
        (pa.array([3.5, math.nan, 1.0]), "max", [math.nan, 1.0, None]),
        (pa.array([3.5, math.nan, 1.0]), "min", [3.5, 1.0, None]),
        (pa.array(["b", "a", "c"]), "min", ["a", "c", None]),
        (
            pa.array([Decimal("1.5"), Decimal("-20.5"), Decimal(3)], pa.decimal128(38, 2)),
            "min",
            [Decimal("-20.5"), Decimal(3), None],
        ),
        (pa.array([3.5, 1.5, 1.0]), "count", [2, 1, 0]),
    ],
)
def test_what_values_tell_of_a_record(values: pa.Array, how: str, expected: list[Any]) -> None:
    """As the kernels of MIN and MAX order values: NaN comes after all numbers."""
    layout = Layout(name="VALUES(v)", keys=KEY, values=(pa.field("v", values.type),), additive=True)
    kind = pa.int64() if how == "count" else values.type
    found = told_by(
        Told(column="x", layout=layout, how=how), np.array([0, 0, 1]), pa.table({"v": values}), kind, 3
    )
    assert list(map(str, found.to_pylist())) == list(map(str, pa.array(expected, kind).to_pylist()))


def test_matches_of_a_join_that_forgets_are_read_alone(tmp_path: Path) -> None:
    layout = records_layout("left", KEY, VALUES, matches=True, ttl=1000)
    savepoint = stored(tmp_path, "join", layout, [(1, "a", 10, 0)])
    with pytest.raises(NotSupportedError, match="Rows of 'join_1', a table of join, cannot be written"):
        sink(savepoint, tmp_path)
