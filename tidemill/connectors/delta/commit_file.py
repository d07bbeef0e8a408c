"""Writes a version into a table's log: for versions with files of changes, which deltalake cannot commit.

The file of the log appears whole and exclusively, as Delta's protocol demands: of two writers of one version
one fails. Paths are URL-encoded there; a file that goes keeps the path that the log has.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tidemill.connectors.delta.log import log_path
from tidemill.connectors.delta.table import DeltaPlace
from tidemill.connectors.lakehouse.api import Change, ConflictError, UnclearError
from tidemill.files.exclusive import exclusive

Texts = Mapping[str, str | None]
_CHECKPOINT_INTERVAL = "100"
"""deltalake's default, in versions."""


def put_version(
    place: DeltaPlace, table: DeltaTable, sink: str, epoch: int, change: Change, texts: Sequence[Texts]
) -> None:
    """Makes the version after ``table``'s. ``texts``: the partitions of the files that go. Raises
    ConflictError or UnclearError."""
    version, moment = int(table.version()) + 1, now()
    info = {
        "timestamp": moment,
        "operation": change.what,
        "operationParameters": {},
        "readVersion": version - 1,
        "isBlindAppend": False,
        "engineInfo": "tidemill",
    }
    actions: list[dict[str, Any]] = [
        {"commitInfo": info},
        {"txn": {"appId": sink, "version": epoch, "lastUpdated": moment}},
        *({"cdc": {**_file(file), "dataChange": False}} for file in change.changes),
        *({"add": _added(file, moment)} for file in change.added),
    ]
    for file, partition in zip(change.removed, texts, strict=True):
        gone = {
            "path": file.logged,
            "deletionTimestamp": moment,
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": partition,
            "size": file.size,
        }
        actions.append({"remove": gone})
    lines = "".join(f"{json.dumps(action)}\n" for action in actions)
    try:
        exclusive(place.storage).put(log_path(version), lines.encode())
    except FileExistsError as e:
        raise ConflictError(str(e)) from None
    except OSError as e:
        raise UnclearError(str(e)) from None
    _make_checkpoint(place, table, version)


def statistics(file: Mapping[str, Any]) -> str:
    """Of a file as tokens have it."""
    columns = file["columns"]
    found = {
        "numRecords": file["rows"],
        "minValues": {name: low for name, (low, _, _) in columns.items() if low is not None},
        "maxValues": {name: high for name, (_, high, _) in columns.items() if high is not None},
        "nullCount": {name: nulls for name, (_, _, nulls) in columns.items() if nulls is not None},
    }
    return json.dumps(found)


def now() -> int:
    return time.time_ns() // 1_000_000


def _file(file: Mapping[str, Any]) -> dict[str, Any]:
    return {"path": quote(file["path"]), "partitionValues": file["partition"], "size": file["size"]}


def _added(file: Mapping[str, Any], moment: int) -> dict[str, Any]:
    return {**_file(file), "modificationTime": moment, "dataChange": True, "stats": statistics(file)}


def _make_checkpoint(place: DeltaPlace, table: DeltaTable, version: int) -> None:
    """As deltalake does from time to time. If it fails, a reader reads more files of the log."""
    interval = table.metadata().configuration.get("delta.checkpointInterval", _CHECKPOINT_INTERVAL)
    if version % max(int(interval), 1) == 0:
        with suppress(DeltaError, OSError):
            place.opened(version).create_checkpoint()
