"""Tables of state whose rows an earlier query has stored: partitions without input since are not converted.
What is read, compared and edited is what the job would have."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.runtime.evolution.changing_query import ChangingQuery, Row, session
from tests.runtime.evolution.test_rows import table
from tests.runtime.state_tables.test_differences import differences
from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.savepoint import Savepoint, Snapshot
from tidemill.runtime.state_tables.editing import parts_of
from tidemill.runtime.state_tables.naming import (
    OperatorState,
    StoredTable,
    operators_of,
    state_files,
    told_layout,
)
from tidemill.runtime.state_tables.writable import rules_of
from tidemill.runtime.state_tables.writer import StateWriter
from tidemill.state.slices import KEY_GROUPS, Slice
from tidemill.state.whole_table import live_rows

LEFT, RIGHT = "k INT, a BIGINT, b BIGINT, c BIGINT", "j INT, x BIGINT"
TOP = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY a) AS n FROM l"
QUERIES = {
    "same": ("SELECT k, a, x FROM l JOIN r ON k = j",) * 2,
    "dropped": ("SELECT k, a, b, x FROM l JOIN r ON k = j", "SELECT k, a, x FROM l JOIN r ON k = j"),
    "added": ("SELECT k, a, x FROM l JOIN r ON k = j", "SELECT k, a, c, x FROM l JOIN r ON k = j"),
    "other": ("SELECT k, a, b, x FROM l JOIN r ON k = j", "SELECT k, a, c, x FROM l JOIN r ON k = j"),
    "top": (f"SELECT k, a, b FROM ({TOP}) WHERE n <= 3", f"SELECT k, a, c FROM ({TOP}) WHERE n <= 3"),
}
ROWS: list[Row] = [{"k": 1, "a": 2, "b": b, "c": 9} for b in (5, 6)] + [{"k": 2, "a": 3, "b": 5, "c": 9}]


def saved(query: ChangingQuery, place: Path) -> tuple[Savepoint, OperatorState, StoredTable]:
    assert query.identity is not None
    assert isinstance(query.base, str)
    (operator,) = query.identity.operators
    commit = EpochCommit(
        epoch=1, time=5, offsets={}, manifests={operator: {"0": [[query.base, 0, KEY_GROUPS]]}}, tokens={}
    )
    (query.root.parent / f"{place.name}-job").mkdir()
    job = query.root.parent / f"{place.name}-job"
    (job / "state").symlink_to(query.root)
    Snapshot(identity=query.identity, commit=commit, checkpoint=Storage(str(job))).write(Storage(str(place)))
    savepoint = Savepoint.open(Storage(str(place)))
    (state,) = operators_of(savepoint)
    return savepoint, state, state.tables[0]


def held(savepoint: Savepoint, state: OperatorState, stored: StoredTable) -> Counter[str]:
    """The rows as queries see them."""
    files, layout = state_files(savepoint), told_layout(state_files(savepoint), stored)
    found = live_rows(files, state.slices[0], stored.stored, 5, layout)
    columns = [c.stored for c in stored.columns if c.role in ("key", "value", "weight")]
    rows = [row for piece in found for row in piece.to_pylist()]
    return Counter(str({name: row.get(name) for name in columns if name != "$seq"}) for row in rows)


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("kind", QUERIES)
def test_rows_that_wait_for_their_conversion(tmp_path: Path, kind: str, changes: bool) -> None:
    tables = [table(n, c, changes=changes) for n, c in (("l", LEFT), ("r", RIGHT))]
    before, after = QUERIES[kind]
    others: tuple[list[Row], ...] = () if kind == "top" else ([],)
    waiting, read = (ChangingQuery(tmp_path / name, session(*tables)) for name in ("waiting", "read"))
    for query in (waiting, read):
        query.start(before)
        for row in ROWS:
            query.epoch([row], *others)
        query.start(after)
    # What comes and goes at once makes the other one read its rows.
    came = {"k": 7, "a": 1, "b": 1, "c": 1}
    read.epoch([came], *others)
    waiting_place, read_place = (saved(q, tmp_path / n) for q, n in ((waiting, "first"), (read, "second")))
    roles = [[(c.name, c.role) for c in place[2].columns] for place in (waiting_place, read_place)]
    assert roles[0] == roles[1]
    shown = [held(*place) for place in (waiting_place, read_place)]
    assert sum((shown[1] - shown[0]).values()) == 1
    assert not shown[0] - shown[1]
    found = differences(waiting_place[0], read_place[0])
    assert [row[1] for row in found] == ["ONLY IN SECOND"]


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("kind", QUERIES)
def test_an_edit_of_rows_that_wait_for_their_conversion(tmp_path: Path, kind: str, changes: bool) -> None:
    tables = [table(n, c, changes=changes) for n, c in (("l", LEFT), ("r", RIGHT))]
    before, after = QUERIES[kind]
    others: tuple[list[Row], ...] = () if kind == "top" else ([],)
    query = ChangingQuery(tmp_path / "job", session(*tables))
    query.start(before)
    for row in ROWS:
        query.epoch([row], *others)
    query.start(after)
    savepoint, state, stored = saved(query, tmp_path / "kept")
    files = state_files(savepoint)
    rules = rules_of(files, [state], state, stored)
    layout = rules.layout
    rows = pa.concat_tables(live_rows(files, state.slices[0], stored.stored, 5, layout)).combine_chunks()
    one = rows.filter(pa.array([k == 2 for k in rows.column(layout.keys[0].name).to_pylist()]))
    names = [f.name for f in (*layout.identity, *layout.columns)] + ["$weight"] * layout.additive
    writer = StateWriter(
        root=savepoint.storage.below("state"),
        operator=state.id,
        shown=stored.name,
        rules=rules,
        names={},
        parts=parts_of(state),
        columns=(*names, KIND_COLUMN),
        epoch=1,
        now=5,
    )
    gone = one.select(names).append_column(KIND_COLUMN, pa.array([3] * len(one), pa.int8()))
    (batch,) = writer.write(writer.route(gone.combine_chunks().to_batches()))
    (token,) = map(json.loads, batch.column(0).to_pylist())
    edited: Any = Slice(token["manifest"], *token["groups"])
    query.go_on(Path(savepoint.where) / "state", edited)
    if kind == "top":
        got = query.epoch([{"k": k, "a": 9, "b": 1, "c": 1} for k in (1, 2)])
        assert sorted(fields[:2] for _, fields in got) == [(1, 9), (2, 9)]
        got = query.epoch([{"k": k, "a": 0, "b": 1, "c": 1} for k in (1, 2)])
        assert sorted((k, *fields[:2]) for k, fields in got if k in (1, 3)) == [(3, 1, 9)] or changes
    else:
        got = query.epoch([], [{"j": j, "x": 4} for j in (1, 2)])
        assert [fields[0] for _, fields in got] == [1, 1], "the row of 2 is gone"
