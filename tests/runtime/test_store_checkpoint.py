"""Checkpoints in an object store: no locks, no renames, lists that may be late, and still one owner."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.google_store import failing_google, google_bucket
from tests.object_store import bucket, faulty_server
from tests.runtime.test_checkpoint import IDENTITY, commit
from tidemill.errors import NotSupportedError, StateError
from tidemill.files.cache import executor_cache
from tidemill.files.entries import FileEntry
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.epochs import EpochPlan
from tidemill.runtime.checkpoint.origin import Origin
from tidemill.runtime.checkpoint.savepoint import Savepoint, Snapshot
from tidemill.state.cleanup import StateCollector
from tidemill.state.layout import Layout
from tidemill.state.storage import StateFiles
from tidemill.state.store import StateStore

PLAN = EpochPlan(epoch=1, time=7, start={"s": None}, end={"s": {"n": 1}})


@pytest.fixture(params=["s3", "gs"])
def place(request: pytest.FixtureRequest) -> Storage:
    name = f"checkpoint-{uuid.uuid4().hex}"
    if request.param == "s3":
        settings: Mapping[str, str] = request.getfixturevalue("object_store")
        bucket(settings, name)
    else:
        settings = request.getfixturevalue("google_store")
        google_bucket(settings, name)
    return Storage(f"{request.param}://{name}/job", tuple(settings.items()))


def opened(place: Storage) -> CheckpointDirectory:
    directory = CheckpointDirectory(place)
    directory.open(IDENTITY)
    return directory


def test_records(place: Storage) -> None:
    first = opened(place)
    assert first.last_commit() is None
    for epoch in (1, 2):
        first.write_commit(commit(epoch))
        first.begin_showing()
    assert first.last_commit() == commit(2)
    with pytest.raises(StateError, match=r"\w+://.*/2\.commit\.json' already exists"):
        first.write_commit(replace(commit(2), time=99))
    first.forget_before(2)
    assert sorted(f.path for f in place.files("epochs")) == ["epochs/2.commit.json"]
    place.remove("epochs/2.commit.json")
    with pytest.raises(StateError, match=r"commit record of the job in '\w+://.*' is lost"):
        first.last_commit()


def test_a_savepoint_in_the_store_serves_a_job_there(place: Storage) -> None:
    store = StateStore.open(place.below("state"), "agg-2", 0, None, 1)
    keys = pa.array(np.arange(9))
    table = Layout(name="t", keys=(pa.field("k", pa.int64()),))
    store.table(table).put(np.arange(9, dtype=np.uint64), {"k": keys})
    manifest = store.flush()
    job = opened(place)
    job.write_commit(replace(commit(1), manifests={"agg-2": {"0": [[manifest, 0, 4096]]}}))
    target, other = (replace(place, location=f"{place.location}-{name}") for name in ("kept", "new"))
    Snapshot(identity=IDENTITY, commit=job.last_commit(), checkpoint=place).write(target)
    place.remove_directory("")
    savepoint = Savepoint.open(target)
    made = Origin(savepoint=savepoint, claims=True).start(CheckpointDirectory(other), IDENTITY)
    assert made.former == [IDENTITY.job_id]
    begun = CheckpointDirectory(other).last_commit()
    assert begun is not None
    held = StateStore.open(other.below("state"), "agg-2", 0, begun.slices["agg-2"][0], 2)
    assert held.table(table).everything().column("k").to_pylist() == list(range(9))
    with pytest.raises(StateError, match="is not a savepoint"):
        Savepoint.open(target)


@pytest.mark.thorough
def test_a_savepoint_is_absent_where_the_store_is_down() -> None:
    with faulty_server() as (settings, faults):
        bucket(settings, "down")
        place = Storage("s3://down/job", tuple(settings.items()))
        job = opened(place)
        job.write_commit(replace(commit(1), manifests={}))
        snapshot = Snapshot(identity=IDENTITY, commit=job.last_commit(), checkpoint=place)
        target = replace(place, location="s3://down/kept")
        faults.down = True
        with pytest.raises(StateError, match="'s3://down/kept' cannot be written"):
            snapshot.write(target)
        with pytest.raises(StateError, match="'s3://down/kept' cannot be read"):
            Savepoint.open(target)
        faults.down = False
        snapshot.write(target)
        assert Savepoint.open(target).epoch == 1


def test_the_later_owner_has_it(place: Storage) -> None:
    first, second = opened(place), opened(place)
    assert (first.run_id, second.run_id) == ("1", "2")
    assert (first.is_owned, second.is_owned) == (False, True)
    with pytest.raises(StateError, match=r"taken over by another job \(process "):
        first.write_commit(commit(1))


def test_an_epoch_under_way_elsewhere_is_closed(place: Storage) -> None:
    """Its owner may be about to commit it, past its last look for another owner."""
    first = opened(place)
    first.write_plan(PLAN)
    second = opened(place)
    closed = second.closed(second.last_commit())
    assert closed is not None
    assert (closed.epoch, closed.offsets, closed.tokens) == (1, {}, {})
    again = second.planned(2)
    assert again is not None
    assert (again.start, again.end) == (PLAN.start, PLAN.end)
    with pytest.raises(StateError, match="already exists"):
        first._records.put("epochs/1.commit.json", {"epoch": 1})


def test_a_lock_says_nothing_of_other_machines(tmp_path: Path) -> None:
    """Of one disk that two machines have mounted, too."""
    for machine, closes in (("this", False), ("other", True)):
        place = Storage(str(tmp_path / machine))
        with CheckpointDirectory(place) as first:
            first.open(IDENTITY)
            first.write_plan(PLAN)
        owner = tmp_path / machine / "owners" / "1"
        if machine == "other":
            owner.write_text(json.dumps({**json.loads(owner.read_text()), "machine": "another"}))
        with CheckpointDirectory(place) as second:
            second.open(IDENTITY)
            assert (second.closed(second.last_commit()) is not None) == closes
            assert (second.planned(2) is not None) == closes


def test_an_epoch_that_was_committed_meanwhile_counts(place: Storage) -> None:
    first = opened(place)
    first.write_plan(PLAN)
    second = opened(place)
    seen = second.last_commit()
    first._records.put("epochs/1.commit.json", vars_of(1))
    assert second.closed(seen) == commit(1)
    assert second.planned(2) is None


def vars_of(epoch: int) -> dict[str, object]:
    record = commit(epoch)
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def test_lists_that_are_late(place: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was put last is in no list yet: it is found by its name."""
    first = opened(place)
    for epoch in (1, 2):
        first.write_commit(commit(epoch))
    listed = {entry.path for entry in place.files()}
    first.write_commit(commit(3))
    whole = Storage.files

    def late(storage: Storage, relative: str = "", *, recursive: bool = True) -> Iterator[FileEntry]:
        return (f for f in whole(storage, relative, recursive=recursive) if f.path in listed)

    monkeypatch.setattr(Storage, "files", late)
    second, third = opened(place), opened(place)
    assert (second.run_id, third.run_id) == ("2", "3")
    assert not second.is_owned
    assert third.last_commit() == commit(3)


