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
"""Converts the fields of a record of an older version to those of the next version."""

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
    data: bytes, version: int, description: str, older: Mapping[int, Reader] = _NO_READERS
) -> dict[str, Any]:
    """The fields. StateError if they cannot be trusted; ``description`` names the record, such as "the commit
    record 'x'". ``older``: readers of the versions before, by version."""
    try:
        record = json.loads(data.decode())
    except (ValueError, RecursionError) as e:
        raise damaged(description, str(e)) from e
    if not isinstance(record, dict):
        raise damaged(description, f"it holds a JSON {type(record).__name__}, not an object")
    found_version = record.pop("version", None)
    if not isinstance(found_version, int) or isinstance(found_version, bool):
        raise damaged(description, "it has no format version")
    if found_version != version and found_version not in older:
        raise _other_version(description, found_version, version)
    checksum = record.pop("checksum", None)
    if not isinstance(checksum, str) or len(checksum) != len(_UNKNOWN):
        raise damaged(description, "it has no checksum")
    blank = _with_checksum(data, found_version, _UNKNOWN)
    if _with_checksum(blank, found_version, xxhash.xxh3_64_hexdigest(blank)) != data:
        raise damaged(description, "its checksum does not fit its contents")
    fields: dict[str, Any] = record
    while found_version < version:
        fields, found_version = older[found_version](fields), found_version + 1
    return fields


def damaged(description: str, reason: str) -> StateError:
    return StateError(f"{description[0].upper()}{description[1:]} is damaged: {reason}", hint=START_AGAIN)


def _other_version(description: str, found_version: int, version: int) -> StateError:
    newer = "A newer" if found_version > version else "An older"
    return StateError(
        f"{description[0].upper()}{description[1:]} has format version {found_version}, this Tidemill reads"
        f" version {version}",
        hint=f"{newer} Tidemill wrote it: resume with that version, or start with a new directory.",
    )


def _dumped(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def _with_checksum(data: bytes, version: int, checksum: str) -> bytes:
    """``data`` with ``checksum`` in the place of the record's checksum."""
    start = len(f'{{"version":{version},"checksum":"')
    return data[:start] + checksum.encode() + data[start + len(_UNKNOWN) :]
