"""Record files of a checkpoint directory: put if absent, durable, whole or not there.

A record appears under its name by a hard link from a file that is on disk already, so that of two jobs that
write the same one only the first succeeds. Reading says exactly what is wrong with a file that is no record.
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from pathlib import Path
from typing import Any

from tidemill.errors import CommitUnknownError, StateError
from tidemill.state.record import decode_record, encode_record

FORMAT_VERSION = 2
_TEMPORARY = ".tmp"
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
NOTHING_COMMITTED = "Nothing was committed; the job resumes from its last epoch when the cause is gone."


def read_record(path: Path, what: str) -> dict[str, Any] | None:
    """The fields of the record, None if there is none; StateError where it is damaged or of no known form."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as e:
        raise StateError(f"Cannot read {what} '{path}': {e.strerror or e}") from e
    return decode_record(data, FORMAT_VERSION, f"{what} '{path}'")


def put_record(path: Path, fields: dict[str, Any]) -> None:
    """Writes a record that must not be there; it is on disk when this returns.

    StateError: nothing was written. CommitUnknownError: it may have been.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{_TEMPORARY}")
    try:
        _write(temporary, encode_record(FORMAT_VERSION, fields))
        _link(temporary, path)
    except FileExistsError as e:
        raise StateError(
            f"The record '{path}' is there already: another job has written to this checkpoint directory",
            hint="Stop one of the two jobs, or give it a directory of its own.",
        ) from e
    except OSError as e:
        raise StateError(f"Cannot write '{path}': {e.strerror or e}", hint=NOTHING_COMMITTED) from e
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    try:
        sync_directory(path.parent)
    except OSError as e:
        raise CommitUnknownError(
            f"'{path}' was written, but could not be forced to disk: {e.strerror or e}",
            hint="Start the job again when the cause is gone: it finds out and goes on.",
        ) from e


def remove_record(path: Path) -> None:
    """Removes a record; one that is gone already is fine."""
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise StateError(f"Cannot remove '{path}': {e.strerror or e}") from e


def remove_temporaries(*folders: Path) -> None:
    """Takes away what records of killed processes left; by the owner of the directory only."""
    for folder in folders:
        for left in folder.glob(f".*{_TEMPORARY}"):
            left.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    with open(path, "xb") as f:
        f.write(data)
        f.flush()
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
