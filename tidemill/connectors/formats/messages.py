"""Decodes a queue's messages with a decoder of lines.

All messages of a batch become the lines of one block, so that vectorised decoders get large blocks instead of
one message at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.connectors.formats.api import (
    LINE_COLUMN,
    Block,
    DecodedMessages,
    Decoder,
    Indexes,
    RecordError,
)

_JSON_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def json_line(message: bytes) -> bytes:
    """A JSON message as one line: a newline between values becomes a blank, within a text it is escaped."""
    inside = _JSON_TEXT.sub(lambda m: m[0].replace(b"\n", b"\\n").replace(b"\r", b"\\r"), message)
    return inside.replace(b"\n", b" ").replace(b"\r", b" ")


@dataclass(frozen=True, slots=True, kw_only=True)
class LineMessages:
    """``decoder`` returns ``$line``, or at most one row per line. ``one_line`` turns a message into a line;
    if it is None, messages with newlines are decoded one by one. ``first``: only the first record of a
    message counts. Messages without bytes give no rows."""

    decoder: Decoder
    one_line: Callable[[bytes], bytes] | None = None
    first: bool = False

    def decode(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        numbers = np.array([i for i, message in enumerate(messages) if message], dtype=np.int64)
        lines = [message for message in messages if message]
        decoded = self._together(lines, numbers)
        return self._each(lines, numbers) if decoded is None else decoded

    def _together(self, lines: list[bytes], numbers: Indexes) -> DecodedMessages | None:
        """Decodes all lines as one block; None if the messages of the rows are then unknown."""
        joined = b"\n".join(lines)
        if joined.count(b"\n") + joined.count(b"\r") != max(len(lines) - 1, 0):
            if self.one_line is None:
                return None
            lines = [self.one_line(line) for line in lines]
            joined = b"\n".join(lines)
        try:
            table = self.decoder.decode(_block(joined))
        except RecordError as e:
            if self.one_line is None:
                return None
            raise self._first_error(e, lines, numbers) from None
        if LINE_COLUMN in table.column_names:
            rows = np.asarray(table.column(LINE_COLUMN).combine_chunks())
            return DecodedMessages(table=table.drop_columns([LINE_COLUMN]), messages=numbers[rows])
        if table.num_rows == len(lines):
            return DecodedMessages(table=table, messages=numbers)
        return None

    def _each(self, lines: list[bytes], numbers: Indexes) -> DecodedMessages:
        tables, counts = [self.decoder.decode(_block(b""))], []
        for line, number in zip(lines, numbers.tolist(), strict=True):
            try:
                table = self.decoder.decode(_block(line))
            except RecordError as e:
                raise _numbered(e, number) from None
            tables.append(table.slice(0, 1) if self.first else table)
            counts.append(tables[-1].num_rows)
        return DecodedMessages(table=pa.concat_tables(tables), messages=np.repeat(numbers, counts))

    def _first_error(self, error: RecordError, lines: list[bytes], numbers: Indexes) -> RecordError:
        """The error of the first bad message: a decoder reads column by column, and may meet a later one
        first."""
        while error.line > 0:
            try:
                self.decoder.decode(_block(b"\n".join(lines[: error.line])))
                break
            except RecordError as earlier:
                error = earlier
        return _numbered(error, int(numbers[error.line]) if error.line >= 0 else -1)


def _numbered(error: RecordError, message: int) -> RecordError:
    return RecordError(error.reason, line=message, field=error.field, record=error.record, hint=error.hint)


def _block(data: bytes) -> Block:
    # Decoders skip a byte order mark only in a block that begins at 0; a message has none.
    return Block(data=pa.py_buffer(data), start=1, end=1 + len(data))
