"""The data files of a version of a Delta table, with the rows that each of them does not have any more.

deltalake lists the files, but does not say which deletion vector a file has. The log says it: the newest
checkpoint, and the versions since. Who asks again and again reads only what has come since.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow import parquet

from tidemill.connectors.delta.log import LOG, read_actions
from tidemill.connectors.delta.table import DeltaPlace, relative_path, stored_rows
from tidemill.connectors.delta.vectors import FEATURE, Vector
from tidemill.connectors.lakehouse.bounds import Bounds
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.files.storage import Storage

_SIDECARS = f"{LOG}/_sidecars"
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint\.((?P<part>\d{10})\.(?P<parts>\d{10})\.|[0-9a-f-]{36}\.)?(parquet|json)"
)


@dataclass(slots=True, kw_only=True)
class VectorLog:
    """``vectors``: what the log says of the files that have one, by path, as of a ``version`` of the table
    ``identity``; -1 before any was read."""

    place: DeltaPlace
    identity: str = ""
    version: int = -1
    vectors: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def at(self, table: DeltaTable) -> Mapping[str, Mapping[str, Any]]:
        """Those of the table's version."""
        if FEATURE not in map(str, table.protocol().reader_features or ()):
            return {}
        version, identity = int(table.version()), str(table.metadata().id)
        if identity != self.identity or not 0 <= self.version <= version:
            self.identity, self.vectors = identity, {}
            self.version = self._read_checkpoint(version)
        for number in range(self.version + 1, version + 1):
            self._take(action["add"] for action in read_actions(self.place, number) if "add" in action)
            self.version = number
        return self.vectors

    def _take(self, added: Iterable[Mapping[str, Any]]) -> None:
        """A version has a file once: the last action about it holds."""
        for action in added:
            path, found = unquote(action["path"]), action.get("deletionVector")
            self.vectors.pop(path, None)
            if found is not None:
                self.vectors[path] = found

    def _read_checkpoint(self, version: int) -> int:
        """The version of the newest checkpoint up to ``version``; -1 if there is none."""
        try:
            found = _newest_checkpoint((f.path for f in self._storage.files(LOG, recursive=False)), version)
            for path in found:
                self._read_part(path)
        except (OSError, pa.ArrowException) as e:
            raise self.place.failure(e) from None
        return int(found[0].rpartition("/")[2][:20]) if found else -1

    def _read_part(self, path: str) -> None:
        if path.endswith(".json"):
            lines = self._storage.read_bytes(path).splitlines()
            actions = [json.loads(line) for line in lines if line.strip()]
        else:
            with self._storage.open(path) as stream:
                wanted = ["add.path", "add.deletionVector", "sidecar.path"]
                actions = parquet.ParquetFile(stream).read(columns=wanted).to_pylist()
        self._take(action["add"] for action in actions if action.get("add"))
        for action in actions:
            if action.get("sidecar"):
                self._read_part(f"{_SIDECARS}/{unquote(action['sidecar']['path']).rpartition('/')[2]}")

    @property
    def _storage(self) -> Storage:
        return self.place.storage


def _newest_checkpoint(paths: Iterable[str], version: int) -> list[str]:
    """The files of the newest whole checkpoint up to ``version``: one, or several parts."""
    whole: dict[int, list[str]] = {}
    parts: dict[tuple[int, int], list[str]] = {}
    for path in sorted(paths):
        found = _CHECKPOINT.fullmatch(path.rpartition("/")[2])
        if found is None or int(found["version"]) > version:
            continue
        if found["parts"] is None:
            whole[int(found["version"])] = [path]
        else:
            parts.setdefault((int(found["version"]), int(found["parts"])), []).append(path)
    whole.update({at: of for (at, count), of in parts.items() if len(of) == count and at not in whole})
    return whole[max(whole)] if whole else []


def active_files(
    place: DeltaPlace,
    table: DeltaTable,
    partitions: Collection[str],
    columns: Collection[str],
    vectors: VectorLog | None = None,
) -> list[DataFile]:
    """The files of the version, in the order of their times; bounds of ``columns``. ``vectors``: as far as
    they are known."""
    actions = pa.table(table.get_add_actions(flatten=False))
    rows = actions.to_pylist() if columns else actions.drop_columns(_unused(actions)).to_pylist()
    rows.sort(key=lambda row: (row["modification_time"], row["path"]))
    deleted = (vectors or VectorLog(place=place)).at(table)
    return [_data_file(place, row, partitions, columns, deleted) for row in rows]


def stored_bytes(table: DeltaTable) -> int:
    return int(pc.sum(pa.table(table.get_add_actions()).column("size_bytes")).as_py() or 0)


def _unused(actions: pa.Table) -> list[str]:
    return [name for name in ("null_count", "min", "max") if name in actions.column_names]


def _data_file(
    place: DeltaPlace,
    row: Mapping[str, Any],
    partitions: Collection[str],
    columns: Collection[str],
    deleted: Mapping[str, Mapping[str, Any]],
) -> DataFile:
    path, size = relative_path(place, row["path"]), int(row["size_bytes"])
    rows = row.get("num_records")
    count = stored_rows(place, path) if rows is None else int(rows)
    values = {name: row["partition"][name] for name in partitions}
    bounds = {name: Bounds.constant(value, count) for name, value in values.items()}
    for name in columns:
        if name not in values and name in (row.get("min") or {}):
            low, high = row["min"][name], (row.get("max") or {}).get(name)
            bounds[name] = Bounds(low, high, (row.get("null_count") or {}).get(name))
    return DataFile(
        path=path,
        logged=row["path"],
        size=size,
        rows=count,
        partition=values,
        bounds=bounds,
        deleted=Vector.logged(place.storage, deleted[path]) if path in deleted else None,
    )
