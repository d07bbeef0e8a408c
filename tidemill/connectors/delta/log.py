"""What a version of a Delta table has changed, from its file in the table's log."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidemill.changelog.rowkind import ALL_KINDS, INSERT_ONLY, RowKind
from tidemill.connectors.delta.table import DeltaPlace, relative_path, stored_rows
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.connectors.lakehouse.stored_types import typed_value
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field


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
    """A file as an action of the log names it."""

    place: DeltaPlace
    action: Mapping[str, Any]
    kinds: frozenset[RowKind] = INSERT_ONLY

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
        )


def log_path(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def has_version(place: DeltaPlace, version: int) -> bool:
    return place.storage.stat(log_path(version)) is not None


def read_commit(place: DeltaPlace, version: int) -> Commit:
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
    actions = [json.loads(line) for line in lines if line.strip()]
    added = _changing(actions, "add")
    return Commit(
        added=tuple(LoggedFile(place, action) for action in added),
        removed=tuple(
            LoggedFile(place, a, frozenset({RowKind.DELETE})) for a in _changing(actions, "remove")
        ),
        changes=tuple(LoggedFile(place, a["cdc"], ALL_KINDS) for a in actions if "cdc" in a),
        redefined=any("metaData" in a or "protocol" in a for a in actions)
        or any(action.get("deletionVector") for action in added),
    )


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
