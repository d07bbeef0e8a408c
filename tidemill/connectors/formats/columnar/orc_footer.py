"""What an ORC file's columns are for Spark's reader, from its footer (orc.apache.org/specification).

The footer is read as the messages that it is, since no library at hand tells of its types and statistics.
Left to our decoders are times (Spark's go through zones), CHAR and VARCHAR, nested columns, days before 1582
(Spark takes them for the old calendar's, and two of those may be one of the new), what names no columns, and
what is encrypted or packed in a way that is not unpacked here.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from tidemill.connectors.formats.native import StoredColumns, StoredType

_TAIL = 1 << 14
"""So much of a file's end is read at once."""
_STRUCT, _DECIMAL, _DATE = 12, 14, 15
_PLAIN = {
    0: "BOOLEAN",
    1: "TINYINT",
    2: "SMALLINT",
    3: "INT",
    4: "BIGINT",
    5: "FLOAT",
    6: "DOUBLE",
    7: "STRING",
    8: "BINARY",
}
_NEW_CALENDAR = -141427
"""1582-10-15 in days: both calendars are one from then on."""
_POSITIONAL = "_col"
"""A file whose columns all begin with it has none of the table's names."""

Message = Mapping[int, list[int | bytes]]
"""A message of protocol buffers: by field its values, numbers as they stand."""


def stored_columns(file: pa.NativeFile) -> StoredColumns | None:
    """By name; None for a file that Spark's reader would read otherwise as a whole, or that is not understood
    here."""
    try:
        found = _footer(file)
        return None if found is None else _columns(found)
    except (ValueError, zlib.error, pa.ArrowException):
        return None  # what is damaged our decoders say


def _footer(file: pa.NativeFile) -> Message | None:
    size = file.size()
    tail = _read(file, size, _TAIL)
    if not tail or len(tail) <= tail[-1]:
        return None
    postscript = message(tail[-1 - tail[-1] : -1])
    length, codec = _number(postscript, 1), _number(postscript, 2)
    unpack = _UNPACKED.get(codec)
    if unpack is None or bytes(_bytes(postscript, 8000)) != b"ORC":
        return None
    end = 1 + tail[-1]
    packed = _read(file, size, length + end)[: -end or None][:length]
    return message(packed if codec == 0 else b"".join(_chunks(packed, unpack)))


def _read(file: pa.NativeFile, size: int, length: int) -> bytes:
    file.seek(max(size - length, 0))
    return bytes(file.read(min(length, size)))


def _chunks(packed: bytes, unpack: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Three bytes say how long each is, and whether it is as it was."""
    at = 0
    while at + 3 <= len(packed):
        header = int.from_bytes(packed[at : at + 3], "little")
        chunk = packed[at + 3 : at + 3 + (header >> 1)]
        yield chunk if header & 1 else unpack(chunk)
        at += 3 + (header >> 1)


def _zlib(packed: bytes) -> bytes:
    return zlib.decompress(packed, -zlib.MAX_WBITS)


def _snappy(packed: bytes) -> bytes:
    """A block begins with its length."""
    length, _ = _varint(packed, 0)
    return bytes(pa.decompress(packed, decompressed_size=length, codec="snappy", asbytes=True))


def _zstd(packed: bytes) -> bytes:
    return bytes(pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read())


_UNPACKED: dict[int, Callable[[bytes], bytes]] = {0: bytes, 1: _zlib, 2: _snappy, 5: _zstd}


def _columns(footer: Message) -> StoredColumns | None:
    types = [message(x) for x in footer.get(4, []) if isinstance(x, bytes)]
    counted = [message(x) for x in footer.get(7, []) if isinstance(x, bytes)]
    if not types or _number(types[0], 1) != _STRUCT or 10 in footer:
        return None
    names = [x.decode() for x in types[0].get(3, []) if isinstance(x, bytes)]
    children = list(_numbers(types[0], 2))
    odd = len(set(names)) != len(names) or any("." in name or "`" in name for name in names)
    if odd or all(name.startswith(_POSITIONAL) for name in names) or len(children) != len(names):
        return None
    return {
        name: _column(types[i], counted[i] if i < len(counted) else {})
        for name, i in zip(names, children, strict=True)
    }


def _column(kind: Message, counted: Message) -> StoredType | None:
    number = _number(kind, 1)
    if number == _DATE:
        return StoredType("DATE") if _is_new(counted) else None
    if number == _DECIMAL:
        precision, scale = _number(kind, 5), _number(kind, 6)
        return StoredType(f"DECIMAL({precision},{scale})") if precision else None
    return StoredType(_PLAIN[number]) if number in _PLAIN else None


def _is_new(counted: Message) -> bool:
    """Whether all days are of the new calendar by the column's statistics."""
    days = message(_bytes(counted, 7))
    if 1 not in days:
        return 1 in counted and _number(counted, 1) == 0
    smallest = _number(days, 1)
    return (smallest >> 1) ^ -(smallest & 1) >= _NEW_CALENDAR


def message(data: bytes) -> Message:
    """ValueError where it is none."""
    found: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value: int | bytes
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
            case 1:
                value, at = data[at : at + 8], at + 8
            case 2:
                length, at = _varint(data, at)
                value, at = data[at : at + length], at + length
            case 5:
                value, at = data[at : at + 4], at + 4
            case _:
                raise ValueError("not a message")
        found.setdefault(tag >> 3, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return value, at
    raise ValueError("not a message")


def _number(found: Message, field: int) -> int:
    """0 where it is left out, as the format has it."""
    value = found.get(field, [0])[-1]
    return value if isinstance(value, int) else 0


def _bytes(found: Message, field: int) -> bytes:
    value = found.get(field, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _numbers(found: Message, field: int) -> Iterator[int]:
    """Of a field that repeats, packed or not."""
    for value in found.get(field, []):
        if isinstance(value, int):
            yield value
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            yield number
