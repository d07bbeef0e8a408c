"""Avro object container files: a header with the schema, then blocks of records.

Each block begins with its numbers of records and bytes, and ends with the file's sync marker. A reader thus
skips blocks without decoding them. Cost: two small reads per block to count rows.
"""

from __future__ import annotations

import bz2
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

_MAGIC = b"Obj\x01"
_SYNC = 16
_SCHEMA, _CODEC = "avro.schema", "avro.codec"
_LONGEST = 10
"""Bytes of a number."""


@dataclass(frozen=True, slots=True)
class Header:
    schema: str
    codec: str
    sync: bytes


@dataclass(frozen=True, slots=True)
class FileBlock:
    """``rows`` records in ``size`` bytes at ``offset``."""

    rows: int
    offset: int
    size: int


def read_header(file: pa.NativeFile) -> Header:
    """Leaves ``file`` at its first block. ArrowInvalid if it is no Avro file."""
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        raise pa.ArrowInvalid("Not an Avro data file")
    metadata: dict[str, bytes] = {}
    while count := _number(file):
        if count < 0:
            _number(file)  # how many bytes the entries take
        for _ in range(abs(count)):
            key = _exactly(file, _number(file)).decode()
            metadata[key] = _exactly(file, _number(file))
    codec = metadata.get(_CODEC, b"null").decode()
    if _SCHEMA not in metadata:
        raise pa.ArrowInvalid("Not an Avro data file: it has no schema")
    if codec not in CODECS:
        raise pa.ArrowInvalid(f"Avro's codec '{codec}' is not known; known are {', '.join(CODECS)}")
    return Header(metadata[_SCHEMA].decode(), codec, _exactly(file, _SYNC))


def blocks(file: pa.NativeFile, header: Header) -> Iterator[FileBlock]:
    """The blocks of a file that stands at its first block. ArrowInvalid if the file is cut off or damaged."""
    end = file.size()
    at = file.tell()
    while at < end:
        file.seek(at)
        rows, size = _number(file), _number(file)
        offset = file.tell()
        if rows < 0 or size < 0 or offset + size + _SYNC > end:
            raise pa.ArrowInvalid(f"Invalid or cut off Avro block at byte {at}")
        file.seek(offset + size)
        if file.read(_SYNC) != header.sync:
            raise pa.ArrowInvalid(f"Invalid sync at the end of the Avro block at byte {at}")
        yield FileBlock(rows, offset, size)
        at = offset + size + _SYNC


def records(file: pa.NativeFile, header: Header, block: FileBlock) -> bytes:
    """The decompressed bytes of a block's records. ArrowInvalid if they do not decompress."""
    file.seek(block.offset)
    try:
        return CODECS[header.codec].unpack(_exactly(file, block.size))
    except (zlib.error, OSError, EOFError, ValueError, lzma.LZMAError, IndexError) as e:
        raise pa.ArrowInvalid(f"Damaged Avro block at byte {block.offset}: {e}") from None


def written_header(schema: str, codec: str) -> tuple[bytes, Header]:
    """The first bytes of a new file and their header, which has a random sync marker."""
    header = Header(schema, codec, os.urandom(_SYNC))
    entries = {_SCHEMA: schema.encode(), _CODEC: codec.encode()}
    pairs = b"".join(_sized(key.encode()) + _sized(value) for key, value in entries.items())
    return _MAGIC + written_number(len(entries)) + pairs + written_number(0) + header.sync, header


def written_block(header: Header, rows: int, data: bytes) -> bytes:
    return written_number(rows) + _sized(CODECS[header.codec].pack(data)) + header.sync


def written_number(value: int) -> bytes:
    """Avro's long: zigzag, seven bits a byte. Example: -1 is ``01``, 64 is ``80 01``."""
    remaining = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while remaining > 0x7F:
        encoded.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    encoded.append(remaining)
    return bytes(encoded)


def _sized(data: bytes) -> bytes:
    return written_number(len(data)) + data


def _number(file: pa.NativeFile) -> int:
    value = 0
    for index in range(_LONGEST):
        (byte,) = _exactly(file, 1)
        value |= (byte & 0x7F) << (7 * index)
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1)
    raise pa.ArrowInvalid("A number of an Avro file is longer than 10 bytes")


def _exactly(file: pa.NativeFile, size: int) -> bytes:
    data: bytes = file.read(size) if 0 <= size <= file.size() else b""
    if len(data) != size:
        raise pa.ArrowInvalid("The Avro file is cut off")
    return data


@dataclass(frozen=True, slots=True)
class Codec:
    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes], bytes]


def _snappy(data: bytes) -> bytes:
    """Compresses with snappy, and appends the checksum of the data."""
    packed: bytes = pa.compress(data, codec="snappy", asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")


def _unsnappy(data: bytes) -> bytes:
    size = at = 0
    while True:  # snappy's own length comes first
        size |= (data[at] & 0x7F) << (7 * at)
        if not data[at] & 0x80:
            break
        at += 1
    unpacked: bytes = pa.decompress(data[:-4], decompressed_size=size, codec="snappy", asbytes=True)
    if zlib.crc32(unpacked) != int.from_bytes(data[-4:], "big"):
        raise ValueError("its checksum is wrong")
    return unpacked


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def _zstandard(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


def _unzstandard(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        unpacked: bytes = stream.read()
    return unpacked


CODECS = {
    "null": Codec(bytes, bytes),
    "deflate": Codec(_deflate, lambda data: zlib.decompress(data, wbits=-15)),
    "snappy": Codec(_snappy, _unsnappy),
    "bzip2": Codec(bz2.compress, bz2.decompress),
    "xz": Codec(lzma.compress, lzma.decompress),
    "zstandard": Codec(_zstandard, _unzstandard),
}
"""By Avro's names."""
