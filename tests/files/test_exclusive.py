"""Files that are put only where there is none, on disks and in an object store."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.google_store import failing_google, google_bucket
from tests.object_store import SLOW_SECONDS, Faults, bucket, faulty_server
from tidemill.errors import SetupError
from tidemill.files.exclusive import OutcomeUnknownError, exclusive, gcs, s3
from tidemill.files.storage import Storage


@pytest.fixture(params=["local", "s3", "gs"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return Storage(str(tmp_path))
    return in_bucket(request.getfixturevalue(_SERVERS[request.param]), request.param)


@pytest.fixture(params=["s3", "gs"])
def faulty(request: pytest.FixtureRequest) -> Iterator[tuple[Storage, Faults]]:
    """A place in a store that fails when it is told to."""
    if request.param == "s3":
        with faulty_server() as (settings, faults):
            yield in_bucket(settings, "s3"), faults
        return
    with failing_google(request.getfixturevalue("google_store")) as (settings, faults):
        yield in_bucket(settings, "gs"), faults


_SERVERS = {"s3": "object_store", "gs": "google_store"}


def in_bucket(settings: Mapping[str, str], scheme: str) -> Storage:
    name = f"exclusive-{uuid.uuid4().hex}"
    if scheme == "s3":
        bucket(settings, name)
    else:
        google_bucket(settings, name)
    return Storage(f"{scheme}://{name}/root", tuple(settings.items()))


def test_the_first_one_stays(storage: Storage) -> None:
    files = exclusive(storage)
    files.put("1", b"first")
    with pytest.raises(FileExistsError):
        files.put("1", b"second")
    assert storage.read_bytes("1") == b"first"
    files.put("2", b"second")


@pytest.mark.one_case
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


def test_an_answer_that_was_lost(faulty: tuple[Storage, Faults]) -> None:
    """The object is there, the store said 500: the request is sent again and finds it."""
    storage, faults = faulty
    faults.lost_answers = 1
    exclusive(storage).put("one", b"mine")
    assert storage.read_bytes("one") == b"mine"
    faults.lost_answers = 1
    with pytest.raises(FileExistsError):
        exclusive(storage).put("one", b"other")


@pytest.mark.thorough
def test_an_answer_that_takes_too_long(
    faulty: tuple[Storage, Faults], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was given up, and the request sent again, which finds what the first one put."""
    for module in (s3, gcs):
        monkeypatch.setattr(module, "REQUEST_SECONDS", SLOW_SECONDS / 2)
    storage, faults = faulty
    faults.slow = 1
    exclusive(storage).put("one", b"mine")
    assert storage.read_bytes("one") == b"mine"
    faults.slow = 1
    with pytest.raises(FileExistsError):
        exclusive(storage).put("one", b"other")


def test_a_store_that_is_down(faulty: tuple[Storage, Faults], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (s3, gcs):
        monkeypatch.setattr(module, "ATTEMPTS", 2)
    storage, faults = faulty
    faults.down = True
    with pytest.raises(OutcomeUnknownError, match="Told to fail"):
        exclusive(storage).put("one", b"mine")
    faults.down = False
    exclusive(storage).put("one", b"mine")


@pytest.mark.parametrize(("scheme", "said"), [("s3", "NoSuchBucket"), ("gs", "404 .*Not Found")])
def test_a_request_that_was_refused(request: pytest.FixtureRequest, scheme: str, said: str) -> None:
    settings: Mapping[str, str] = request.getfixturevalue(_SERVERS[scheme])
    storage = Storage(f"{scheme}://there-is-no-such-bucket/x", tuple(settings.items()))
    with pytest.raises(OSError, match=said) as e:
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


def test_missing_credentials_of_google(monkeypatch: pytest.MonkeyPatch) -> None:
    auth = pytest.importorskip("google.auth")

    def nothing(**_: object) -> None:
        raise auth.exceptions.DefaultCredentialsError("No default credentials. To set up ...")

    monkeypatch.setattr(auth, "default", nothing)
    with pytest.raises(SetupError, match="no credentials for 'gs://bucket/x': No default") as e:
        exclusive(Storage("gs://bucket/x"))
    assert "GOOGLE_APPLICATION_CREDENTIALS" in e.value.hint


@pytest.mark.parametrize(
    ("scheme", "library"), [("s3", "botocore.session"), ("gs", "google.auth.transport.requests")]
)
def test_a_missing_library(monkeypatch: pytest.MonkeyPatch, scheme: str, library: str) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"No module named '{name}'", name=name)

    for module in (s3, gcs):
        monkeypatch.setattr(module, "import_module", missing)
    with pytest.raises(SetupError, match=f"not installed: {library}") as e:
        exclusive(Storage(f"{scheme}://bucket/x", (("s3.region", "us-east-1"),)))
    assert f"tidemill[{'s3' if scheme == 's3' else 'gcs'}]" in e.value.hint
