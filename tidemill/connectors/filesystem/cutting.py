"""Finds record boundaries in text files, for cutting epochs and splits.

A cut lies right after a newline that ends a record, so that every byte belongs to one range and
every record is whole. With quotes a newline counts only outside of them; where the quotes are plain
this is vectorised, else it walks over the quotes. Cost: one pass over the bytes in question, at
some GB/s without quotes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemill.connectors.formats.quotes import Bytes, Positions, alternates, quotes_are_plain

_BLOCK = 8 << 20
_CACHED = 256 << 10
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
        goal = size if length is None else min(size, start + max(length, 1))
        if rows is None and (goal >= size or not self.has_quotes(file, start, goal)):
            return self.next_newline(file, goal, size), -1
        return self._scan(file, start, size, rows, goal)

    def border(self, file: pa.NativeFile, near: int, size: int) -> int:
        """The first place at or after ``near`` where it is enough to know whether it is inside of quotes:
        behind neither a quote, which may be one of a pair, nor an escape."""
        unclear = (self.quote + self.escape).encode()
        while near < size and bytes(_read(file, near - 1, 1)) in unclear:
            near += 1
        return min(near, size)

    def passage(self, data: Bytes, begin: int, *, inside: bool, walks: bool) -> tuple[bool, int] | None:
        """What a piece of text between two borders, from ``begin`` on, holds if that is ``inside`` of quotes:
        whether its end is, and the first record end (-1: none). Without ``walks`` None if its quotes are not
        plain then."""
        quotes = np.flatnonzero(data == ord(self.quote))
        newlines = np.flatnonzero(data[begin:] == _LF) + begin
        marks = np.concatenate(([-1], quotes)) if inside else quotes
        if not self.escape and alternates(data, marks[0::2], marks[1::2], self.delimiter):
            ends = newlines[np.searchsorted(marks, newlines) % 2 == 0]
            return len(marks) % 2 == 1, int(ends[0]) + 1 if len(ends) else -1
        if not walks:
            return None
        opening, closing = self._walk(data, quotes, inside=inside)
        ends = newlines[~_within(newlines, opening, closing)]
        open_at_end = bool(len(closing) and closing[-1] == len(data))
        return open_at_end, int(ends[0]) + 1 if len(ends) else -1

    def has_quotes(self, file: pa.NativeFile, start: int, end: int) -> bool:
        """Looked for at the speed of memory, up to the first: in blocks that stay in a processor's cache."""
        if not self.quote:
            return False
        quote = self.quote.encode()
        for at in range(start, end, _CACHED):
            file.seek(at)
            if quote in file.read(min(_CACHED, end - at)):
                return True
        return False

    def next_newline(self, file: pa.NativeFile, goal: int, size: int) -> int:
        """The first record end at or after ``goal``, no quote being open there."""
        if goal >= size:
            return size
        at, block = goal - 1, 1 << 16
        while at < size:
            chunk = bytes(_read(file, at, min(block, size - at)))
            found = chunk.find(b"\n")
            if self.quote and chunk.find(self.quote.encode(), 0, found if found >= 0 else None) >= 0:
                return self._after_quotes(file, goal, size)
            if found >= 0:
                return at + found + 1
            at += len(chunk)
            block *= 2
        return size

    def _after_quotes(self, file: pa.NativeFile, goal: int, size: int) -> int:
        """The record around ``goal`` holds a quote: starts over at that record's start."""
        at = goal
        while at > 0:
            step = min(at, 1 << 16)
            found = bytes(_read(file, at - step, step)).rfind(b"\n")
            at = at - step + found + 1
            if found >= 0:
                break
        return self._scan(file, at, size, None, goal)[0]

    def _scan(
        self, file: pa.NativeFile, start: int, size: int, rows: int | None, goal: int
    ) -> tuple[int, int]:
        at, count, block = start or self.mark(file), 0, _BLOCK
        while at < size and at < goal and (rows is None or count < rows):
            data = np.frombuffer(_read(file, at, min(block, size - at)), dtype=np.uint8)
            ends = self._record_ends(data, last=at + len(data) >= size)
            if not len(ends):
                block *= 2
                continue
            take = int(np.searchsorted(ends, goal - at)) + 1
            take = min(take, len(ends), len(ends) if rows is None else rows - count)
            count += take
            at += int(ends[take - 1])
        return at, count

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

    def _inside_quotes(self, data: Bytes, at: Positions, *, last: bool) -> npt.NDArray[np.bool_]:
        quotes = np.flatnonzero(data == ord(self.quote))
        if not len(quotes):
            return np.zeros(len(at), dtype=bool)
        if not self.escape and quotes_are_plain(data, quotes, self.delimiter):
            odd: npt.NDArray[np.bool_] = np.searchsorted(quotes, at) % 2 == 1
            return odd
        return _within(at, *self._walk(data, quotes))

    def _walk(
        self, data: Bytes, quotes: Positions, *, inside: bool = False
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where quoted fields open and close, quote by quote; one that never closes goes to the end."""
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
        run = position
        while run > 0 and data[run - 1] == ord(self.escape):
            run -= 1
        return (position - run) % 2 == 1


def _within(
    at: Positions, opening: npt.NDArray[np.int64], closing: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Which places lie in one of the quoted fields."""
    if not len(opening):
        return np.zeros(len(at), dtype=bool)
    place = np.searchsorted(opening, at) - 1
    within: npt.NDArray[np.bool_] = (place >= 0) & (at < closing[np.maximum(place, 0)])
    return within


def _read(file: pa.NativeFile, at: int, length: int) -> pa.Buffer:
    file.seek(at)
    return file.read_buffer(length)
