"""Listings of trees that were listed before are what a listing made now is."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tidemill.connectors.filesystem import listing
from tidemill.connectors.filesystem.listing import list_files, seen_files
from tidemill.errors import ConnectorError
from tidemill.files import listing_cache
from tidemill.files import storage as storage_module
from tidemill.files.entries import FileEntry
from tidemill.files.storage import Storage

TICK = 0.03
"""Seconds after which this machine's file systems surely give a change another time."""


@pytest.fixture(autouse=True)
def settles_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_cache, "_SETTLED", int(TICK * 1e9))


@pytest.fixture(autouse=True, params=[False, True], ids=["few", "many"])
def as_of_many(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Also as where more than one thread looks."""
    if request.param:
        monkeypatch.setattr(storage_module, "_MANY", 1)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[Storage]:
    """Every storage that is listed whole, as often as it is."""
    found: list[Storage] = []

    def counted(storage: Storage, **how: Any) -> list[FileEntry]:
        found.append(storage)
        return looked(storage, **how)

    looked = listing._listed
    monkeypatch.setattr(listing, "_listed", counted)
    return found


def tree(root: Path) -> Storage:
    for day in range(5):
        (root / f"d={day}").mkdir()
        for part in range(2):
            (root / f"d={day}" / f"{part}.csv").write_text(f"{day}\n")
    (root / "empty").mkdir()
    time.sleep(2 * TICK)
    return Storage(str(root))


def test_what_is_as_it_was_is_not_listed_again(tmp_path: Path, listed: list[Storage]) -> None:
    storage = tree(tmp_path)
    first = seen_files(storage)
    assert len(first) == 10
    assert seen_files(storage) is first
    assert len(listed) == 1


def test_a_file_that_is_written_over_is_another(tmp_path: Path, listed: list[Storage]) -> None:
    storage = tree(tmp_path)
    seen_files(storage)
    with (tmp_path / "d=3" / "1.csv").open("a") as file:
        file.write("more\n")
    assert dict.fromkeys(f.path for f in seen_files(storage) if f.size > 2) == {"d=3/1.csv": None}
    assert len(listed) == 1


def test_what_has_changed_just_now_is_listed_again(tmp_path: Path, listed: list[Storage]) -> None:
    storage = tree(tmp_path)
    (tmp_path / "d=9").mkdir()
    seen_files(storage)
    seen_files(storage)
    assert len(listed) == 2


def test_other_file_systems_are_listed_each_time(
    tmp_path: Path, listed: list[Storage], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = tree(tmp_path)
    monkeypatch.setattr(listing_cache, "_OWN", frozenset({"nfs4"}))
    seen_files(storage)
    seen_files(storage)
    assert len(listed) == 2


def test_a_system_that_does_not_say_what_is_mounted(
    tmp_path: Path, listed: list[Storage], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = tree(tmp_path)
    monkeypatch.setattr(listing_cache, "_MOUNTS", tmp_path / "none")
    seen_files(storage)
    seen_files(storage)
    assert len(listed) == 2


def test_a_known_tree_that_is_gone(tmp_path: Path) -> None:
    root = tmp_path / "table"
    root.mkdir()
    storage = tree(root)
    seen_files(storage)
    root.rename(tmp_path / "other")
    with pytest.raises(ConnectorError, match="does not exist"):
        seen_files(storage)


@pytest.mark.parametrize(
    ("leads_to_itself", "said"), [(False, "leads nowhere"), (True, "Cannot list")], ids=["nowhere", "itself"]
)
def test_a_link_that_has_lost_its_end(tmp_path: Path, leads_to_itself: bool, said: str) -> None:
    root, end = tmp_path / "table", tmp_path / "end.csv"
    root.mkdir()
    end.write_text("1\n")
    (root / "link.csv").symlink_to(end)
    storage = tree(root)
    assert len(seen_files(storage)) == 11
    end.unlink()
    if leads_to_itself:
        end.symlink_to(end)
    with pytest.raises(ConnectorError, match=said):
        seen_files(storage)


def test_directories_behind_links(tmp_path: Path, listed: list[Storage]) -> None:
    root, behind, other = tmp_path / "table", tmp_path / "behind", tmp_path / "other"
    for path in (root, behind, other):
        path.mkdir()
    (root / "d=link").symlink_to(behind)
    storage = tree(root)
    assert len(seen_files(storage)) == 10
    (behind / "new.csv").write_text("1\n")
    assert len(seen_files(storage)) == 11
    time.sleep(2 * TICK)
    seen_files(storage)
    behind.rename(tmp_path / "away")
    other.rename(behind)
    assert len(seen_files(storage)) == 10
    assert len(listed) == 4


def test_what_is_no_file_may_become_one(tmp_path: Path, listed: list[Storage]) -> None:
    root = tmp_path / "table"
    root.mkdir()
    os.mkfifo(root / "pipe")
    storage = tree(root)
    assert [len(seen_files(storage)) for _ in range(2)] == [10, 10]
    assert len(listed) == 2


def test_a_relative_path_after_another_directory_was_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "table").mkdir(parents=True)
        (tmp_path / name / "table" / f"{name}.csv").write_text("1\n")
    time.sleep(2 * TICK)
    for name in ("a", "b", "a"):
        monkeypatch.chdir(tmp_path / name)
        assert [f.path for f in seen_files(Storage("table"))] == [f"{name}.csv"]


def test_odd_names_of_mounts(tmp_path: Path, listed: list[Storage], monkeypatch: pytest.MonkeyPatch) -> None:
    told = listing_cache._MOUNTS.read_text()
    (tmp_path / "mounts").write_text(f"1 2 0:9 / /a\x0cb\x85c rw - nfs x rw\nno mount\n\n{told}")
    monkeypatch.setattr(listing_cache, "_MOUNTS", tmp_path / "mounts")
    (tmp_path / "table").mkdir()
    storage = tree(tmp_path / "table")
    assert seen_files(storage) is seen_files(storage)


@pytest.mark.parametrize("seed", range(4))
def test_a_known_tree_is_what_a_listing_says(tmp_path: Path, listed: list[Storage], seed: int) -> None:
    chosen = random.Random(seed)
    (tmp_path / "table").mkdir()
    (tmp_path / "elsewhere").mkdir()
    storage = tree(tmp_path / "table")
    for _ in range(30):
        change(tmp_path, chosen)
        if chosen.random() < 0.5:
            time.sleep(2 * TICK)
        for _ in range(2):
            assert seen_files(storage) == tuple(list_files(storage))
    assert 60 < len(listed) < 115, "all of 60 plain listings, and not all of 60 looks"


def change(root: Path, chosen: random.Random) -> None:
    table = root / "table"
    directories = sorted(p for p in table.rglob("*") if p.is_dir() and not p.is_symlink())
    files = sorted(p for p in table.rglob("*") if p.is_file() and not p.is_symlink())
    directory = chosen.choice([table, *directories])
    match chosen.randrange(9):
        case 0:
            (directory / f"{chosen.randrange(99)}.csv").write_text("new\n")
        case 1:
            (directory / f"n={chosen.randrange(99)}").mkdir(exist_ok=True)
        case 2 if files:
            chosen.choice(files).unlink()
        case 3 if files:
            with chosen.choice(files).open("a") as file:
                file.write("more\n")
        case 4 if files:
            chosen.choice(files).rename(directory / f"moved-{chosen.randrange(99)}.csv")
        case 5 if files:
            os.utime(chosen.choice(files), ns=(0, chosen.randrange(10**18)))
        case 6 if directories:
            moved = chosen.choice(directories)
            moved.rename(root / "elsewhere" / f"{chosen.randrange(10**9)}")
        case 7:
            kept = sorted((root / "elsewhere").iterdir())
            if kept:
                chosen.choice(kept).rename(table / f"back-{chosen.randrange(10**9)}")
        case 8:
            (directory / f"_hidden-{chosen.randrange(99)}").mkdir(exist_ok=True)
