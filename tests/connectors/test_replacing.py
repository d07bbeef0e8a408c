"""Files that replace others: all at once, wherever the process dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.sinks import visible
from tidemill.connectors.filesystem.listing import list_files
from tidemill.connectors.filesystem.replacing import OVERWRITE, Change, Changes, commit, settle, settled
from tidemill.errors import CommitUnknownError, ConnectorError
from tidemill.files.exclusive import OutcomeUnknownError
from tidemill.files.exclusive.local import LocalExclusive
from tidemill.files.storage import Storage

OLD = {"a.csv": "1\n", "p=1/b.csv": "2\n", "p=2/c.csv": "3\n"}
NEW = {"n.csv": "10\n", "p=2/c.csv": "3\n", "p=3/m.csv": "20\n"}
STEPS = ("make_directory", "move", "force_directory", "remove", "remove_directory", "publish")


class Killed(BaseException):
    pass


def prepared(root: Path) -> tuple[Storage, Change]:
    """A table, and a change from ``OLD`` to ``NEW`` whose files are staged."""
    storage = Storage(str(root))
    for name, text in OLD.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    added: list[tuple[str, str]] = []
    for name in ("n.csv", "p=3/m.csv"):
        staged = f".staging/j/1/x/{name}"
        (root / staged).parent.mkdir(parents=True, exist_ok=True)
        (root / staged).write_text(NEW[name])
        added.append((name, staged))
    removed = tuple(entry for entry in list_files(storage) if entry.path not in NEW)
    return storage, Change(statement="DELETE", added=tuple(added), removed=removed, staging=".staging/j")


def content(storage: Storage) -> dict[str, str]:
    """What a reader finds."""
    return {entry.path: storage.read_bytes(entry.path).decode() for entry in list_files(storage)}


@contextmanager
def failing(at: int, error: Callable[[], BaseException], *, after: bool) -> Iterator[list[str]]:
    """Raises at the step number ``at`` on files, before or after it is done; yields the steps that began."""
    steps: list[str] = []

    def counted(owner: type, name: str) -> Callable[..., Any]:
        real = getattr(owner, name)

        def step(self: Any, *given: Any) -> Any:
            steps.append(name)
            dies = len(steps) == at + 1
            if dies and not after:
                raise error()
            result = real(self, *given)
            if dies:
                raise error()
            return result

        return step

    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            patch.setattr(Storage, name, counted(Storage, name))
        patch.setattr(LocalExclusive, "put", counted(LocalExclusive, "put"))
        yield steps


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("error", [Killed, lambda: OSError(28, "No space left on device")])
def test_a_death_at_any_step_leaves_the_old_or_the_new_files(
    tmp_path: Path, error: Callable[[], BaseException], *, after: bool
) -> None:
    seen = set()
    for at in range(100):
        storage, change = prepared(tmp_path / str(at))
        decided = False
        with failing(at, error, after=after) as steps:
            try:
                commit(storage, change)
                decided = True
            except (Killed, OSError, ConnectorError, CommitUnknownError):
                decided = (tmp_path / str(at) / ".changes" / "00000001.json").exists()
        expected = NEW if decided else OLD
        assert content(storage) == expected
        assert content(storage) == visible(tmp_path / str(at)) == expected
        seen.add(decided)
        if len(steps) <= at:
            assert not (tmp_path / str(at) / ".staging" / "j").exists()
            break
    assert seen == {False, True}
    assert at > 12


def test_a_finish_that_dies_is_finished_by_the_next_reader(tmp_path: Path) -> None:
    """The one that finishes dies as well, at each step."""
    for at in range(100):
        root = tmp_path / str(at)
        storage, change = prepared(root)
        with failing(1, Killed, after=True), pytest.raises(Killed):
            commit(storage, change)
        with failing(at, Killed, after=False) as steps, suppress(Killed):
            settle(storage)
        assert content(storage) == NEW
        if len(steps) <= at:
            break
    assert at > 5


def test_of_two_statements_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, change = prepared(tmp_path)
    (tmp_path / "a.csv").write_text("1\n9\n")
    with pytest.raises(ConnectorError, match=r"stay as they are: file .*a\.csv has changed"):
        commit(storage, change)
    assert not (tmp_path / ".staging" / "j").exists()
    assert content(storage) == OLD | {"a.csv": "1\n9\n"}
    (entry,) = [e for e in list_files(storage) if e.path == "a.csv"]
    real = LocalExclusive.put

    def late(self: LocalExclusive, name: str, data: bytes) -> None:
        monkeypatch.setattr(LocalExclusive, "put", real)
        commit(storage, Change(statement="TRUNCATE TABLE", removed=(entry,)))
        real(self, name, data)

    monkeypatch.setattr(LocalExclusive, "put", late)
    others = tuple(e for e in list_files(storage) if e.path != "a.csv")
    with pytest.raises(ConnectorError, match="another statement has replaced files"):
        commit(storage, Change(statement="TRUNCATE TABLE", removed=others))
    assert sorted(content(storage)) == ["p=1/b.csv", "p=2/c.csv"]


def test_a_change_of_which_nothing_is_known_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, change = prepared(tmp_path)
    real = LocalExclusive.put

    def lost(self: LocalExclusive, name: str, data: bytes) -> None:
        real(self, name, data)
        raise OutcomeUnknownError(5, "Input/output error")

    monkeypatch.setattr(LocalExclusive, "put", lost)
    with pytest.raises(CommitUnknownError, match="Whether DELETE has changed the files"):
        commit(storage, change)
    assert content(storage) == NEW


def test_a_listing_looks_again_if_a_change_came_meanwhile(tmp_path: Path) -> None:
    storage, change = prepared(tmp_path)
    looks: list[list[str]] = []

    def look() -> list[str]:
        found = sorted(visible(tmp_path))
        if not looks:
            commit(storage, change)
        looks.append(found)
        return found

    assert settled(storage, look) == sorted(NEW)
    assert looks == [sorted(OLD), sorted(NEW)]


def test_a_reader_that_may_not_write_says_why_it_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, change = prepared(tmp_path)
    with failing(1, Killed, after=True), pytest.raises(Killed):
        commit(storage, change)
    assert list(tmp_path.glob(".changes/*.json"))

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Storage, "move", refused)
    with pytest.raises(
        ConnectorError, match=r"has not ended, and it cannot be finished: .*Permission denied"
    ):
        list_files(storage)


def test_a_job_learns_of_changes_of_its_files_alone(tmp_path: Path) -> None:
    storage, change = prepared(tmp_path)
    times = {entry.path: entry.modified for entry in list_files(storage)}
    changes = Changes(storage=storage)
    changes.check(times.get)
    commit(storage, change)
    with pytest.raises(ConnectorError, match=r"DELETE has changed rows of the file .*a\.csv"):
        changes.check(times.get)
    changes.check({"p=2/c.csv": times["p=2/c.csv"]}.get)
    changes.check({"a.csv": times["a.csv"] + 1}.get)  # another file of that name, which came later
    assert changes.has_removed("a.csv")
    assert not changes.has_removed("n.csv")
    assert changes.has_made(".staging/j")


def test_an_overwrite_is_no_reason_to_stop(tmp_path: Path) -> None:
    storage, change = prepared(tmp_path)
    times = {entry.path: entry.modified for entry in list_files(storage)}
    commit(storage, Change(statement=OVERWRITE, removed=change.removed))
    Changes(storage=storage).check(times.get)
