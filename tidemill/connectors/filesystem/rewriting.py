"""Checks that writing a file anew keeps the rows of it that no DELETE or UPDATE changes.

A table may show less than its files have: a field that it does not declare, digits that its types do not
keep, a comment, a record that it skips. A file is written anew only if the rows that the table reads from it,
written again, give the same file: the same text (in JSON the same values), the same Parquet columns.
Cost: each file that has rows to change is decoded and encoded once more, by the driver.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.filesystem.listing import FirstListing
from tidemill.connectors.filesystem.reading import UNREADABLE
from tidemill.connectors.filesystem.source import FileSource
from tidemill.connectors.filesystem.taken_log import TakenLog
from tidemill.connectors.formats.api import Encoder, Format
from tidemill.connectors.worker_errors import WorkerError, find_error
from tidemill.errors import ConnectorError, NotSupportedError

_JSON = "json"
_PARQUET = "parquet"
_FORMATS = ("csv", _JSON, _PARQUET, "raw")


def check_format(file_format: Format, statement: str) -> None:
    """NotSupportedError unless files of the format can be compared."""
    if file_format.identifier not in _FORMATS or file_format.kinds() != INSERT_ONLY:
        raise NotSupportedError(
            f"{statement} of files of format '{file_format.identifier}'",
            hint=f"Files of {', '.join(_FORMATS)} can be written anew.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """``source``: reads the columns that are in the files; ``encoder``: writes them; ``format``: its
    identifier."""

    source: FileSource
    encoder: Encoder
    format: str
    statement: str

    def check(self, path: str) -> None:
        """NotSupportedError if a copy of the file would differ from it."""
        try:
            differs = self._difference(path)
        except UNREADABLE as e:
            raise ConnectorError(f"Cannot read file {self.source.storage.full_path(path)}: {e}") from None
        except WorkerError as e:
            raise find_error(str(e)) or e from None
        if differs:
            raise NotSupportedError(
                f"{self.statement} of rows in file {self.source.storage.full_path(path)}: writing it anew"
                f" would change other rows of it ({differs})",
                hint="The table's columns and options must say all that the file has."
                " INSERT OVERWRITE writes a table anew.",
            )

    def _difference(self, path: str) -> str:
        """What differs first; '' if nothing does."""
        copied = pa.BufferOutputStream()
        writer = self.encoder.open(copied)
        for batch in self._batches(path):
            writer.write(pa.Table.from_batches([batch]))
        writer.close()
        if self.format == _PARQUET:
            with self.source.storage.open(path) as file:
                return _parquet_difference(parquet.ParquetFile(file), pa.BufferReader(copied.getvalue()))
        data = self.source.storage.read_bytes(path)
        text = gzip.decompress(data) if path.endswith(".gz") else data
        return _text_difference(text, copied.getvalue().to_pybytes(), self.format == _JSON)

    def _batches(self, path: str) -> Iterator[pa.RecordBatch]:
        chosen = frozenset({path})
        alone = replace(self.source, chosen=chosen, log=TakenLog(), at_first=FirstListing(), native=None)
        end = alone.next_offset(None, ReadLimit())
        for task in alone.tasks(None, end):
            yield from alone.reader.read(task.splits)


def _text_difference(file: bytes, copy: bytes, as_json: bool) -> str:
    if file == copy:
        return ""
    pairs = zip_longest(file.splitlines(), copy.splitlines())
    for number, (line, copied) in enumerate(pairs, start=1):
        same = line == copied or (as_json and line and copied and _values(line) == _values(copied))
        if not same:
            return f"line {number}"
    return ""


def _values(line: bytes) -> Any:
    """The values of a JSON text; a field that is null is none."""
    try:
        return json.loads(line, object_pairs_hook=_present, parse_float=Decimal, parse_int=Decimal)
    except ValueError:
        return line


def _present(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        return {"": pairs}  # a repeated name is in no copy
    return {name: value for name, value in pairs if value is not None}


def _parquet_difference(file: parquet.ParquetFile, copied: pa.BufferReader) -> str:
    rows, copy = file.read(), parquet.read_table(copied)
    for number, name in enumerate(rows.column_names):
        if rows.column_names.count(name) > 1 or name not in copy.column_names:
            return f"column '{name}'"
        if not _is_same(rows.column(number), copy.column(name)):
            return f"column '{name}'"
    return ""


def _is_same(column: pa.ChunkedArray, copied: pa.ChunkedArray) -> bool:
    if column.type != copied.type:
        return False
    bits = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}.get(column.type)
    if bits is not None:  # NaN is not equal to itself
        column, copied = (
            pa.chunked_array([chunk.view(bits) for chunk in x.chunks], bits) for x in (column, copied)
        )
    return bool(column.equals(copied))
