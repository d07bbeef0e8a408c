"""Copies of an object store's files: whole, found again, within their budget."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tidemill.files.cache import FileCache, executor_cache
from tidemill.files.storage import Storage


@pytest.fixture
def store(tmp_path: Path) -> Storage:
    """Any file system will do."""
    made = Storage(str(tmp_path / "store"))
    (tmp_path / "store").mkdir()
    for n in range(10):
        (tmp_path / "store" / f"{n}").write_bytes(b"%d" % n * 100)
    return made


def cache(tmp_path: Path, budget: int = 1 << 20) -> FileCache:
    (tmp_path / "cache").mkdir(exist_ok=True)
    return FileCache(folder=str(tmp_path / "cache"), budget=budget)


def half_written(path: str) -> None:
    Path(path).write_bytes(b"half")
    raise OSError("disk full")


def test_a_copy_is_found_by_its_name_and_size(store: Storage, tmp_path: Path) -> None:
    copies = cache(tmp_path)
    assert copies.find(store, "1", 100) is None
    path = copies.fetch(store, "1")
    assert Path(path).read_bytes() == b"1" * 100
    assert copies.find(store, "1", 100) == path
    assert copies.find(store, "1", 99) is None
    assert copies.find(store, "2", 100) is None
    assert copies.find(store.below("x"), "1", 100) is None


def test_what_breaks_off_leaves_nothing(store: Storage, tmp_path: Path) -> None:
    copies = cache(tmp_path)
    with pytest.raises(FileNotFoundError):
        copies.fetch(store, "none")
    with pytest.raises(OSError, match="full"), copies.adding(store, "1") as temporary:
        half_written(temporary)
    assert os.listdir(copies.folder) == []


def test_what_was_not_read_for_long_goes_first(store: Storage, tmp_path: Path) -> None:
    copies = cache(tmp_path, budget=500)
    for n in range(5):
        path = copies.fetch(store, f"{n}")
        os.utime(path, (n, n))
    assert copies.find(store, "0", 100) is not None
    copies.fetch(store, "5")
    kept = [n for n in range(6) if copies.find(store, f"{n}", 100) is not None]
    assert kept == [0, 3, 4, 5]


def test_copies_make_room_where_the_disk_is_full(store: Storage, tmp_path: Path) -> None:
    copies = cache(tmp_path)
    for n in range(3):
        copies.fetch(store, f"{n}")
    with pytest.raises(OSError, match="No space"), copies.adding(store, "3"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(copies.folder) == []
    assert Path(copies.fetch(store, "3")).read_bytes() == b"3" * 100


def test_it_lies_with_the_executors_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/other")
    assert executor_cache().folder == str(tmp_path / "tidemill-files")
    assert (tmp_path / "tidemill-files").stat().st_mode & 0o777 == 0o700
