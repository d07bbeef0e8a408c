"""What a version of a Delta table has changed, from its file in the table's log."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidemill.connectors.delta.table import DeltaPlace, relative_path, stored_rows
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.connectors.lakehouse.partition_texts import typed_value
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """``added``, ``removed``: files whose rows came or went (a compaction changes no rows); ``redefined``:
    whether the table's columns or features may be others now."""

    added: tuple[DataFile, ...]
    removed: int
    redefined: bool


def log_path(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def has_version(place: DeltaPlace, version: int) -> bool:
    return place.storage.stat(log_path(version)) is not None


def read_commit(place: DeltaPlace, version: int, partitions: Collection[Field]) -> Commit:
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
    added = [a["add"] for a in actions if "add" in a]
    removed = [a["remove"] for a in actions if "remove" in a]
    return Commit(
        added=tuple(_data_file(place, a, partitions) for a in added if a.get("dataChange", True)),
        removed=sum(bool(r.get("dataChange", True)) for r in removed),
        redefined=any("metaData" in a or "protocol" in a for a in actions)
        or any(a.get("deletionVector") for a in added),
    )


def _data_file(place: DeltaPlace, add: Mapping[str, Any], partitions: Collection[Field]) -> DataFile:
    path = relative_path(place, add["path"])
    rows = json.loads(add.get("stats") or "{}").get("numRecords")
    values = add.get("partitionValues") or {}
    return DataFile(
        path=path,
        size=int(add["size"]),
        rows=stored_rows(place, path) if rows is None else int(rows),
        partition={f.name: _value(place, f, values.get(f.name)) for f in partitions},
    )


def _value(place: DeltaPlace, field: Field, text: str | None) -> object:
    """A partition's value; an empty text is NULL, too, as the protocol says."""
    try:
        return typed_value(field, text or None)
    except ValueError:
        raise ConnectorError(
            f"Partition value '{text}' of column '{field.name}' of Delta table '{place.name}' is not"
            f" {field.type}."
        ) from None
