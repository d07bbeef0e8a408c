"""Makes deletion vectors by hand, as another writer would by Delta's protocol, and looks at a table's."""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
PROPERTY = "delta.enableDeletionVectors"
Descriptor = dict[str, Any]


def z85(data: bytes) -> str:
    found = ""
    for (number,) in struct.iter_unpack(">I", data + b"\0" * (-len(data) % 4)):
        group = ""
        for _ in range(5):
            number, letter = divmod(number, 85)
            group = LETTERS[letter] + group
        found += group
    return found


def bitmap(rows: Collection[int]) -> bytes:
    """Of rows below 65,536: one container, an array of its values."""
    values = sorted(rows)
    header = struct.pack("<IIHHI", 12346, 1, 0, len(values) - 1, 16)
    body = header + b"".join(struct.pack("<H", value) for value in values)
    return struct.pack("<IQI", 1681511377, 1, 0) + body


def vector(root: Path, rows: Collection[int], kind: str = "u", prefix: str = "") -> Descriptor:
    """A vector of one of the kinds ``u`` (with a ``prefix`` if there is one), ``p`` and ``i``."""
    data, named = bitmap(rows), uuid.uuid4()
    described = {"storageType": kind, "sizeInBytes": len(data), "cardinality": len(set(rows))}
    if kind == "i":
        return {**described, "pathOrInlineDv": z85(data)}
    path = root / prefix / f"deletion_vector_{named}.bin"
    path.parent.mkdir(exist_ok=True)
    before = b"\1" + b"another vector"
    path.write_bytes(before + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data)))
    text = prefix + z85(named.bytes) if kind == "u" else f"file://{path}"
    return {**described, "pathOrInlineDv": text, "offset": len(before)}


def actions(root: Path, version: int | None = None) -> list[dict[str, Any]]:
    """Of one version; None for the newest."""
    at = DeltaTable(root).version() if version is None else version
    lines = (root / "_delta_log" / f"{at:020d}.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def put(root: Path, made: Sequence[dict[str, Any]]) -> None:
    """The next version."""
    at = DeltaTable(root).version() + 1
    lines = "".join(f"{json.dumps(action)}\n" for action in [{"commitInfo": {"timestamp": 1}}, *made])
    (root / "_delta_log" / f"{at:020d}.json").write_text(lines)


def last_add(root: Path, path: str) -> dict[str, Any]:
    """The action that has a file in the newest version."""
    found = [a["add"] for v in range(DeltaTable(root).version() + 1) for a in actions(root, v) if "add" in a]
    return next(add for add in reversed(found) if add["path"] == path)


def mark(root: Path, path: str, described: Descriptor | None) -> None:
    """A version in which a file has the vector, or none."""
    add = last_add(root, path)
    statistics = {**json.loads(add["stats"]), "tightBounds": False}
    kept = {name: add[name] for name in ("path", "partitionValues", "size")}
    old = {"deletionVector": add["deletionVector"]} if "deletionVector" in add else {}
    new = {} if described is None else {"deletionVector": described}
    gone = {**kept, "deletionTimestamp": 1, "dataChange": True, "extendedFileMetadata": True, **old}
    come = {
        **kept,
        "modificationTime": 1000 + DeltaTable(root).version(),
        "dataChange": True,
        "stats": json.dumps(statistics),
        **new,
    }
    put(root, [{"remove": gone}, {"add": come}])


def marked(root: Path) -> dict[str, int]:
    """How many rows each file of the newest version has lost, by its path on disk; those that have."""
    found = {}
    for part in pa.RecordBatchReader.from_stream(DeltaTable(root).deletion_vectors()):
        for one in part.to_pylist():
            name = unquote(one["filepath"]).removeprefix(f"file://{root}/")
            found[name] = one["selection_vector"].count(False)
    return found


def enabled(root: Path, schema: pa.Schema, by: Sequence[str] = ()) -> None:
    """A table by deltalake that takes vectors."""
    DeltaTable.create(root, schema, partition_by=list(by), configuration={PROPERTY: "true"})
