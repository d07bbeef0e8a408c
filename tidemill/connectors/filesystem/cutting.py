"""Finds record boundaries in text files, for cutting epochs and splits.

A cut lies right after a newline that ends a record, so that every byte belongs to one range and
every record is whole. With quotes a newline counts only outside of them. If the quotes are plain
the search is vectorised; otherwise it walks over the quotes. Cost: one pass over the range, at some
GB/s without quotes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemill.connectors.formats.quotes import Bytes, Positions, alternates, quotes_are_plain

_BLOCK = 8 << 20
_CACHED = 256 << 10
_LEAST = 32 << 10
_ROW = 64
"""Bytes that a record is taken to have, to read no more than a few records need (but ``_LEAST``)."""
_LF = 10
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutter:
    """``quote`` '' means that every newline ends a record. ``escape`` '' is none."""

    quote: str = ""
    delimiter: str = ","
    escape: str = ""

    def cut(
        self, file: pa.NativeFile, start: int, size: int, *, rows: int | None, length: int | None
    ) -> tuple[int, int]:
        """(end, records) of a range from ``start`` (a record's start) in a file of ``size`` bytes: at
        most ``rows`` records, and the first record boundary at or after ``start + length``."""
        target = size if length is None else min(size, start + max(length, 1))
        if rows is None and (target >= size or not self.has_quotes(file, start, target)):
            return self.next_newline(file, target, size), -1
        return self._scan(file, start, size, rows, target)

    def border(self, file: pa.NativeFile, offset: int, size: int) -> int:
        """The first offset at or after ``near`` that does not follow a quote or an escape. There, whether the
        offset is inside quotes decides how the text behind it reads."""
        ambiguous = (self.quote + self.escape).encode()
        while offset < size and bytes(_read(file, offset - 1, 1)) in ambiguous:
            offset += 1
        return min(offset, size)

    def passage(self, data: Bytes, begin: int, *, inside: bool, may_walk: bool) -> tuple[bool, int] | None:
        """Reads a piece of text between two borders, from ``begin`` on, as if it began ``inside`` quotes.
        Returns whether it also ends inside quotes, and its first record end (-1: none). If the quotes are not
        plain, it walks over them with ``may_walk``, and returns None without."""
        quotes = np.flatnonzero(data == ord(self.quote))
        newlines = np.flatnonzero(data[begin:] == _LF) + begin
        marks = np.concatenate(([-1], quotes)) if inside else quotes
        if not self.escape and alternates(data, marks[0::2], marks[1::2], self.delimiter):
            ends = newlines[np.searchsorted(marks, newlines) % 2 == 0]
            return len(marks) % 2 == 1, int(ends[0]) + 1 if len(ends) else -1
        if not may_walk:
            return None
        opening, closing = self._walk(data, quotes, inside=inside)
        ends = newlines[~_within(newlines, opening, closing)]
        open_at_end = bool(len(closing) and closing[-1] == len(data))
        return open_at_end, int(ends[0]) + 1 if len(ends) else -1

    def has_quotes(self, file: pa.NativeFile, start: int, end: int) -> bool:
        """Whether the range holds a quote. Reads blocks that fit a processor's cache, up to the first
        quote."""
        if not self.quote:
            return False
        quote = self.quote.encode()
        for block_start in range(start, end, _CACHED):
            file.seek(block_start)
            if quote in file.read(min(_CACHED, end - block_start)):
                return True
        return False

    def next_newline(self, file: pa.NativeFile, target: int, size: int) -> int:
        """The first record end at or after ``target``, if no quote is open there."""
        if target >= size:
            return size
        offset, block = target - 1, 1 << 16
        while offset < size:
            chunk = bytes(_read(file, offset, min(block, size - offset)))
            newline = chunk.find(b"\n")
            if self.quote and chunk.find(self.quote.encode(), 0, newline if newline >= 0 else None) >= 0:
                return self._after_quotes(file, target, size)
            if newline >= 0:
                return offset + newline + 1
            offset += len(chunk)
            block *= 2
        return size

    def _after_quotes(self, file: pa.NativeFile, target: int, size: int) -> int:
        """The record around ``target`` holds a quote: scans again from the start of its line."""
        offset = target
        while offset > 0:
            step = min(offset, 1 << 16)
            newline = bytes(_read(file, offset - step, step)).rfind(b"\n")
            offset = offset - step + newline + 1
            if newline >= 0:
                break
        return self._scan(file, offset, size, None, target)[0]

    def _scan(
        self, file: pa.NativeFile, start: int, size: int, rows: int | None, target: int
    ) -> tuple[int, int]:
        offset, count = start or self.mark(file), 0
        block = _BLOCK if rows is None else min(_BLOCK, max(_LEAST, rows * _ROW))
        while offset < size and offset < target and (rows is None or count < rows):
            data = np.frombuffer(_read(file, offset, min(block, size - offset)), dtype=np.uint8)
            ends = self._record_ends(data, last=offset + len(data) >= size)
            if not len(ends):
                block *= 2
                continue
            take = int(np.searchsorted(ends, target - offset)) + 1
            take = min(take, len(ends), len(ends) if rows is None else rows - count)
            count += take
            offset += int(ends[take - 1])
            block = min(2 * block, max(block, _BLOCK))
        return offset, count

    def mark(self, file: pa.NativeFile) -> int:
        """Bytes of a byte order mark at the start of the file: a quote behind it opens a field."""
        return len(_BOM) if bytes(_read(file, 0, len(_BOM))) == _BOM else 0

    def _record_ends(self, data: Bytes, *, last: bool) -> npt.NDArray[np.int64]:
        """Offsets right after each whole record in ``data``; the end of the file ends the last one."""
        newlines = np.flatnonzero(data == _LF)
        if self.quote:
            newlines = newlines[~self._inside_quotes(data, newlines, last=last)]
        ends = newlines.astype(np.int64) + 1
        if last and len(data) and (not len(ends) or ends[-1] < len(data)):
            ends = np.append(ends, len(data))
        return ends

    def _inside_quotes(self, data: Bytes, positions: Positions, *, last: bool) -> npt.NDArray[np.bool_]:
        quotes = np.flatnonzero(data == ord(self.quote))
        if not len(quotes):
            return np.zeros(len(positions), dtype=bool)
        if not self.escape and quotes_are_plain(data, quotes, self.delimiter):
            is_inside: npt.NDArray[np.bool_] = np.searchsorted(quotes, positions) % 2 == 1
            return is_inside
        return _within(positions, *self._walk(data, quotes))

    def _walk(
        self, data: Bytes, quotes: Positions, *, inside: bool = False
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Offsets where quoted fields open and close, quote by quote. An unclosed field closes at the end."""
        starts = {_LF, 13, ord(self.delimiter[-1])}
        opening: list[int] = [-1] if inside else []
        closing: list[int] = []
        skip = -1
        for position in quotes.tolist():
            if position == skip or self._escaped(data, position):
                continue
            if not inside:
                if position == 0 or int(data[position - 1]) in starts:
                    inside = True
                    opening.append(position)
            elif position + 1 < len(data) and data[position + 1] == data[position]:
                skip = position + 1
            else:
                inside = False
                closing.append(position)
        if inside:
            closing.append(len(data))
        return np.asarray(opening, dtype=np.int64), np.asarray(closing, dtype=np.int64)

    def _escaped(self, data: Bytes, position: int) -> bool:
        if not self.escape:
            return False
        first_escape = position
        while first_escape > 0 and data[first_escape - 1] == ord(self.escape):
            first_escape -= 1
        return (position - first_escape) % 2 == 1


def _within(
    positions: Positions, opening: npt.NDArray[np.int64], closing: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Which positions lie in a quoted field."""
    if not len(opening):
        return np.zeros(len(positions), dtype=bool)
    field = np.searchsorted(opening, positions) - 1
    is_within: npt.NDArray[np.bool_] = (field >= 0) & (positions < closing[np.maximum(field, 0)])
    return is_within


def _read(file: pa.NativeFile, offset: int, length: int) -> pa.Buffer:
    file.seek(offset)
    return file.read_buffer(length)
