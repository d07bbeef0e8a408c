"""In Google Cloud Storage: an upload under the condition that there is no generation of the object
(``ifGenerationMatch=0``), sent with google-auth's credentials (``pip install 'tidemill[gcs]'``)."""

from __future__ import annotations

import errno
import json
import uuid
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

from tidemill.errors import SetupError
from tidemill.files.exclusive.api import OutcomeUnknownError
from tidemill.files.storage import Storage
from tidemill.files.systems import ATTEMPTS, CONNECT_SECONDS, GCS_ENDPOINT, REQUEST_SECONDS

_GOOGLE = "https://storage.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_THERE = 412
_TRY_AGAIN = (408, 429, 500, 502, 503, 504)
_FORBIDDEN = (401, 403)
_BACKOFF_SECONDS = 0.5
"""Doubled with every attempt after the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsExclusive:
    """A request that was sent again, its answer being lost, finds its own object, and knows its bytes."""

    storage: Storage
    session: Any

    @classmethod
    def of(cls, storage: Storage) -> Self:
        return cls(storage=storage, session=_session(storage))

    def put(self, relative: str, data: bytes) -> None:
        bucket, _, name = self.storage.absolute(relative).partition("/")
        kind, body = _multipart(name, data)
        status, said = self._sent(
            f"{_endpoint(self.storage) or _GOOGLE}/upload/storage/v1/b/{bucket}/o", kind, body
        )
        if status < 400:
            return
        if status != _THERE:
            raise _failure(status)(errno.EIO, f"{status} {said}")
        if self.storage.read_bytes(relative) != data:
            raise FileExistsError(errno.EEXIST, "File exists", self.storage.full_path(relative))

    def _sent(self, url: str, kind: str, body: bytes) -> tuple[int, str]:
        google, requests = import_module("google.auth.exceptions"), import_module("requests")
        try:
            answer = self.session.post(
                url,
                params={"uploadType": "multipart", "ifGenerationMatch": "0"},
                headers={"Content-Type": kind},
                data=body,
                timeout=(CONNECT_SECONDS, REQUEST_SECONDS),
            )
        except google.GoogleAuthError as e:
            raise PermissionError(errno.EACCES, str(e)) from e
        except requests.RequestException as e:
            raise OutcomeUnknownError(errno.EIO, str(e)) from e
        return int(answer.status_code), " ".join(answer.text.split())[:200]


def _failure(status: int) -> type[OSError]:
    if status in _FORBIDDEN:
        return PermissionError
    return OutcomeUnknownError if status >= 500 or status in _TRY_AGAIN else OSError


def _endpoint(storage: Storage) -> str:
    return dict(storage.settings).get(GCS_ENDPOINT, "").rstrip("/")


def _multipart(name: str, data: bytes) -> tuple[str, bytes]:
    """An upload in one request that names its object: the content type, and the body."""
    boundary = uuid.uuid4().hex
    named = json.dumps({"name": name})
    parts = (("application/json; charset=UTF-8", named.encode()), ("application/octet-stream", data))
    body = b"".join(
        f"--{boundary}\r\nContent-Type: {kind}\r\n\r\n".encode() + part + b"\r\n" for kind, part in parts
    )
    return f"multipart/related; boundary={boundary}", body + f"--{boundary}--".encode()


def _session(storage: Storage) -> Any:
    try:
        transport = import_module("google.auth.transport.requests")
        adapters = import_module("requests.adapters")
        retry = import_module("urllib3.util.retry").Retry
    except ImportError as e:
        raise SetupError(
            f"Checkpoints on '{storage.location}' need a package that is not installed: {e.name}.",
            hint="pip install 'tidemill[gcs]'",
        ) from e
    session = transport.AuthorizedSession(_credentials(storage))
    again = retry(
        total=ATTEMPTS - 1,
        backoff_factor=_BACKOFF_SECONDS,
        status_forcelist=_TRY_AGAIN,
        allowed_methods=None,
        raise_on_status=False,
    )
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapters.HTTPAdapter(max_retries=again))
    return session


def _credentials(storage: Storage) -> Any:
    """As Google's own tools find them; an emulator wants none."""
    if _endpoint(storage):
        return import_module("google.auth.credentials").AnonymousCredentials()
    auth = import_module("google.auth")
    try:
        credentials, _ = auth.default(scopes=[_SCOPE])
    except auth.exceptions.DefaultCredentialsError as e:
        raise SetupError(
            f"There are no credentials for '{storage.location}': {str(e).partition('. ')[0]}.",
            hint="Set GOOGLE_APPLICATION_CREDENTIALS, or run as a service account.",
        ) from e
    return credentials
