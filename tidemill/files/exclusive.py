"""Puts small files that must not be there: of all who try, on whatever machine, one succeeds.

Where a file appears it is whole and durable. Local and mounted disks: a hard link to a file that is on disk
already. S3: a PUT under the condition that there is no such object (``If-None-Match``), which Arrow's file
system cannot say: it is sent by botocore (``pip install 'tidemill[s3]'``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from tidemill.errors import NotSupportedError, SetupError
from tidemill.files.storage import Storage
from tidemill.files.systems import ATTEMPTS, CONNECT_SECONDS, REQUEST_SECONDS, S3_SCHEMES, s3_settings

TEMPORARY = ".tmp"
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_THERE = (409, 412)


class OutcomeUnknownError(OSError):
    """The file may be there, or come to be there yet."""


class Exclusive(Protocol):
    def put(self, relative: str, data: bytes) -> None:
        """FileExistsError: there is such a file. OutcomeUnknownError: it may have been put. Other OSErrors:
        it was not."""
        ...


def exclusive(storage: Storage) -> Exclusive:
    """For files below ``storage``. NotSupportedError: its file system cannot. SetupError: a library is
    missing."""
    if storage.is_local:
        return LocalExclusive(storage=storage)
    scheme = storage.location.partition("://")[0].lower()
    if scheme in S3_SCHEMES:
        return S3Exclusive(storage=storage, client=_s3_client(storage))
    raise NotSupportedError(
        f"'{scheme}://' cannot tell two jobs on one directory apart: it has no way to put a file only where "
        "there is none that Tidemill knows.",
        hint="Keep checkpoints on s3:// or on a mounted file system; tables may be there.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalExclusive:
    storage: Storage

    def put(self, relative: str, data: bytes) -> None:
        path = Path(self.storage.absolute(relative))
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{TEMPORARY}")
        try:
            _write(temporary, data, durable=self.storage.durable)
            _link(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        try:
            self.storage.force_directory(relative.rpartition("/")[0])
        except OSError as e:
            said = e.strerror or str(e)
            raise OutcomeUnknownError(e.errno, f"it could not be forced to disk: {said}") from e


def _write(path: Path, data: bytes, *, durable: bool) -> None:
    with open(path, "xb") as f:
        f.write(data)
        f.flush()
        if durable:
            os.fsync(f.fileno())


def _link(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except OSError as e:
        if e.errno not in _NO_LINKS:
            raise
        # A file system without hard links: the fencing token alone tells two jobs apart.
        if path.exists():
            raise FileExistsError(errno.EEXIST, "File exists", str(path)) from e
        os.replace(temporary, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Exclusive:
    """A request that was sent again, its answer being lost, finds its own object, and knows its bytes."""

    storage: Storage
    client: Any

    def put(self, relative: str, data: bytes) -> None:
        bucket, _, key = self.storage.absolute(relative).partition("/")
        errors = import_module("botocore.exceptions")
        try:
            self.client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
        except errors.ClientError as e:
            status = e.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if status not in _THERE:
                kind = OutcomeUnknownError if status >= 500 else OSError
                raise kind(errno.EIO, str(e)) from e
        except (errors.NoCredentialsError, errors.PartialCredentialsError) as e:
            raise PermissionError(errno.EACCES, str(e)) from e
        except errors.BotoCoreError as e:
            raise OutcomeUnknownError(errno.EIO, str(e)) from e
        else:
            return
        if self.storage.read_bytes(relative) != data:
            raise FileExistsError(errno.EEXIST, "File exists", self.storage.shown(relative))


def _s3_client(storage: Storage) -> Any:
    try:
        session, config = import_module("botocore.session"), import_module("botocore.config")
    except ImportError as e:
        raise SetupError(
            f"Checkpoints on '{storage.location}' need a package that is not installed: {e.name}.",
            hint="pip install 'tidemill[s3]'",
        ) from e
    given = s3_settings(storage.location, dict(storage.settings))
    return session.get_session().create_client(
        "s3",
        region_name=given.region,
        endpoint_url=given.endpoint,
        aws_access_key_id=given.access_key,
        aws_secret_access_key=given.secret_key,
        aws_session_token=given.session_token,
        config=config.Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=REQUEST_SECONDS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            s3={"addressing_style": "path" if given.endpoint else "auto"},
        ),
    )
