"""The checkpoint directory: identity, lock, and records that are whole or absent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tidemill.errors import CommitUnknownError, StateError
from tidemill.files import storage as files
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.epochs import EpochCommit, EpochPlan
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.state.record import encode_record

IDENTITY = JobIdentity(
    job_id="j",
    fingerprint="f",
    nodes={"1": "Scan(a)", "2": "Sum(a)"},
    operators={"agg-2": "x"},
    rules=4,
)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[CheckpointDirectory]:
    with CheckpointDirectory(Storage(str(tmp_path))) as opened:
        opened.open(IDENTITY)
        yield opened


def commit(epoch: int) -> EpochCommit:
    return EpochCommit(
        epoch=epoch,
        time=5,
        offsets={"scan-1": {"byte": 7}},
        manifests={"agg-2": {"1": [["m", 64, 128]]}},
        tokens={"sink-3": ["t"]},
    )


def test_a_second_job_on_one_directory_is_refused(tmp_path: Path) -> None:
    with CheckpointDirectory(Storage(str(tmp_path))) as first:
        first.open(IDENTITY)
        with pytest.raises(StateError, match="in use by another running job"):
            CheckpointDirectory(Storage(str(tmp_path))).open(IDENTITY)
    with CheckpointDirectory(Storage(str(tmp_path))) as second:
        assert second.open(replace(IDENTITY, job_id="new")).job_id == "j"


def test_the_lock_goes_with_its_process(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from tests.runtime.test_checkpoint import IDENTITY\n"
        "from tidemill.files.storage import Storage\n"
        "from tidemill.runtime.checkpoint.directory import CheckpointDirectory\n"
        "CheckpointDirectory(Storage(sys.argv[1])).open(IDENTITY); os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=Path(__file__).parents[2], check=False
    )
    assert killed.returncode == -9
    with CheckpointDirectory(Storage(str(tmp_path))) as again:
        assert again.open(IDENTITY) == IDENTITY


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fingerprint": "g"}, "its parts repeat"),
        (
            {"fingerprint": "g", "nodes": {"1": "Scan(a)", "3": "Max(a)"}},
            r"it has Sum\(a\) where this query has Max\(a\)",
        ),
        (
            {"fingerprint": "g", "nodes": {"4": "Scan(a)", "5": "Sum(a)"}},
            r"its Scan\(a\) has other options, types or time-to-live than this query's",
        ),
        ({"fingerprint": "g", "nodes": {"1": "Scan(a)"}}, r"it has Sum\(a\), which this query lacks"),
        ({"operators": {"agg-2": "y"}}, "the state of agg-2 is laid out in another way"),
    ],
)
def test_a_checkpoint_of_another_query_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with CheckpointDirectory(Storage(str(tmp_path))) as first:
        first.open(IDENTITY)
    other = JobIdentity(**{**_fields(IDENTITY), **change})
    with pytest.raises(StateError, match=f"belongs to another query.*{said}"):
        CheckpointDirectory(Storage(str(tmp_path))).open(other)
    with CheckpointDirectory(Storage(str(tmp_path))) as again:
        assert again.open(IDENTITY) == IDENTITY


def test_a_query_that_is_a_part_is_told_what_to_set(tmp_path: Path) -> None:
    with CheckpointDirectory(Storage(str(tmp_path))) as first:
        first.open(IDENTITY)
    part = replace(IDENTITY, fingerprint="g", nodes={"1": "Scan(a)"}, operators={})
    with pytest.raises(StateError) as told:
        CheckpointDirectory(Storage(str(tmp_path))).open(part)
    assert "'execution.state-recovery.ignore-unclaimed-state' = 'true'" in str(told.value)


def test_the_newest_commit_counts_and_older_records_go(
    directory: CheckpointDirectory, tmp_path: Path
) -> None:
    for epoch in (9, 10, 11):
        directory.write_plan(EpochPlan(epoch=epoch, time=1, start={"s": None}, end={"s": {"n": epoch}}))
        directory.write_commit(commit(epoch))
    assert directory.last_commit() == commit(11)
    directory.forget_before(11)
    assert sorted(p.name for p in (tmp_path / "epochs").iterdir()) == ["11.commit.json", "11.plan.json"]
    planned = directory.planned(11)
    assert planned is not None
    assert planned.end == {"s": {"n": 11}}
    assert directory.planned(12) is None
    directory.write_plan(EpochPlan(epoch=12, time=1, start={}, end={}))
    directory.write_commit(commit(12))
    directory.forget_before(12)
    assert sorted(p.name for p in (tmp_path / "epochs").iterdir()) == ["12.commit.json", "12.plan.json"]


DAMAGED = [
    (b"", "is damaged"),
    (b"{}", "has no format version"),
    (b"[]", "holds a JSON list"),
    (b"\xfe\xff", "is damaged: 'utf-8'"),
    (b'{"version":3,"checksum":"00', "is damaged"),
    (b'{"version":6,"new":"form"}', "format version 6, this Tidemill reads version 5"),
    (b'{"version":1,"epoch":3}', "format version 1, this Tidemill reads version 5"),
    (encode_record(4, {}), "is damaged"),
    (encode_record(4, {"epoch": 3, "unheard": 1}), "is damaged: .*unexpected keyword argument"),
]


@pytest.mark.parametrize(("contents", "said"), DAMAGED)
def test_a_damaged_record_is_an_error_that_names_it(tmp_path: Path, contents: bytes, said: str) -> None:
    with CheckpointDirectory(Storage(str(tmp_path))) as directory:
        directory.open(IDENTITY)
        directory.write_commit(commit(2))
        directory.write_commit(commit(3))
        (tmp_path / "epochs" / "3.commit.json").write_bytes(contents)
        with pytest.raises(StateError, match=rf"3\.commit\.json' .*{said}") as e:
            directory.last_commit()
        assert "The last whole epoch is 2." in e.value.hint
        assert "new" in e.value.hint
        (tmp_path / "epochs" / "3.plan.json").write_bytes(contents)
        with pytest.raises(StateError, match=rf"3\.plan\.json' .*{said}"):
            directory.planned(3)
    (tmp_path / "job.json").write_bytes(contents)
    with pytest.raises(StateError, match=rf"job\.json' .*{said}"):
        CheckpointDirectory(Storage(str(tmp_path))).open(IDENTITY)


def test_every_flipped_bit_of_a_record_is_seen(directory: CheckpointDirectory, tmp_path: Path) -> None:
    directory.write_commit(commit(3))
    path = tmp_path / "epochs" / "3.commit.json"
    contents = path.read_bytes()
    for place in range(8 * len(contents)):
        flipped = bytearray(contents)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(StateError, match=r"3\.commit\.json'"):
            directory.last_commit()


def test_a_record_under_another_name_is_damaged(directory: CheckpointDirectory, tmp_path: Path) -> None:
    directory.write_commit(commit(3))
    (tmp_path / "epochs" / "3.commit.json").rename(tmp_path / "epochs" / "4.commit.json")
    with pytest.raises(StateError, match=r"4\.commit\.json' is damaged: it is that of epoch 3"):
        directory.last_commit()


def test_a_job_whose_commits_are_lost_is_refused(tmp_path: Path) -> None:
    """From the beginning it would show everything twice."""
    with CheckpointDirectory(Storage(str(tmp_path))) as first:
        first.open(IDENTITY)
        first.write_commit(commit(1))
        first.begin_showing()
        first.begin_showing()
    (tmp_path / "epochs" / "1.commit.json").unlink()
    with CheckpointDirectory(Storage(str(tmp_path))) as again:
        again.open(IDENTITY)
        with pytest.raises(StateError, match=r"commit record of the job .* is lost") as e:
            again.last_commit()
        assert "empty sinks" in e.value.hint
    (tmp_path / "job.json").unlink()
    with pytest.raises(StateError, match=r"The job record '.*job\.json' is lost"):
        CheckpointDirectory(Storage(str(tmp_path))).open(IDENTITY)


def test_who_is_overtaken_stops(tmp_path: Path) -> None:
    """Two machines that do not see each other's lock: the later one has the directory."""
    with CheckpointDirectory(Storage(str(tmp_path))) as first:
        first.open(IDENTITY)
        assert first.run_id == "1"
        first.write_commit(commit(1))
        (tmp_path / "lock").rename(tmp_path / "unseen")
        with CheckpointDirectory(Storage(str(tmp_path))) as second:
            second.open(IDENTITY)
            assert second.run_id == "2"
            assert (first.is_owned, second.is_owned) == (False, True)
            with pytest.raises(StateError, match=f"taken over by another job .process {os.getpid()} on "):
                first.write_commit(commit(2))
            assert second.last_commit() == commit(1)
            second.write_commit(commit(2))


