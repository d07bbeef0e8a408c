"""Savepoints as Parquet, for other tools to read, and back.

An export has the savepoint's files under their names; each run of state is a Parquet file with the same rows
in the same order. The record of the job is written first, and claims the place. ``export.json`` is written
last and lists all files with their checksums. An import refuses an export that was changed, writes the runs
anew and the manifests with their lengths and checksums: what it makes is a savepoint of the same state. Cost:
the state is read and written once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory, identity_records
from tidemill.runtime.checkpoint.savepoint import (
    MARK,
    STATE,
    Savepoint,
    read_mark,
    seal,
    unreadable,
    whole_or_absent,
)
from tidemill.state.manifest import Manifest, TableEntry, read_manifest
from tidemill.state.packing import unpacked
from tidemill.state.run import Run
from tidemill.state.storage import Published, StateFiles

EXPORT = "export.json"
_RUN, _PARQUET = ".arrow", ".parquet"


def export_savepoint(savepoint: Savepoint, target: Storage) -> None:
    """Checks the savepoint, then writes its export. StateError."""
    savepoint.check_whole()
    files = [*savepoint.files] or [*savepoint.state_files(), *_records(savepoint)]
    with whole_or_absent(target):
        for path in _claimed(target, savepoint, files):
            if path.endswith(_RUN):
                _to_parquet(savepoint.storage, path, target)
            else:
                target.take_in(savepoint.storage, path)
        seal(target, EXPORT, savepoint.identity, savepoint.commit, {})


def import_savepoint(export: Storage, target: Storage) -> None:
    """Makes a savepoint of an export. StateError where it is none, or was changed."""
    try:
        mark = read_mark(export, EXPORT)
        if mark is None:
            raise StateError(f"'{export.full_path('')}' is no export of a savepoint: it has no '{EXPORT}'.")
        exported = Savepoint.with_mark(export, mark)
        exported.check_whole()
        with whole_or_absent(target):
            _import(exported, target)
    except OSError as e:
        raise unreadable(export, e) from e


def _claimed(target: Storage, savepoint: Savepoint, files: Iterable[str]) -> list[str]:
    """Puts whose it is first, as every savepoint does: of two that write there at once one is refused.
    Answers the ``files`` that are left to write."""
    CheckpointDirectory(target).make(savepoint.identity, None)
    records = identity_records(savepoint.storage)
    return [path for path in files if path not in records]


def _import(exported: Savepoint, target: Storage) -> None:
    manifests = {f"{STATE}/{name}" for name in exported.manifests()}
    for path in _claimed(target, exported, exported.files):
        if path not in manifests and not path.endswith(_PARQUET):
            target.take_in(exported.storage, path)
    made: dict[str, Published] = {}
    here, there = (StateFiles.open(s.below(STATE), exported.what) for s in (exported.storage, target))
    for name in sorted({*exported.manifests()}):
        _import_manifest(read_manifest(here, name), name, here, there, made)
    seal(target, MARK, exported.identity, exported.commit, {f"{STATE}/{n}": p for n, p in made.items()})


def _import_manifest(
    manifest: Manifest, name: str, here: StateFiles, there: StateFiles, made: dict[str, Published]
) -> None:
    """``made``: the files that are written, by name; manifests may share runs."""

    def written(run: Run) -> Run:
        if run.path not in made:
            made[run.path] = _from_parquet(here, run, there)
        return replace(run, size=made[run.path].size, checksum=made[run.path].checksum)

    tables: dict[str, TableEntry] = {
        table: replace(entry, layers=tuple(tuple(map(written, layer)) for layer in entry.layers))
        for table, entry in manifest.tables.items()
    }
    data = replace(manifest, tables=tables).to_bytes()
    made[name] = there.publish(name, lambda sink: sink.write(data))


def _to_parquet(source: Storage, path: str, target: Storage) -> None:
    with source.open(path) as file:
        table = unpacked(ipc.open_file(file).read_all())
    target.publish(_parquet_name(path), lambda sink: pq.write_table(table, sink))


def _from_parquet(here: StateFiles, run: Run, there: StateFiles) -> Published:
    with here.storage.open(_parquet_name(run.path)) as file:
        table: pa.Table = pq.read_table(file).combine_chunks()

    def write(sink: Any) -> None:
        with ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)

    return there.publish(run.path, write)


def _parquet_name(path: str) -> str:
    return path.removesuffix(_RUN) + _PARQUET


def _records(savepoint: Savepoint) -> list[str]:
    """Of a savepoint without a list: records of its epochs, and what its sources keep."""
    found = [entry.path for folder in ("epochs", "sources") for entry in savepoint.storage.files(folder)]
    shown = [name for name in ("committed.json",) if savepoint.storage.stat(name) is not None]
    return [*found, *shown]
