"""Reads from an ORC file's footer how Spark's reader would read its columns (orc.apache.org/specification).

The footer is decoded here as Protocol Buffers messages, since no available library exposes its types and
statistics. Our decoders read these columns: times (Spark converts them between zones), CHAR and VARCHAR,
nested columns, and days before 1582 (Spark reads them in the old calendar, where two days may be one of the
new). They also read files without column names, encrypted files, and files with codecs that this module
lacks.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from tidemill.connectors.formats.native import StoredColumns, StoredType

_TAIL = 1 << 14
"""Bytes that are read first from the end of a file."""
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
"""1582-10-15 in days since 1970: both calendars agree from then on."""
_POSITIONAL = "_col"
"""If all columns of a file begin with this, the file does not have the table's names."""

Message = Mapping[int, list[int | bytes]]
"""A Protocol Buffers message: the values of each field; numbers are not decoded further."""


def stored_columns(file: pa.NativeFile) -> StoredColumns | None:
    """Stored types by column name; None if Spark cannot read the file as a whole exactly, or this module
    cannot decode its footer."""
    try:
        footer = _footer(file)
        return None if footer is None else _columns(footer)
    except (ValueError, zlib.error, pa.ArrowException):
        return None  # our decoders report the damage


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
    """Unpacked chunks. Three bytes before each give its length, and whether it is stored uncompressed."""
    offset = 0
    while offset + 3 <= len(packed):
        header = int.from_bytes(packed[offset : offset + 3], "little")
        chunk = packed[offset + 3 : offset + 3 + (header >> 1)]
        yield chunk if header & 1 else unpack(chunk)
        offset += 3 + (header >> 1)


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
    statistics = [message(x) for x in footer.get(7, []) if isinstance(x, bytes)]
    if not types or _number(types[0], 1) != _STRUCT or 10 in footer:
        return None
    names = [x.decode() for x in types[0].get(3, []) if isinstance(x, bytes)]
    children = list(_numbers(types[0], 2))
    ambiguous = len(set(names)) != len(names) or any("." in name or "`" in name for name in names)
    if ambiguous or all(name.startswith(_POSITIONAL) for name in names) or len(children) != len(names):
        return None
    return {
        name: _column(types[i], statistics[i] if i < len(statistics) else {})
        for name, i in zip(names, children, strict=True)
    }


def _column(kind: Message, statistics: Message) -> StoredType | None:
    number = _number(kind, 1)
    if number == _DATE:
        return StoredType("DATE") if _is_new(statistics) else None
    if number == _DECIMAL:
        precision, scale = _number(kind, 5), _number(kind, 6)
        return StoredType(f"DECIMAL({precision},{scale})") if precision else None
    return StoredType(_PLAIN[number]) if number in _PLAIN else None


def _is_new(statistics: Message) -> bool:
    """Whether, by the column's statistics, all days are in the new calendar."""
    days = message(_bytes(statistics, 7))
    if 1 not in days:
        return 1 in statistics and _number(statistics, 1) == 0
    smallest = _number(days, 1)
    return (smallest >> 1) ^ -(smallest & 1) >= _NEW_CALENDAR


def message(data: bytes) -> Message:
    """Decodes a message. ValueError if ``data`` is none."""
    fields: dict[int, list[int | bytes]] = {}
    offset = 0
    while offset < len(data):
        tag, offset = _varint(data, offset)
        value: int | bytes
        match tag & 7:
            case 0:
                value, offset = _varint(data, offset)
            case 1:
                value, offset = data[offset : offset + 8], offset + 8
            case 2:
                length, offset = _varint(data, offset)
                value, offset = data[offset : offset + length], offset + length
            case 5:
                value, offset = data[offset : offset + 4], offset + 4
            case _:
                raise ValueError("not a message")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while offset < len(data):
        byte = data[offset]
        value |= (byte & 127) << shift
        shift, offset = shift + 7, offset + 1
        if byte < 128:
            return value, offset
    raise ValueError("not a message")


def _number(decoded: Message, field: int) -> int:
    """The last value of a numeric field; 0, the format's default, if it is missing."""
    value = decoded.get(field, [0])[-1]
    return value if isinstance(value, int) else 0


def _bytes(decoded: Message, field: int) -> bytes:
    value = decoded.get(field, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _numbers(decoded: Message, field: int) -> Iterator[int]:
    """The values of a repeated numeric field, packed or not."""
    for value in decoded.get(field, []):
        if isinstance(value, int):
            yield value
            continue
        offset = 0
        while offset < len(value):
            number, offset = _varint(value, offset)
            yield number
