"""Files that are put only where there is none, on disks and in an object store."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.object_store import SLOW_SECONDS, bucket, faulty_server
from tidemill.errors import NotSupportedError, SetupError
from tidemill.files import exclusive as module
from tidemill.files.exclusive import OutcomeUnknownError, exclusive
from tidemill.files.storage import Storage


@pytest.fixture(params=["local", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return Storage(str(tmp_path))
    return in_bucket(request.getfixturevalue("object_store"))


def in_bucket(settings: Mapping[str, str]) -> Storage:
    name = f"exclusive-{uuid.uuid4().hex}"
    bucket(settings, name)
    return Storage(f"s3://{name}/root", tuple(settings.items()))


def test_the_first_one_stays(storage: Storage) -> None:
    files = exclusive(storage)
    files.put("1", b"first")
    with pytest.raises(FileExistsError):
        files.put("1", b"second")
    assert storage.read_bytes("1") == b"first"
    files.put("2", b"second")


def test_of_many_one_succeeds(storage: Storage) -> None:
    won: list[bytes] = []

    def put(me: bytes) -> None:
        try:
            exclusive(storage).put("one", me)
        except FileExistsError:
            return
        won.append(me)

    threads = [threading.Thread(target=put, args=(b"%d" % n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [storage.read_bytes("one")]


def test_an_answer_that_was_lost() -> None:
    """The object is there, the store said 500: the request is sent again and finds it."""
    with faulty_server() as (settings, faults):
        storage = in_bucket(settings)
        faults.lost_answers = 1
        exclusive(storage).put("one", b"mine")
        assert storage.read_bytes("one") == b"mine"
        faults.lost_answers = 1
        with pytest.raises(FileExistsError):
            exclusive(storage).put("one", b"other")


def test_an_answer_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was given up, and the request sent again, which finds what the first one put."""
    monkeypatch.setattr(module, "REQUEST_SECONDS", SLOW_SECONDS / 2)
    with faulty_server() as (settings, faults):
        storage = in_bucket(settings)
        faults.slow = 1
        exclusive(storage).put("one", b"mine")
        assert storage.read_bytes("one") == b"mine"
        faults.slow = 1
        with pytest.raises(FileExistsError):
            exclusive(storage).put("one", b"other")


def test_a_store_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ATTEMPTS", 2)
    with faulty_server() as (settings, faults):
        storage = in_bucket(settings)
        faults.down = True
        with pytest.raises(OutcomeUnknownError, match="Told to fail"):
            exclusive(storage).put("one", b"mine")
        faults.down = False
        exclusive(storage).put("one", b"mine")


def test_a_request_that_was_refused(object_store: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage("s3://there-is-no-such-bucket/x", tuple(object_store.items()))
    with pytest.raises(OSError, match="NoSuchBucket") as e:
        exclusive(storage).put("one", b"mine")
    assert not isinstance(e.value, OutcomeUnknownError)


def test_missing_credentials(object_store: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    place = tuple((k, v) for k, v in object_store.items() if k in ("s3.endpoint", "s3.region"))
    with pytest.raises(PermissionError, match="Unable to locate credentials"):
        exclusive(Storage("s3://bucket/x", place)).put("one", b"mine")


def test_a_store_without_the_condition() -> None:
    with pytest.raises(NotSupportedError, match="'gs://' cannot tell two jobs"):
        exclusive(Storage("gs://bucket/x"))


def test_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"No module named '{name}'", name=name)

    monkeypatch.setattr(module, "import_module", missing)
    with pytest.raises(SetupError, match=r"not installed: botocore.session") as e:
        exclusive(Storage("s3://bucket/x", (("s3.region", "us-east-1"),)))
    assert "tidemill[s3]" in e.value.hint
