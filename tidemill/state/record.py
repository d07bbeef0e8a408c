"""Record files: one JSON object with its format version and its own checksum.

    {"version":3,"checksum":"<16 hex digits>",...}

The checksum (xxh3, 64 bit) covers all bytes of the file, with zeros in its own place. So every changed
byte is found. The version is checked before everything else, because in another version the other
fields, including the checksum, may mean anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import xxhash

from tidemill.errors import StateError

Reader = Callable[[dict[str, Any]], dict[str, Any]]
"""Makes the fields of a record of an older version into those of the version after it."""

_UNKNOWN = "0" * 16
_NO_READERS: Mapping[int, Reader] = {}
START_AGAIN = (
    "Restore the checkpoint directory from a copy, or start again with a new directory and empty sinks."
)


def encode_record(version: int, fields: dict[str, Any]) -> bytes:
    """The bytes of the record. ``fields`` must be plain JSON."""
    blank = _dumped({"version": version, "checksum": _UNKNOWN, **fields})
    return _with_checksum(blank, version, xxhash.xxh3_64_hexdigest(blank))


def decode_record(
    data: bytes, version: int, what: str, older: Mapping[int, Reader] = _NO_READERS
) -> dict[str, Any]:
    """The fields. StateError if they cannot be trusted; ``what`` names the record, such as "the commit
    record 'x'". ``older``: readers of the versions before, by version."""
    try:
        record = json.loads(data.decode())
    except (ValueError, RecursionError) as e:
        raise damaged(what, str(e)) from e
    if not isinstance(record, dict):
        raise damaged(what, f"it holds a JSON {type(record).__name__}, not an object")
    found = record.pop("version", None)
    if not isinstance(found, int) or isinstance(found, bool):
        raise damaged(what, "it has no format version")
    if found != version and found not in older:
        raise _other_version(what, found, version)
    checksum = record.pop("checksum", None)
    if not isinstance(checksum, str) or len(checksum) != len(_UNKNOWN):
        raise damaged(what, "it has no checksum")
    blank = _with_checksum(data, found, _UNKNOWN)
    if _with_checksum(blank, found, xxhash.xxh3_64_hexdigest(blank)) != data:
        raise damaged(what, "its checksum does not fit its contents")
    fields: dict[str, Any] = record
    while found < version:
        fields, found = older[found](fields), found + 1
    return fields


def damaged(what: str, why: str) -> StateError:
    return StateError(f"{what[0].upper()}{what[1:]} is damaged: {why}", hint=START_AGAIN)


def _other_version(what: str, found: int, version: int) -> StateError:
    newer = "A newer" if found > version else "An older"
    return StateError(
        f"{what[0].upper()}{what[1:]} has format version {found}, this Tidemill reads version {version}",
        hint=f"{newer} Tidemill wrote it: resume with that version, or start with a new directory.",
    )


def _dumped(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def _with_checksum(data: bytes, version: int, checksum: str) -> bytes:
    """``data`` with ``checksum`` in the place of the record's checksum."""
    start = len(f'{{"version":{version},"checksum":"')
    return data[:start] + checksum.encode() + data[start + len(_UNKNOWN) :]
