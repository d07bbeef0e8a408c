"""A file that a job stopped in the middle of may be repaired behind the place that it had come to.

Where a record cannot be read the job fails, and goes on from its last epoch once the file is mended; the
file is another one then, by size and time. So a job that stops leaves a checksum of what it has read of the
file. Where the new file begins with the same bytes, reading goes on in it. Cost: what was read of one file is
read once more as the job stops, and once as it finds the file changed.
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
    """Notes what was read of the file that ``position`` is in the middle of, while it is still that file."""
    file = position.current
    if file is None or file.compressed or position.position > _MOST:
        return
    now = files.stat(file.path)
    if now is None or not is_unchanged(file, now):
        return
    note = [file.path, position.position, _checksum(files, file.path, position.position)]
    records.publish(_NOTE, lambda stream: stream.write(json.dumps(note).encode()))


def repaired(files: Storage, records: Storage | None, position: FilePosition) -> FilePosition:
    """``position`` in the file as it is now, if it begins with what was read; else as it is."""
    file = position.current
    if records is None or file is None or file.compressed:
        return position
    now = files.stat(file.path)
    if now is None or is_unchanged(file, now) or now.size < position.position:
        return position
    with suppress(OSError, ValueError):
        path, read, checksum = json.loads(records.read_bytes(_NOTE))
        if (path, read) == (file.path, position.position) and checksum == _checksum(files, path, read):
            mended = replace(
                file,
                size=now.size,
                length=now.size,
                modified=now.modified,
                ends=ends_of(files, path, now.size),
            )
            return replace(position, files=(*position.files[:-1], mended))
    return position


def _checksum(files: Storage, path: str, size: int) -> str:
    digest = xxhash.xxh3_128()
    with files.open(path) as opened:
        left = size
        while left > 0:
            data = opened.read(min(left, _CHUNK))
            if not data:
                break
            digest.update(data)
            left -= len(data)
    return digest.hexdigest()
