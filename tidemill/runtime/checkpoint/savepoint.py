"""Savepoints: a copy of a stopped job's checkpoint directory that stands on its own.

It has the records, the state that the last commit names and what sources keep, and nothing that points
outside. A job starts from it by copying it into its checkpoint directory first, so that one savepoint serves
any number of jobs. ``savepoint.json`` comes last: a copy without it was never finished. Cost: the size of
the state, twice.
"""

from __future__ import annotations

import json

import pyarrow as pa

from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import FOLDERS

MARK = "savepoint.json"
_LOCK = "lock"
_PIECE = 8 << 20


def write_savepoint(checkpoint: Storage, target: Storage, job_id: str) -> None:
    """Copies a stopped job's directory, without those that other jobs have below it; StateError where it
    cannot be written."""
    mark = json.dumps({"job": job_id}).encode()
    try:
        _copy(checkpoint, target)
        target.publish(MARK, lambda file: file.write(mark))
    except OSError as e:
        raise StateError(f"The savepoint '{target.shown('')}' cannot be written: {e.strerror or e}") from e


def take_savepoint(savepoint: Storage, checkpoint: Storage) -> None:
    """Fills an empty checkpoint directory with a savepoint; StateError where there is none."""
    try:
        if savepoint.stat(MARK) is None:
            raise StateError(
                f"'{savepoint.shown('')}' is not a savepoint: it has no '{MARK}'.",
                hint="Use the path that STOP JOB ... WITH SAVEPOINT returned.",
            )
        _copy(savepoint, checkpoint)
    except OSError as e:
        raise StateError(f"The savepoint '{savepoint.shown('')}' cannot be copied: {e.strerror or e}") from e


def _copy(source: Storage, target: Storage) -> None:
    entries = [
        *source.files(recursive=False),
        *(entry for folder in FOLDERS for entry in source.files(folder)),
    ]
    for path in sorted(entry.path for entry in entries):
        if path not in (_LOCK, MARK):
            _copy_file(source, target, path)


def _copy_file(source: Storage, target: Storage, path: str) -> None:
    def write(into: pa.NativeFile) -> None:
        with source.open(path) as reading:
            while piece := reading.read(_PIECE):
                into.write(piece)

    target.publish(path, write)
