"""What a version of a Delta table has changed, from its file in the table's log.

A version may change which rows of a file are deleted: it removes the file with one deletion vector and adds
it with another one. Then only the rows that are in one of the vectors have changed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from tidemill.changelog.rowkind import ALL_KINDS, INSERT_ONLY, RowKind
from tidemill.connectors.delta.table import DeltaPlace, relative_path, stored_rows
from tidemill.connectors.delta.vectors import Vector
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.connectors.lakehouse.stored_types import typed_value
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field

LOG = "_delta_log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """``added``, ``removed``: files whose rows came or went (a compaction changes no rows). ``changes``:
    files that say what has changed, row by row, if there are any. ``redefined``: whether the table's columns
    or features may be others now."""

    added: tuple[LoggedFile, ...]
    removed: tuple[LoggedFile, ...]
    changes: tuple[LoggedFile, ...]
    redefined: bool


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file as an action of the log names it; ``among``: the only rows of it that have changed."""

    place: DeltaPlace
    action: Mapping[str, Any]
    kinds: frozenset[RowKind] = INSERT_ONLY
    among: Vector | None = None

    @property
    def deleted(self) -> Vector | None:
        return _vector(self.place, self.action)

    def data_file(self, partitions: Collection[Field]) -> DataFile:
        """Cost: its footer, where the log does not say how many rows it has. ConnectorError where the log
        does not say its partition."""
        path = relative_path(self.place, self.action["path"])
        rows = json.loads(self.action.get("stats") or "{}").get("numRecords")
        values = self.action.get("partitionValues")
        if values is None and partitions:
            raise ConnectorError(
                f"The log of Delta table '{self.place.name}' does not say the partition of the file {path},"
                " whose rows are to be read.",
                hint="A writer has left it out as it removed the file. Start the job with a checkpoint"
                " directory of its own to begin with a snapshot.",
            )
        return DataFile(
            path=path,
            size=int(self.action.get("size") or 0),
            rows=stored_rows(self.place, path) if rows is None else int(rows),
            partition={f.name: _value(self.place, f, (values or {}).get(f.name)) for f in partitions},
            kinds=self.kinds,
            deleted=self.deleted,
            among=self.among,
        )


def log_path(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


def has_version(place: DeltaPlace, version: int) -> bool:
    return place.storage.stat(log_path(version)) is not None


def read_actions(place: DeltaPlace, version: int) -> list[dict[str, Any]]:
    """ConnectorError where the log does not have the version any more."""
    try:
        lines = place.storage.read_bytes(log_path(version)).splitlines()
    except FileNotFoundError:
        raise ConnectorError(
            f"Version {version} of Delta table '{place.name}' is in its log no more.",
            hint="The table keeps its log for delta.logRetentionDuration. Start the job with a checkpoint"
            " directory of its own to begin with a snapshot.",
        ) from None
    except (OSError, pa.ArrowException) as e:
        raise place.failure(e) from None
    return [json.loads(line) for line in lines if line.strip()]


def read_commit(place: DeltaPlace, version: int) -> Commit:
    """ConnectorError where the log does not have the version any more."""
    actions = read_actions(place, version)
    added, removed = _changing(actions, "add"), _changing(actions, "remove")
    return Commit(
        added=_changed(place, added, removed, INSERT_ONLY),
        removed=_changed(place, removed, added, frozenset({RowKind.DELETE})),
        changes=tuple(LoggedFile(place, a["cdc"], ALL_KINDS) for a in actions if "cdc" in a),
        redefined=any("metaData" in a or "protocol" in a for a in actions),
    )


def _changed(
    place: DeltaPlace,
    actions: Sequence[Mapping[str, Any]],
    others: Sequence[Mapping[str, Any]],
    kinds: frozenset[RowKind],
) -> tuple[LoggedFile, ...]:
    """The files of ``actions`` that have rows which ``others``, of the other kind, do not have."""
    opposite = {unquote(action["path"]): action for action in others}
    found = []
    for action in actions:
        other = opposite.get(unquote(action["path"]))
        if other is None:
            found.append(LoggedFile(place, action, kinds))
            continue
        among = _vector(place, other)
        if among is not None and _has_more(place, among, _vector(place, action)):
            found.append(LoggedFile(place, action, kinds, among))
    return tuple(found)


def _has_more(place: DeltaPlace, vector: Vector, other: Vector | None) -> bool:
    """Whether ``vector`` has rows that ``other`` does not have."""
    if other is None or vector.rows > other.rows:
        return vector.rows > 0
    one, two = vector.numbers(place.storage), other.numbers(place.storage)
    return not np.isin(one, two, assume_unique=True).all()


def _vector(place: DeltaPlace, action: Mapping[str, Any]) -> Vector | None:
    found = action.get("deletionVector")
    return None if found is None else Vector.logged(place.storage, found)


def _changing(actions: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """Those of the kind that change the table's rows."""
    return [a[kind] for a in actions if kind in a and a[kind].get("dataChange", True)]


def _value(place: DeltaPlace, field: Field, text: str | None) -> object:
    """A partition's value; an empty text is NULL, too, as the protocol says."""
    try:
        return typed_value(field, text or None)
    except ValueError:
        raise ConnectorError(
            f"Partition value '{text}' of column '{field.name}' of Delta table '{place.name}' is not"
            f" {field.type}."
        ) from None
