"""Rows written into a savepoint's state: a new savepoint, whole or absent, in which what must hold holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.worker_errors import WorkerError, find_error
from tidemill.errors import NotSupportedError, StateError, ValidationError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.savepoint import Savepoint, Snapshot
from tidemill.runtime.state_tables.editing import Edit, SavepointSink, claim, parts_of, sink_of
from tidemill.runtime.state_tables.invariants import check_records
from tidemill.runtime.state_tables.naming import (
    OperatorState,
    find_table,
    operators_of,
    state_files,
)
from tidemill.state.layout import Layout
from tidemill.state.slices import KEY_GROUPS, Slice, key_groups
from tidemill.state.store import StateStore
from tidemill.state.whole_table import live_rows
from tidemill.types.logical import BIGINT, STRING, Field

OPERATOR = "group-aggregate-0123456789abcdef"
CITY, COUNTED, SUM, DISTINCT = "city", "COUNT(v)", "SUM(v)", "COUNT(DISTINCT u)"
COLUMNS = ("COUNT(*)", COUNTED, SUM, DISTINCT)
NUMBER = pa.int64()
LAYOUT = Layout(
    name="groups",
    keys=(pa.field(CITY, pa.string()),),
    columns=tuple(pa.field(name, NUMBER) for name in COLUMNS),
)
VALUES = Layout(name="DISTINCT(u)", keys=LAYOUT.keys, values=(pa.field("$value0", NUMBER),))
FIELDS = (Field(CITY, STRING), *(Field(name, BIGINT) for name in COLUMNS))
IDENTITY = JobIdentity(job_id="j", fingerprint="f", nodes={}, operators={OPERATOR: "x"})
Row = tuple[Any, ...]
OLD: list[Row] = [(f"c{n}", n + 1, n, n * 10, 2) for n in range(20)]


def columns_of(rows: list[Row]) -> dict[str, pa.Array]:
    types = (pa.string(), *[NUMBER] * len(COLUMNS))
    columns = zip((CITY, *COLUMNS), zip(*rows, strict=True), types, strict=True)
    return {name: pa.array(list(values), kind) for name, values, kind in columns}


@pytest.fixture
def savepoint(tmp_path: Path) -> Savepoint:
    return edited_one(tmp_path)


def edited_one(root: Path) -> Savepoint:
    """In ``old``: of twenty cities those of the first two of three partitions."""
    manifests: dict[str, list[list[Any]]] = {}
    columns = columns_of(OLD)
    hashes = hash_columns([columns[CITY]], len(OLD))
    for number in range(2):
        first, stop = key_groups(number, 3)
        groups = hashes >> np.uint64(52)
        mine = pa.array((groups >= first) & (groups < stop))
        store = StateStore.open(str(root / "job" / "state"), OPERATOR, number, None, 7, groups=(first, stop))
        own = {name: column.filter(mine) for name, column in columns.items()}
        codes = hashes[mine.to_numpy(zero_copy_only=False)]
        store.table(LAYOUT).put(codes, own)
        values = {CITY: own[CITY], "$value0": own[SUM]}
        store.table(VALUES).put(VALUES.codes(codes, [own[SUM]]), values)
        manifests[str(number)] = [[store.flush(), first, stop]]
    commit = EpochCommit(epoch=7, time=5, offsets={"s": {"n": 1}}, manifests={OPERATOR: manifests}, tokens={})
    target = Storage(str(root / "old"))
    Snapshot(identity=IDENTITY, commit=commit, checkpoint=Storage(str(root / "job"))).write(target)
    return Savepoint.open(target)


def sink(
    savepoint: Savepoint,
    place: Path,
    name: str = "group_aggregate_1_groups",
    fields: tuple[Field, ...] = FIELDS,
    *,
    deletes: bool = False,
) -> SavepointSink:
    operators = operators_of(savepoint)
    found = find_table(operators, name)
    assert found is not None
    edit = Edit(fields=fields, deletes=deletes)
    return sink_of(savepoint, operators, *found, Storage(str(place)), edit)


def written(made: SavepointSink, rows: list[Row]) -> list[str]:
    """The tokens of one task that has all rows."""
    columns = columns_of(rows)
    if made.edit.deletes:
        columns["$kind"] = pa.array([int(RowKind.DELETE)] * len(rows), pa.int8())
    batch = pa.RecordBatch.from_pydict(columns)
    tokens = made.writer.write(made.writer.route([batch]))
    return [token for batch in tokens for token in batch.column(0).to_pylist()]


def records(savepoint: Savepoint) -> list[Row]:
    (operator,) = operators_of(savepoint)
    slices = [s for _, parts in sorted(operator.slices.items()) for s in parts]
    pieces = [p for s in slices for p in live_rows(state_files(savepoint), [s], "groups", 0)]
    rows = [row for piece in pieces for row in piece.select([CITY, *COLUMNS]).to_pylist()]
    return sorted(tuple(row.values()) for row in rows)


def values(savepoint: Savepoint) -> list[tuple[str, int]]:
    (operator,) = operators_of(savepoint)
    slices = [s for _, parts in sorted(operator.slices.items()) for s in parts]
    pieces = [p for s in slices for p in live_rows(state_files(savepoint), [s], VALUES.name, 0)]
    return sorted((row[CITY], row["$value0"]) for piece in pieces for row in piece.to_pylist())


def listed(place: Path) -> dict[str, bytes]:
    return {str(f.relative_to(place)): f.read_bytes() for f in place.rglob("*") if f.is_file()}


def test_a_new_savepoint_has_the_rows_and_the_old_one_stays(savepoint: Savepoint, tmp_path: Path) -> None:
    before, kept = listed(tmp_path / "old"), records(savepoint)
    assert set(kept) < set(OLD)
    made = sink(savepoint, tmp_path / "new")
    made.begin()
    rows: list[Row] = [("c3", 50, 40, 999, 2), *((f"new{n}", 1, 0, None, None) for n in range(30))]
    made.publish(1, written(made, rows))
    assert listed(tmp_path / "old") == before
    new = Savepoint.open(Storage(str(tmp_path / "new")))
    new.check_whole()
    assert records(new) == sorted([*(r for r in kept if r[0] != "c3"), *rows])
    assert (new.epoch, new.identity) == (7, replace(IDENTITY, whole=False))
    (operator,) = operators_of(new)
    assert [table.name for table in operator.tables] == ["group_aggregate_1_distinct_u", made.writer.shown]
    # The partition of which nothing was stored has some of the new rows.
    assert len(operator.slices) == 3
    assert [part[1:3] for part in parts_of(operator)] == [key_groups(n, 3) for n in range(3)]
    # Nothing lies there that nobody names.
    assert {f.partition("state/")[2] for f in new.files if f.startswith("state/")} == {
        name.partition("state/")[2] for name in new.state_files()
    }


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (("c3", 0, 0, 1, 2), r"column 'COUNT\(\*\)' must be 1 or more"),
        (("c3", None, 0, 1, 2), r"column 'COUNT\(\*\)' must be 1 or more"),
        (("c3", 4, -1, 1, 2), r"column 'COUNT\(v\)' must be 0 or more"),
        (("c3", 4, 5, 1, 2), r"column 'COUNT\(v\)' counts more rows than 'COUNT\(\*\)'"),
        (("c3", 4, 0, 1, 2), r"column 'SUM\(v\)' must be 0 or NULL where 'COUNT\(v\)' is 0. The row: .*c3"),
        (("c3", 4, 4, None, 2), r"column 'SUM\(v\)' must not be NULL where 'COUNT\(v\)' is more than 0"),
        (("c3", 4, 3, 1, 3), r"column 'COUNT\(DISTINCT u\)' is made of another table of the operator"),
        (("c3", 4, 3, 1, None), r"column 'COUNT\(DISTINCT u\)' is made of another table of the operator"),
        (("new", 4, 3, 1, 1), r"column 'COUNT\(DISTINCT u\)' is made of another table of the operator"),
    ],
)
def test_what_breaks_the_state_is_refused(savepoint: Savepoint, tmp_path: Path, row: Row, why: str) -> None:
    made = sink(savepoint, tmp_path / "new")
    made.begin()
    with pytest.raises(WorkerError) as raised:
        written(made, [("c4", 9, 9, 9, 2), row])
    found = find_error(str(raised.value))
    assert found is not None
    with pytest.raises(type(found), match=why):
        raise found
    made.discard(1)
    assert not (tmp_path / "new").exists()


def test_a_count_that_a_changed_query_has_added_is_null_in_earlier_records() -> None:
    """NULL is 0 there, and nowhere else."""
    counts, sums = pa.array([None, -1, 4, 1, None]), pa.array([None, None, 7, None, 7], NUMBER)
    for name, expected in (("v) SINCE 5", [[1], [2], [3], [4]]), ("v)", [[0, 1, 4], [2], [3]])):
        rows = {"COUNT(*)": pa.array([3] * 5), f"COUNT({name}": counts, f"SUM({name}": sums}
        masks = [mask for mask, *_ in check_records(rows, np.ones(5, np.bool_), {})]
        assert [np.flatnonzero(mask).tolist() for mask in masks if mask.any()] == expected


def test_a_key_comes_once(savepoint: Savepoint, tmp_path: Path) -> None:
    made = sink(savepoint, tmp_path / "new")
    made.begin()
    with pytest.raises(WorkerError, match="Two rows for 'group_aggregate_1_groups' have the same key"):
        written(made, [("c3", 4, 3, 1, 2), ("c3", 4, 3, 2, 2)])


def test_the_place_must_be_empty(savepoint: Savepoint, tmp_path: Path) -> None:
    made = sink(savepoint, tmp_path / "old")
    with pytest.raises(StateError, match="cannot be written: the directory is not empty"):
        made.begin()
    made.discard(1)
    savepoint.check_whole()


def test_a_damaged_savepoint_is_not_edited(savepoint: Savepoint, tmp_path: Path) -> None:
    run = next(path for path in savepoint.files if path.endswith(".arrow"))
    file = tmp_path / "old" / run
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(StateError, match="is damaged"):
        sink(savepoint, tmp_path / "new").begin()
    assert not (tmp_path / "new").exists()


def test_a_half_copied_savepoint_is_not_edited(savepoint: Savepoint, tmp_path: Path) -> None:
    manifest = next(path for path in savepoint.files if path.endswith(".manifest.json"))
    made = sink(savepoint, tmp_path / "new")
    (tmp_path / "old" / manifest).unlink()
    with pytest.raises(StateError, match=r"is damaged.*cannot be read"):
        made.begin()
    made.discard(1)
    assert not (tmp_path / "new").exists()


def test_of_two_edits_to_one_place_one_is_refused(savepoint: Savepoint, tmp_path: Path) -> None:
    """The one that is refused takes nothing from the other, also where both saw an empty place."""
    first, second = (sink(savepoint, tmp_path / "new") for _ in range(2))
    first.begin()
    with pytest.raises(StateError, match="the directory is not empty"):
        second.begin()
    with pytest.raises(StateError, match="another statement writes there"):
        claim(second.target, second.savepoint.identity)
    second.discard(1)
    first.publish(1, written(first, [("c3", 4, 3, 1, 2)]))
    Savepoint.open(Storage(str(tmp_path / "new"))).check_whole()


def test_a_place_that_cannot_be_written_is_named(savepoint: Savepoint, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match=r"The savepoint '.*/file/new' cannot be written"):
        sink(savepoint, tmp_path / "file" / "new").begin()


def test_a_savepoint_of_a_newer_version_is_named(savepoint: Savepoint, tmp_path: Path) -> None:
    mark = tmp_path / "old" / "savepoint.json"
    mark.write_text(mark.read_text().replace('"version":4', '"version":99'))
    with pytest.raises(StateError, match=r"'savepoint.json' of the savepoint .*version 99"):
        Savepoint.open(savepoint.storage)


def test_killed_before_the_last_step_there_is_no_savepoint(savepoint: Savepoint, tmp_path: Path) -> None:
    """Wherever the process ended: after the claim, after the links, after the tasks, before the mark."""
    place, states = tmp_path / "new", list[str]()

    def left() -> None:
        with pytest.raises(StateError, match="it was never finished"):
            Savepoint.open(Storage(str(place)))
        states.append("\n".join(sorted(listed(place))))

    made = sink(savepoint, place)
    claim(made.target, made.savepoint.identity)
    left()
    rmtree(place)
    made = sink(savepoint, place)
    made.begin()
    left()
    tokens = written(made, [("c3", 4, 3, 1, 2)])
    left()
    with pytest.raises(StateError, match="the directory is not empty"):
        sink(savepoint, place).begin()
    made.publish(1, tokens)
    assert len(set(states)) == 3
    assert Savepoint.open(Storage(str(place))).epoch == 7


def test_deleted_groups_take_their_values_along(savepoint: Savepoint, tmp_path: Path) -> None:
    kept = records(savepoint)
    gone, stays = [r for r in kept if r[0] in ("c3", kept[0][0])], [r for r in kept if r[0] == kept[-1][0]]
    made = sink(savepoint, tmp_path / "new", deletes=True)
    made.begin()
    made.publish(1, written(made, [(city, None, None, None, None) for city, *_ in gone]))
    new = Savepoint.open(Storage(str(tmp_path / "new")))
    new.check_whole()
    assert records(new) == [r for r in kept if r not in gone]
    assert stays[0] in records(new)
    assert values(new) == [(r[0], r[3]) for r in kept if r not in gone]


def test_rows_that_another_hash_orders_are_read_alone(savepoint: Savepoint, tmp_path: Path) -> None:
    """As where operators share an exchange by a part of their keys."""
    store = StateStore.open(str(tmp_path / "job" / "state"), OPERATOR, 0, None, 8)
    store.table(LAYOUT).put(np.arange(20).astype(np.uint64), columns_of(OLD))
    commit = EpochCommit(
        epoch=8, time=5, offsets={}, manifests={OPERATOR: {"0": [[store.flush(), 0, KEY_GROUPS]]}}, tokens={}
    )
    place = Storage(str(tmp_path / "shared"))
    Snapshot(identity=IDENTITY, commit=commit, checkpoint=Storage(str(tmp_path / "job"))).write(place)
    with pytest.raises(NotSupportedError, match="its operator shares an exchange with others"):
        sink(Savepoint.open(place), tmp_path / "new", "group_aggregate_1")


def test_an_epoch_that_sinks_may_lack_is_not_edited(savepoint: Savepoint, tmp_path: Path) -> None:
    commit = savepoint.commit
    assert commit is not None
    (tmp_path / "old" / "epochs" / "6.commit.json").write_text("{}")
    unknown = replace(savepoint, commit=replace(commit, tokens={"sink": ["t"]}), finished=False)
    with pytest.raises(StateError, match="cannot be edited: whether its last epoch 7 has reached its sinks"):
        sink(unknown, tmp_path / "new").begin()


def test_nothing_is_left_if_the_last_steps_fail(savepoint: Savepoint, tmp_path: Path) -> None:
    made = sink(savepoint, tmp_path / "new")
    made.begin()
    (token,) = written(made, [("c3", 4, 3, 1, 2)])
    with pytest.raises(StateError, match="Cannot read state file"):
        made.publish(1, [token.replace(".manifest", ".nosuch")])
    assert not (tmp_path / "new").exists()


def test_a_table_without_the_keys_is_refused(savepoint: Savepoint, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"needs its keys: \['city'\]"):
        sink(savepoint, tmp_path / "new", fields=FIELDS[1:])


def test_other_tables_are_read_alone(savepoint: Savepoint, tmp_path: Path) -> None:
    with pytest.raises(
        NotSupportedError, match=r"Rows of 'group_aggregate_1_distinct_u', a table of group-a.*, cannot be"
    ):
        sink(savepoint, tmp_path / "new", "group_aggregate_1_distinct_u")


def test_partitions_cover_all_keys() -> None:
    """Also where a partition has the slices of several, and others have nothing."""
    slices = {1: (Slice("a", 100, 200), Slice("b", 200, 300)), 4: (Slice("c", 300, 400),)}
    operator = OperatorState(name="o", id=OPERATOR, kind="", text="", slices=slices, manifests=(), tables=())
    assert parts_of(operator) == (
        (5, 0, 100, ()),
        (1, 100, 300, (("a", 100, 200), ("b", 200, 300))),
        (4, 300, 400, (("c", 300, 400),)),
        (6, 400, KEY_GROUPS, ()),
    )