def test_a_store_that_overlooks_the_condition_is_refused(google_store: Mapping[str, str]) -> None:
    with faulty_server() as (settings, faults), failing_google(google_store) as (google, overlooks):
        bucket(settings, "careless")
        google_bucket(google, "careless")
        faults.unconditional = overlooks.unconditional = True
        for place in (
            Storage("s3://careless/job", tuple(settings.items())),
            Storage("gs://careless/job", tuple(google.items())),
        ):
            with pytest.raises(
                NotSupportedError, match=f"'{place.location}' overwrites a file even if told not to"
            ):
                opened(place)


NUMBERS = Layout(name="numbers", keys=(pa.field("k", pa.int64()),))


def write(place: Storage, base: str | None, epoch: int, keys: list[int]) -> str:
    store = StateStore.open(place, "op", 0, base, epoch)
    hashes = np.array(keys, np.uint64)
    store.table(NUMBERS).put(hashes, {"k": pa.array(keys)})
    manifest = store.flush()
    assert manifest is not None
    return manifest


def found(place: Storage, manifest: str, keys: list[int]) -> list[bool]:
    table = StateStore.open(place, "op", 0, manifest, 9).table(NUMBERS)
    found: list[bool] = table.lookup(np.array(keys, np.uint64), [pa.array(keys)]).there.tolist()
    return found


def test_state_is_read_from_copies(place: Storage) -> None:
    """A copy that is damaged, or gone, is made again; a damaged object is an error."""
    manifest = write(place, None, 1, [1, 2, 3])
    (run,) = (entry for entry in place.files() if entry.path.endswith(".arrow"))
    copy = executor_cache().find(place, run.path, run.size)
    assert copy is not None
    assert found(place, manifest, [2, 4]) == [True, False]
    with open(copy, "r+b") as file:
        file.seek(run.size // 2)
        file.write(b"\xff\x00\xff")
    assert found(place, manifest, [2, 4]) == [True, False]
    whole = place.read_bytes(run.path)
    place.publish(run.path, lambda f: f.write(whole[:-9] + bytes(9)))
    assert found(place, manifest, [2, 4]) == [True, False]
    with open(copy, "r+b") as file:
        file.write(bytes(9))
    with pytest.raises(StateError, match=r"'\w+://.*arrow' of operator 'op', partition 0.* is damaged"):
        found(place, manifest, [2])


def test_the_collector_in_a_store(place: Storage) -> None:
    first = write(place, None, 1, list(range(100)))
    collector = StateCollector(StateFiles.open(place))
    collector.collect({"op": [first]}, [("op", 0)], 1)
    second = write(place, first, 2, list(range(100)))
    collector.collect({"op": [second]}, [("op", 0)], 2)
    names = sorted(f.path for f in place.files("op/0"))
    assert [name.partition(".")[0] for name in names] == ["op/0/2", "op/0/2"]
    assert found(place, second, [99, 100]) == [True, False]