def test_what_a_killed_process_left_half_written_goes(tmp_path: Path) -> None:
    with CheckpointDirectory(Storage(str(tmp_path))) as first:
        first.open(IDENTITY)
        first.write_commit(commit(1))
    for left in (tmp_path / ".job.json.1a2b.tmp", tmp_path / "epochs" / ".2.commit.json.3c4d.tmp"):
        left.write_bytes(b"{")
    with CheckpointDirectory(Storage(str(tmp_path))) as again:
        again.open(IDENTITY)
        assert again.last_commit() == commit(1)
    assert not list(tmp_path.rglob("*.tmp"))


def test_an_epoch_is_committed_once(directory: CheckpointDirectory, tmp_path: Path) -> None:
    directory.write_commit(commit(2))
    with pytest.raises(StateError, match=r"2\.commit\.json' already exists: another job has written"):
        directory.write_commit(replace(commit(2), time=99))
    assert directory.last_commit() == commit(2)
    assert [p.name for p in (tmp_path / "epochs").iterdir()] == ["2.commit.json"]


def test_a_commit_that_may_not_be_on_disk_is_unknown(
    directory: CheckpointDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files, "sync", fail)
    with pytest.raises(CommitUnknownError, match="could not be forced to disk: Input/output error"):
        directory.write_commit(commit(1))
    assert directory.last_commit() == commit(1)


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a directory")
    with pytest.raises(StateError, match="cannot be used: Not a directory"):
        CheckpointDirectory(Storage(str(blocker / "checkpoint"))).open(IDENTITY)


def test_a_half_written_record_is_never_seen(
    directory: CheckpointDirectory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory.write_commit(commit(1))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(StateError, match="No space left on device"):
        directory.write_commit(commit(2))
    monkeypatch.undo()
    assert directory.last_commit() == commit(1)
    assert [p.name for p in (tmp_path / "epochs").iterdir()] == ["1.commit.json"]


def _fields(identity: JobIdentity) -> dict[str, Any]:
    return {name: getattr(identity, name) for name in identity.__dataclass_fields__}
