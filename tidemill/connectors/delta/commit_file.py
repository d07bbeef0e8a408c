"""Writes a version into a table's log: for versions with files of changes or with deletion vectors, which
deltalake cannot commit, and the first version of a table with deletion vectors, which deltalake would give
features that older readers do not know.

The file of the log appears whole and exclusively, as Delta's protocol demands: of two writers of one version
one fails. Paths are URL-encoded there; a file that goes keeps the path that the log has.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from tidemill.connectors.delta.log import LOG, log_path
from tidemill.connectors.delta.table import DeltaPlace
from tidemill.connectors.delta.vectors import FEATURE, PROPERTY, Vector
from tidemill.connectors.lakehouse.api import Change, ConflictError, Marked, UnclearError
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.connectors.lakehouse.stored_types import stored_field
from tidemill.files.exclusive import exclusive
from tidemill.types.logical import Field

Texts = Mapping[str, str | None]
_ENGINE = "tidemill"
_UNQUOTED = "/=+,&$()!;@~"
"""As deltalake has it: it finds no file to compact whose path is quoted in another way."""
_CHECKPOINT_INTERVAL = "100"
"""deltalake's default, in versions."""


def put_first(place: DeltaPlace, fields: Sequence[Field], partitions: Sequence[str]) -> None:
    """A table without rows that takes deletion vectors; one that is there by now stays. ConnectorError where
    it cannot be made."""
    schema = Schema.from_arrow(pa.schema([stored_field(field) for field in fields])).to_json()
    features = [FEATURE, *(["timestampNtz"] if '"timestamp_ntz"' in schema else [])]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": features,
    }
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": list(partitions),
        "configuration": {PROPERTY: "true"},
        "createdTime": now(),
    }
    info = {"timestamp": now(), "operation": "CREATE TABLE", "operationParameters": {}, "engineInfo": _ENGINE}
    try:
        place.storage.make_directory(LOG)
        _put(place, 0, [{"commitInfo": info}, {"protocol": protocol}, {"metaData": metadata}])
    except FileExistsError:
        return
    except OSError as e:
        raise place.failure(e) from None


def put_version(
    place: DeltaPlace,
    table: DeltaTable,
    sink: str,
    epoch: int,
    change: Change,
    texts: Sequence[Texts],
    marked: Sequence[Texts],
) -> None:
    """Makes the version after ``table``'s. ``texts``, ``marked``: the partitions of the files that go, and of
    those that lose rows. Raises ConflictError or UnclearError."""
    version, moment = int(table.version()) + 1, now()
    info = {
        "timestamp": moment,
        "operation": change.what,
        "operationParameters": {},
        "readVersion": version - 1,
        "isBlindAppend": False,
        "engineInfo": _ENGINE,
    }
    actions: list[dict[str, Any]] = [
        {"commitInfo": info},
        {"txn": {"appId": sink, "version": epoch, "lastUpdated": moment}},
        *({"cdc": {**_file(file), "dataChange": False}} for file in change.changes),
        *({"add": _added(file, moment)} for file in change.added),
    ]
    for file, partition in zip(change.removed, texts, strict=True):
        actions.append({"remove": _removed(file, partition, moment)})
    for mark, partition in zip(change.marked, marked, strict=True):
        actions.append({"remove": _removed(mark.file, partition, moment)})
        actions.append({"add": _marked(mark, partition, moment)})
    try:
        _put(place, version, actions)
    except FileExistsError as e:
        raise ConflictError(str(e)) from None
    except OSError as e:
        raise UnclearError(str(e)) from None
    _make_checkpoint(place, table, version)


def _put(place: DeltaPlace, version: int, actions: Sequence[Mapping[str, Any]]) -> None:
    lines = "".join(f"{json.dumps(action)}\n" for action in actions)
    exclusive(place.storage).put(log_path(version), lines.encode())


def statistics(file: Mapping[str, Any], *, tight: bool = True) -> str:
    """Of a file as tokens have it; ``tight``: the bounds are values of rows that the table has."""
    columns = file["columns"]
    found = {
        "numRecords": file["rows"],
        "minValues": {name: low for name, (low, _, _) in columns.items() if low is not None},
        "maxValues": {name: high for name, (_, high, _) in columns.items() if high is not None},
        "nullCount": {name: nulls for name, (_, _, nulls) in columns.items() if nulls is not None},
    }
    return json.dumps(found if tight else {**found, "tightBounds": False})


def now() -> int:
    return time.time_ns() // 1_000_000


def _file(file: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "path": quote(file["path"], safe=_UNQUOTED),
        "partitionValues": file["partition"],
        "size": file["size"],
    }


def _added(file: Mapping[str, Any], moment: int) -> dict[str, Any]:
    return {**_file(file), "modificationTime": moment, "dataChange": True, "stats": statistics(file)}


def _removed(file: DataFile, partition: Texts, moment: int) -> dict[str, Any]:
    return {
        "path": file.logged,
        "deletionTimestamp": moment,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": partition,
        "size": file.size,
        **_vector(file),
    }


def _marked(mark: Marked, partition: Texts, moment: int) -> dict[str, Any]:
    """The same file with another deletion vector."""
    found = {"rows": mark.file.rows, "columns": mark.columns}
    return {
        "path": mark.file.logged,
        "partitionValues": partition,
        "size": mark.file.size,
        "modificationTime": moment,
        "dataChange": True,
        "stats": statistics(found, tight=False),
        "deletionVector": mark.vector,
    }


def _vector(file: DataFile) -> dict[str, Any]:
    return {"deletionVector": file.deleted.action()} if isinstance(file.deleted, Vector) else {}


def _make_checkpoint(place: DeltaPlace, table: DeltaTable, version: int) -> None:
    """As deltalake does from time to time. If it fails, a reader reads more files of the log."""
    interval = table.metadata().configuration.get("delta.checkpointInterval", _CHECKPOINT_INTERVAL)
    if version % max(int(interval), 1) == 0:
        with suppress(DeltaError, OSError):
            place.opened(version).create_checkpoint()
