"""A checkpoint whose job gets another query: who owns it, and since which epoch."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.runtime.evolution.changing_query import ChangingQuery
from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.epochs import EpochCommit, EpochPlan
from tidemill.runtime.checkpoint.identity import JobIdentity

EPOCH = EpochCommit(epoch=1, time=0, offsets={}, manifests={}, tokens={})


def one_epoch(folder: Path) -> tuple[Storage, ChangingQuery, JobIdentity]:
    """A job that has committed its first epoch: its checkpoint, its query, and who it is."""
    place = Storage(str(folder / "checkpoint"))
    query = ChangingQuery(folder / "state")
    query.start("SELECT k, SUM(a) AS s FROM clicks GROUP BY k")
    first = query.identity
    assert first is not None
    with CheckpointDirectory(place) as directory:
        directory.open(first)
        directory.write_commit(EPOCH)
    query.number = 1
    return place, query, first


def test_a_checkpoint_changes_hands_by_one_record(tmp_path: Path) -> None:
    place, query, first = one_epoch(tmp_path)
    second, _ = query.compiled("SELECT k, SUM(a) AS s, COUNT(*) AS n FROM clicks GROUP BY k")
    refused, _ = query.compiled("SELECT k, SUM(a) AS s FROM clicks WHERE b > 1 GROUP BY k")
    with pytest.raises(StateError, match="belongs to another query"):
        CheckpointDirectory(place).open(refused)
    for _ in range(2):
        with CheckpointDirectory(place) as directory:
            assert directory.open(second) == replace(second, job_id=first.job_id, since=2, whole=False)
    records = sorted(path.name for path in (tmp_path / "checkpoint").glob("job*"))
    assert records == ["job.1.json", "job.json"], "no record is replaced, and the same query adds none"
    with CheckpointDirectory(place) as directory:
        directory.open(second)
        directory.write_commit(replace(EPOCH, epoch=2, tokens={"sink": ["t"]}))
        assert directory.stored_identity() == replace(second, job_id=first.job_id, since=2, whole=False)
    with pytest.raises(StateError, match="whether its last epoch 2 has reached its sinks is not known"):
        CheckpointDirectory(place).open(first)


def test_a_job_is_whole_until_its_sinks_lack_rows_of_its_query(tmp_path: Path) -> None:
    place, _, first = one_epoch(tmp_path)
    elsewhere = replace(first, sinks=["b"])

    def whole(by: JobIdentity, epoch: int) -> bool:
        with CheckpointDirectory(place) as directory:
            directory.open(by)
            directory.write_commit(replace(EPOCH, epoch=epoch))
            stored = directory.stored_identity()
            assert stored is not None
            return stored.whole

    assert whole(first, 2), "it said no sinks: earlier versions did not"
    with CheckpointDirectory(place) as directory:
        directory.take()
        directory.switch(replace(first, sinks=["a"]), replace(EPOCH, epoch=3))
    assert whole(replace(first, sinks=["a"]), 4)
    assert not whole(elsewhere, 5)
    assert not whole(elsewhere, 6)
    with CheckpointDirectory(place) as directory:
        directory.take()
        directory.switch(elsewhere, replace(EPOCH, epoch=7))
    assert whole(elsewhere, 8), "a backfill has given the sinks all"
    before = JobIdentity.from_json({**asdict(first), "since": 2, "schema": {}})
    assert before.whole
    older = {key: value for key, value in asdict(before).items() if key not in ("whole", "sinks")}
    assert not JobIdentity.from_json(older).whole, "an earlier version says that it took state over"


def test_a_query_that_took_over_and_committed_nothing_has_changed_nothing(tmp_path: Path) -> None:
    place, query, first = one_epoch(tmp_path)
    second, _ = query.compiled("SELECT k, MAX(a) AS m FROM clicks GROUP BY k")

    def begun(by: JobIdentity) -> JobIdentity | None:
        with CheckpointDirectory(place) as directory:
            directory.open(by)
            return directory.stored_identity()

    # The new query could not start: the old one has its sum still.
    assert begun(second) == first
    assert begun(first) == first
    with CheckpointDirectory(place) as directory:
        directory.open(first)
        directory.write_commit(replace(EPOCH, epoch=2))
        stored = directory.stored_identity()
    assert stored is not None
    assert (stored.schema, stored.job_id) == (first.schema, first.job_id), "it is not the second one's"


def test_an_epoch_that_is_closed_is_none_of_the_new_query(tmp_path: Path) -> None:
    place, query, first = one_epoch(tmp_path)
    with CheckpointDirectory(place) as directory:
        directory.open(first)
        directory.write_plan(EpochPlan(epoch=2, time=7, start={"s": None}, end={"s": {"n": 1}}))
    owner = tmp_path / "checkpoint" / "owners" / "2"
    owner.write_text(json.dumps({**json.loads(owner.read_text()), "machine": "another"}))
    query.number = 1
    second, _ = query.compiled("SELECT k, MAX(a) AS m FROM clicks GROUP BY k")
    with CheckpointDirectory(place) as directory:
        directory.open(second)
        closed = directory.closed(directory.last_commit())
        assert closed is not None
        assert closed.epoch == 2
        assert directory.stored_identity() == first
        directory.write_commit(replace(closed, epoch=3))
        assert directory.stored_identity() == replace(second, job_id=first.job_id, since=3, whole=False)
