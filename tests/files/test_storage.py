"""Files on local disks and in an object store, by the same calls."""

from __future__ import annotations

import os
import pickle
import shutil
import threading
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.google_store import google_bucket
from tests.object_store import bucket
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.files.entries import FileEntry, FileList
from tidemill.files.exclusive import exclusive
from tidemill.files.storage import Storage
from tidemill.state.storage import StateFiles


@pytest.fixture(params=["local", "file", "s3", "s3a", "gs"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return Storage(str(tmp_path / "root"))
    if request.param == "file":
        return Storage(f"file://{tmp_path}/root")
    name = f"files-{uuid.uuid4().hex}"
    if request.param == "gs":
        settings: Mapping[str, str] = request.getfixturevalue("google_store")
        google_bucket(settings, name)
    else:
        settings = request.getfixturevalue("object_store")
        bucket(settings, name)
    return Storage(f"{request.param}://{name}/root", tuple(settings.items()))


def test_what_is_published_is_there_whole(storage: Storage) -> None:
    assert storage.stat("a/b.txt") is None
    assert storage.publish("a/b.txt", lambda f: f.write(b"one")) == 3
    assert storage.publish("a/b.txt", lambda f: f.write(b"other")) == 5
    copy = pickle.loads(pickle.dumps(storage))
    assert copy.read_bytes("a/b.txt") == b"other"
    found = copy.stat("a/b.txt")
    assert found is not None
    assert (found.path, found.size) == ("a/b.txt", 5)
    assert [f.path for f in storage.files()] == ["a/b.txt"]


def test_a_tree_is_listed_while_parts_of_it_go(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "root"))
    storage.publish("x=1/it", lambda f: f.write(b"."))
    ended = threading.Event()

    def come_and_go(number: int) -> None:
        while not ended.is_set():
            os.makedirs(tmp_path / f"root/.staging/{number}/a/b")
            (tmp_path / f"root/.staging/{number}/a/b/c").touch()
            (tmp_path / f"root/x=1/{number}").touch()
            os.remove(tmp_path / f"root/x=1/{number}")
            shutil.rmtree(tmp_path / f"root/.staging/{number}")

    with ThreadPoolExecutor(2) as threads:
        others = [threads.submit(come_and_go, number) for number in range(2)]
        try:
            for _ in range(2_000):
                assert "x=1/it" in [f.path for f in storage.files()]
        finally:
            ended.set()
    assert [other.result() for other in others] == [None, None]
    storage.publish(".staging/2", lambda f: f.write(b"."))
    assert [f.path for f in storage.files(enters=lambda name: name != ".staging")] == ["x=1/it"]


def test_a_local_tree_is_what_lies_in_it_and_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "root/d/e").mkdir(parents=True)
    (tmp_path / "away").mkdir()
    for name in ("root/a", "root/d/b", "root/d/e/c", "away/f"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "root/linked").symlink_to(tmp_path / "away")
    (tmp_path / "root/d/one").symlink_to(tmp_path / "away/f")
    os.mkfifo(tmp_path / "root/pipe")
    storage = Storage(str(tmp_path / "root"))
    found = {f.path: f.size for f in storage.files()}
    assert found == {"a": 6, "d/b": 8, "d/e/c": 10, "d/one": 6, "linked/f": 6}
    assert sorted(f.path for f in storage.files(recursive=False)) == ["a"]
    assert sorted(f.path for f in storage.files(enters=lambda name: name != "e")) == [
        "a",
        "d/b",
        "d/one",
        "linked/f",
    ]
    assert all(f == storage.stat(f.path) for f in storage.files("d"))
    assert not list(storage.files("a/nothing"))
    with pytest.raises(NotADirectoryError):
        list(storage.files("a"))


def test_a_name_that_is_no_text_is_said(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/odd-\xff", "w"):
        pass
    with pytest.raises(OSError, match=r"A file's name is not UTF-8.*odd-\\"):
        list(Storage(str(tmp_path)).files())


def test_moving_and_removing(storage: Storage) -> None:
    for name in ("x/1", "x/2", "y/1"):
        storage.publish(name, lambda f: f.write(b"."))
    assert storage.directories("") == ["x", "y"]
    storage.move("x/1", "y/2")
    storage.remove("x/2")
    storage.remove("x/2")
    assert sorted(f.path for f in storage.files()) == ["y/1", "y/2"]
    storage.remove_directory("y")
    storage.remove_directory("y")
    assert list(storage.files()) == []
    assert list(storage.files("nowhere")) == []
    assert storage.directories("nowhere") == []


def test_a_failed_write_leaves_no_name(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))

    def fail(file: object) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        storage.publish("a", fail)
    assert storage.stat("a") is None
    assert list(storage.files()) == []


def test_a_location_that_no_file_system_is_for() -> None:
    with pytest.raises(NotSupportedError, match=r"no file system for 'ftp://'; supported are file, s3, s3a"):
        Storage("ftp://host/x").stat("")


def test_hdfs_without_its_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_HOME", "ARROW_LIBHDFS_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConnectorError, match="HDFS needs Hadoop's native client") as caught:
        Storage("hdfs://nowhere:8020/x").stat("")
    assert "\n" not in caught.value.message


def test_credentials_in_a_uri_are_refused_and_not_shown() -> None:
    with pytest.raises(ValidationError) as caught:
        Storage("s3://key:hunter2@bucket/x").stat("")
    assert "hunter2" not in str(caught.value)


def test_settings_are_not_shown() -> None:
    assert "hunter2" not in repr(Storage("s3://bucket/x", (("s3.secret-key", "hunter2"),)))


def test_what_need_not_last_is_not_forced_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[int] = []
    monkeypatch.setattr(os, "fsync", forced.append)
    for durable in (False, True):
        made = Storage(str(tmp_path / str(durable)), durable=durable)
        below = pickle.loads(pickle.dumps(made.below("a")))
        below.make_directory("b")
        below.publish("b/published", lambda f: f.write(b"x"))
        exclusive(below).put("b/put", b"x")
        files = StateFiles.open(below)
        files.publish("b/state", lambda f: f.write(b"x"))
        files.settle("b")
        assert sorted(f.path for f in below.files()) == ["b/published", "b/put", "b/state"]
        assert bool(forced) is durable


def test_a_list_of_files_has_another_hash_elsewhere() -> None:
    files = FileList([FileEntry("d=1/a", 3, 5), FileEntry("d=1/b", 4, 6), FileEntry("c", 1, 7)])
    assert files.size == 8
    assert files.folders == {"d=1", ""}
    assert hash(files) == hash(FileList(files)) == hash(tuple(files))
    sent = pickle.loads(pickle.dumps(files))
    assert isinstance(sent, FileList)
    assert sent == files
    assert vars(sent) == {}
