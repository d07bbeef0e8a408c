"""Deletion vectors: which rows of a data file are not in the table any more, as Delta's protocol stores them.

A vector is a set of row numbers, counted from 0 in the order of the file. It lies in a file of vectors, or in
the log itself. A file of vectors has a version byte, and for each vector its length, the set and a checksum.
The set is a magic number and a 64-bit Roaring bitmap in its portable form. All vectors that one task makes
are in one file.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from tidemill.connectors.lakehouse.files import RowNumbers
from tidemill.errors import ConnectorError, NotSupportedError
from tidemill.files.storage import Storage

FEATURE = "deletionVectors"
PROPERTY = "delta.enableDeletionVectors"
_RELATIVE, _ABSOLUTE, _INLINE = "u", "p", "i"
_UUID_LETTERS = 20
_VERSION = b"\1"
_MAGIC = struct.pack("<I", 1681511377)
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """``kind`` and ``text`` say where it is, as the log does (``storageType``, ``pathOrInlineDv``); ``size``:
    bytes of the set; ``rows``: how many are in it; ``path``: of its file below the table's root, '' if it
    is in the log."""

    kind: str
    text: str
    offset: int | None
    size: int
    rows: int
    path: str

    @classmethod
    def logged(cls, storage: Storage, found: Mapping[str, Any]) -> Vector:
        """As an action names it. NotSupportedError for a file outside of the table, or an unknown kind."""
        kind, text = str(found["storageType"]), str(found["pathOrInlineDv"])
        offset = found.get("offset")
        return cls(
            kind=kind,
            text=text,
            offset=None if offset is None else int(offset),
            size=int(found["sizeInBytes"]),
            rows=int(found["cardinality"]),
            path=_path(storage, kind, text),
        )

    @property
    def name(self) -> str:
        place = "" if self.offset is None else f"@{self.offset}"
        return f"{self.kind}{self.text}{place}"

    def action(self) -> dict[str, Any]:
        """As an action of the log names it."""
        place = {} if self.offset is None else {"offset": self.offset}
        return {
            "storageType": self.kind,
            "pathOrInlineDv": self.text,
            **place,
            "sizeInBytes": self.size,
            "cardinality": self.rows,
        }

    def numbers(self, storage: Storage) -> RowNumbers:
        """ConnectorError where the vector is gone or damaged."""
        try:
            data = self._stored(storage) if self.path else _from_z85(self.text)[: self.size]
            if data[:4] != _MAGIC:
                raise ValueError("it has another format")
            found = np.array(BitMap64.deserialize(data[4:]).to_array(), np.int64)
            if len(found) != self.rows:
                raise ValueError(f"it has {len(found)} rows, but the log says {self.rows}")
        except (OSError, ValueError, struct.error) as e:
            where = storage.full_path(self.path) if self.path else "in the log"
            raise ConnectorError(f"The deletion vector {where} cannot be read: {e}") from None
        return found

    def _stored(self, storage: Storage) -> bytes:
        with storage.open(self.path) as file:
            if file.read(1) != _VERSION:
                raise ValueError("its file has another version than 1")
            file.seek(self.offset or 0)
            (size,) = struct.unpack(">I", file.read(4))
            data: bytes = file.read(self.size)
            (checksum,) = struct.unpack(">I", file.read(4))
        if size != self.size or checksum != zlib.crc32(data):
            raise ValueError("it is damaged")
        return data


@dataclass(frozen=True, slots=True)
class VectorFile:
    """Writes vectors of a table."""

    def write(self, storage: Storage, sets: Sequence[RowNumbers]) -> list[dict[str, Any]]:
        """What actions of the log say of each of the sets of ascending numbers, in one new file."""
        named = uuid.uuid4()
        text = _to_z85(named.bytes)
        body, made = bytearray(_VERSION), []
        for numbers in sets:
            bitmap = BitMap64(array("Q", numbers.astype(np.uint64).tobytes()))
            bitmap.run_optimize()
            data = _MAGIC + bitmap.serialize()
            vector = Vector(
                kind=_RELATIVE,
                text=text,
                offset=len(body),
                size=len(data),
                rows=len(numbers),
                path=_file(named),
            )
            body += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
            made.append(vector.action())

        def fill(stream: pa.NativeFile) -> None:
            stream.write(bytes(body))

        storage.publish(_file(named), fill)
        return made


def _path(storage: Storage, kind: str, text: str) -> str:
    if kind == _INLINE:
        return ""
    if kind == _RELATIVE:
        prefix, letters = text[:-_UUID_LETTERS], text[-_UUID_LETTERS:]
        name = _file(uuid.UUID(bytes=_from_z85(letters)))
        below = f"{prefix}/{name}" if prefix else name
    elif kind == _ABSOLUTE:
        plain = unquote(text)
        path = plain.removeprefix("file://") if storage.is_local else plain
        root = f"{storage.full_path('').rstrip('/')}/"
        below = path.removeprefix(root) if path.startswith(root) else path
    else:
        raise NotSupportedError(f"A deletion vector of the storage type '{kind}'")
    if below.startswith("/") or "://" in below or ".." in below.split("/"):
        raise NotSupportedError(f"A deletion vector outside of its table's directory ({below})")
    return below


def _file(named: uuid.UUID) -> str:
    return f"deletion_vector_{named}.bin"


def _to_z85(data: bytes) -> str:
    return base64.b85encode(data).translate(bytes.maketrans(_B85, _Z85)).decode()


def _from_z85(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(bytes.maketrans(_Z85, _B85)))
