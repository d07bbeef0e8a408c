"""The checkpoint directory: identity, lock, and records that are whole or absent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tidemill.errors import StateError
from tidemill.runtime.checkpoint import CheckpointDirectory, EpochCommit, EpochPlan, JobIdentity

IDENTITY = JobIdentity(
    job_id="j",
    fingerprint="f",
    parallelism=2,
    nodes={"1": "Scan(a)", "2": "Sum(a)"},
    operators={"agg-2": "x"},
)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[CheckpointDirectory]:
    with CheckpointDirectory(tmp_path) as opened:
        opened.open(IDENTITY)
        yield opened


def commit(epoch: int) -> EpochCommit:
    return EpochCommit(
        epoch=epoch,
        time=5,
        offsets={"scan-1": {"byte": 7}},
        manifests={"agg-2": {"1": "m"}},
        tokens={"sink-3": ["t"]},
    )


def test_a_second_job_on_one_directory_is_refused(tmp_path: Path) -> None:
    with CheckpointDirectory(tmp_path) as first:
        first.open(IDENTITY)
        with pytest.raises(StateError, match="in use by another running job"):
            CheckpointDirectory(tmp_path).open(IDENTITY)
    with CheckpointDirectory(tmp_path) as second:
        assert second.open(replace(IDENTITY, job_id="new")).job_id == "j"


def test_the_lock_goes_with_its_process(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from tests.runtime.test_checkpoint import IDENTITY\n"
        "from tidemill.runtime.checkpoint import CheckpointDirectory\n"
        "c = CheckpointDirectory(Path(sys.argv[1])); c.open(IDENTITY); os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=Path(__file__).parents[2], check=False
    )
    assert killed.returncode == -9
    with CheckpointDirectory(tmp_path) as again:
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
            r"its Scan\(a\) has other options or types than this query's",
        ),
        ({"fingerprint": "g", "nodes": {"1": "Scan(a)"}}, r"it has Sum\(a\), which this query lacks"),
        ({"operators": {"agg-2": "y"}}, "the state of agg-2 is laid out in another way"),
    ],
)
def test_a_checkpoint_of_another_query_is_refused(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    with CheckpointDirectory(tmp_path) as first:
        first.open(IDENTITY)
    other = JobIdentity(**{**_fields(IDENTITY), **change})  # type: ignore[arg-type]
    with pytest.raises(StateError, match=f"belongs to another query.*{said}"):
        CheckpointDirectory(tmp_path).open(other)
    with CheckpointDirectory(tmp_path) as again:
        assert again.open(IDENTITY) == IDENTITY


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


def test_a_damaged_record_is_an_error_that_names_it(directory: CheckpointDirectory, tmp_path: Path) -> None:
    directory.write_commit(commit(3))
    (tmp_path / "epochs" / "3.commit.json").write_text('{"epoch": 3, ')
    with pytest.raises(StateError, match=r"3\.commit\.json' is damaged"):
        directory.last_commit()


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a directory")
    with pytest.raises(StateError, match="cannot be used: Not a directory"):
        CheckpointDirectory(blocker / "checkpoint").open(IDENTITY)


def test_a_half_written_record_is_never_seen(
    directory: CheckpointDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.write_commit(commit(1))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(StateError, match="No space left on device"):
        directory.write_commit(commit(2))
    monkeypatch.undo()
    assert directory.last_commit() == commit(1)


def _fields(identity: JobIdentity) -> dict[str, object]:
    return {name: getattr(identity, name) for name in identity.__dataclass_fields__}
