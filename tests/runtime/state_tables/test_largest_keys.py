"""The keys with the most rows, of each partition of the tables that keep several rows a key."""

from __future__ import annotations

import base64
import pickle
from pathlib import Path

import pyarrow as pa

from tidemill.changelog.hashing import hash_columns
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.savepoint import Savepoint, Snapshot
from tidemill.runtime.state_tables.largest_keys import LargestKeys, tasks_of
from tidemill.runtime.state_tables.naming import operators_of, state_files
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore

OPERATOR = "join-0123456789abcdef"
KEY, VALUE = pa.field("k", pa.string()), pa.field("v", pa.int64())
SIDE = Layout(name="left", keys=(KEY,), values=(VALUE,))
RECORDS = Layout(name="newest", keys=(KEY,), columns=(VALUE,))


def test_the_largest_come_first_and_records_are_left_out(tmp_path: Path) -> None:
    """Of key number n there are n rows."""
    rows = [(f"k{n}", v) for n in range(1, 31) for v in range(n)]
    columns = {"k": pa.array([k for k, _ in rows]), "v": pa.array([v for _, v in rows])}
    hashes = hash_columns([columns["k"]], len(rows))
    store = StateStore.open(str(tmp_path / "job" / "state"), OPERATOR, 0, None, 1)
    store.table(SIDE).put(SIDE.codes(hashes, [columns["v"]]), columns)
    store.table(RECORDS).put(hashes[:1], {name: column[:1] for name, column in columns.items()})
    manifests = {OPERATOR: {"0": [[store.flush(), 0, 4096]]}}
    commit = EpochCommit(epoch=1, time=5, offsets={}, manifests=manifests, tokens={})
    identity = JobIdentity(job_id="j", fingerprint="f", nodes={}, operators={OPERATOR: "x"})
    place = Storage(str(tmp_path / "kept"))
    Snapshot(identity=identity, commit=commit, checkpoint=Storage(str(tmp_path / "job"))).write(place)
    savepoint = Savepoint.open(place)
    (task,) = tasks_of(operators_of(savepoint))
    given = pa.record_batch([pa.array([base64.b64encode(pickle.dumps(task)).decode()])], names=["task"])
    run = LargestKeys(files=state_files(savepoint), now=5, wanted=("key_text", "row_count", "table_name"))
    found = pa.Table.from_batches(list(run([given]))).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (f'{{"k": "k{n}"}}', n, "join_1_left") for n in range(30, 10, -1)
    ]
