"""Lets a user repair a file behind the position at which a job stopped.

If a record is malformed the job fails, and continues from its last epoch once the file is repaired. The
repaired file has another size and time. So a job that stops stores a checksum of the bytes that it has read
of the file. If the repaired file begins with the same bytes, reading continues in it. Cost: the read bytes of
one file are read again when the job stops, and when it finds the file changed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import xxhash

from tidemill.connectors.filesystem.changes import ends_of, is_unchanged
from tidemill.connectors.filesystem.offsets import FilePosition
from tidemill.files.storage import Storage

_NOTE = "stopped-at.json"
_CHUNK = 8 << 20
_MOST = 8 << 30
"""Bytes that are read again at most; a file that was read further must stay as it is."""


def note_stop(files: Storage, records: Storage, position: FilePosition) -> None:
    """Stores a checksum of the bytes read of the current file of ``position``, unless the file has
    changed."""
    file = position.current
    if file is None or file.compressed or position.position > _MOST:
        return
    entry = files.stat(file.path)
    if entry is None or not is_unchanged(file, entry):
        return
    note = [file.path, position.position, _checksum(files, file.path, position.position)]
    records.publish(_NOTE, lambda stream: stream.write(json.dumps(note).encode()))


def repaired(files: Storage, records: Storage | None, position: FilePosition) -> FilePosition:
    """``position`` in the repaired file, if the file begins with the bytes read; otherwise ``position``."""
    file = position.current
    if records is None or file is None or file.compressed:
        return position
    entry = files.stat(file.path)
    if entry is None or is_unchanged(file, entry) or entry.size < position.position:
        return position
    with suppress(OSError, ValueError):
        path, read_bytes, checksum = json.loads(records.read_bytes(_NOTE))
        if (path, read_bytes) == (file.path, position.position) and checksum == _checksum(
            files, path, read_bytes
        ):
            mended_file = replace(
                file,
                size=entry.size,
                length=entry.size,
                modified=entry.modified,
                ends=ends_of(files, path, entry.size),
            )
            return replace(position, files=(*position.files[:-1], mended_file))
    return position


def _checksum(files: Storage, path: str, size: int) -> str:
    digest = xxhash.xxh3_128()
    with files.open(path) as opened:
        remaining = size
        while remaining > 0:
            data = opened.read(min(remaining, _CHUNK))
            if not data:
                break
            digest.update(data)
            remaining -= len(data)
    return digest.hexdigest()
