"""On disks, local ones or mounted: a hard link, which fails where there is such a name."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from tidemill.files.exclusive.api import OutcomeUnknownError
from tidemill.files.storage import Storage

TEMPORARY = ".tmp"
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def is_temporary(relative: str) -> bool:
    """Whether a file is a record that somebody is still putting, or was when he was killed."""
    return relative.rpartition("/")[2].startswith(".") and relative.endswith(TEMPORARY)


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
