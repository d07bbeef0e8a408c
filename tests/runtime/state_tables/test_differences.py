"""What differs between two savepoints, whatever partitions either was written by."""

from __future__ import annotations

import base64
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.hashing import hash_columns
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.savepoint import Savepoint, Snapshot
from tidemill.runtime.state_tables.differences import FIELDS, Differences, tasks_of
from tidemill.runtime.state_tables.naming import operators_of, state_files
from tidemill.state.layout import Layout
from tidemill.state.slices import KEY_GROUP_BITS, key_groups
from tidemill.state.store import StateStore

OPERATOR = "group-aggregate-0123456789abcdef"
KEY, N = pa.field("k", pa.string()), pa.field("n", pa.int64())
RECORDS = Layout(name="groups", keys=(KEY,), columns=(N, pa.field("text", pa.string())))
VALUES = Layout(name="DISTINCT(n)", keys=(KEY,), values=(N,), additive=True)
Row = tuple[Any, ...]


def savepoint(root: Path, partitions: int, records: list[Row], values: list[Row]) -> Savepoint:
    manifests = {}
    for number in range(partitions):
        first, stop = key_groups(number, partitions)
        store = StateStore.open(str(root / "job" / "state"), OPERATOR, number, None, 1, groups=(first, stop))
        for layout, rows in ((RECORDS, records), (VALUES, values)):
            names = [f.name for f in (*layout.identity, *layout.columns)] + ["$weight"] * layout.additive
            hashes = hash_columns([pa.array([row[0] for row in rows], pa.string())], len(rows))
            groups = hashes >> np.uint64(64 - KEY_GROUP_BITS)
            own = np.flatnonzero((groups >= first) & (groups < stop))
            table = pa.table([pa.array(c) for c in zip(*rows, strict=True)], names=names).take(pa.array(own))
            columns = {name: table.column(name).combine_chunks() for name in names}
            codes = layout.codes(hashes[own], [columns[f.name] for f in layout.values])
            store.table(layout).put(codes, columns)
        manifests[str(number)] = [[store.flush(), first, stop]]
    commit = EpochCommit(epoch=1, time=5, offsets={}, manifests={OPERATOR: manifests}, tokens={})
    identity = JobIdentity(job_id="j", fingerprint="f", nodes={}, operators={OPERATOR: "x"})
    place = Storage(str(root / "kept"))
    Snapshot(identity=identity, commit=commit, checkpoint=Storage(str(root / "job"))).write(place)
    return Savepoint.open(place)


def differences(first: Savepoint, second: Savepoint) -> list[Row]:
    """As one task finds all of them."""
    files = state_files(first), state_files(second)
    tasks = list(tasks_of(operators_of(first), operators_of(second), files))
    texts = [base64.b64encode(pickle.dumps(task)).decode() for task in tasks]
    run = Differences(files=files, now=(5, 5), wanted=tuple(f.name for f in FIELDS))
    batches = list(run([pa.record_batch([pa.array(texts)], names=["task"])]))
    return sorted(tuple(row.values())[1:] for batch in batches for row in batch.to_pylist())


@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_that_differ_are_told_by_their_keys(tmp_path: Path, partitions: int) -> None:
    records: list[Row] = [(f"k{n}", n, None if n == 7 else f"t{n}") for n in range(40)]
    values: list[Row] = [(f"k{n}", n * v, 1) for n in range(1, 40) for v in (1, 2)]
    first = savepoint(tmp_path / "a", 2, records, values)
    changed = [(k, 100 if k == "k5" else n, "x" if k == "k7" else t) for k, n, t in records if k != "k9"]
    other = [(k, n, 3 if (k, n) == ("k5", 10) else w) for k, n, w in values if (k, n) != ("k5", 5)]
    second = savepoint(tmp_path / "b", partitions, [*changed, ("new", 1, "t")], other)
    assert differences(first, first) == differences(second, second) == []
    table, value_table = "group_aggregate_1_groups", "group_aggregate_1_distinct_n"
    assert differences(first, second) == [
        (value_table, "CHANGED", '{"k": "k5", "n": 10}', '{"weight": 1}', '{"weight": 3}'),
        (value_table, "ONLY IN FIRST", '{"k": "k5", "n": 5}', '{"weight": 1}', None),
        (table, "CHANGED", '{"k": "k5"}', '{"n": 5}', '{"n": 100}'),
        (table, "CHANGED", '{"k": "k7"}', '{"text": null}', '{"text": "x"}'),
        (table, "ONLY IN FIRST", '{"k": "k9"}', '{"n": 9, "text": "t9"}', None),
        (table, "ONLY IN SECOND", '{"k": "new"}', None, '{"n": 1, "text": "t"}'),
    ]


def test_operators_that_one_side_lacks(tmp_path: Path) -> None:
    first = savepoint(tmp_path / "a", 1, [("k", 1, "t")], [("k", 1, 1)])
    empty = Savepoint(storage=first.storage, identity=first.identity, commit=None)
    assert [row[1] for row in differences(first, empty)] == ["ONLY IN FIRST", "ONLY IN FIRST"]
    assert [row[1] for row in differences(empty, first)] == ["ONLY IN SECOND", "ONLY IN SECOND"]
