"""Offsets in columnar files count rows; splits fall between row groups where they can."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa

from tidemill.connectors.filesystem.offsets import TakenFile
from tidemill.connectors.formats.api import Format
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroups:
    format: Format

    def rows(self, storage: Storage, path: str) -> int:
        """ConnectorError when the file is not of the format."""
        return sum(self._groups(storage, path))

    def cut(self, file: TakenFile, start: int, rows: int | None, length: int | None) -> int:
        """The end of a range from ``start`` with at most ``rows`` rows, about ``length`` bytes, and at least
        one row."""
        count = file.length - start
        if rows is not None:
            count = min(count, rows)
        if length is not None:
            count = min(count, length * file.length // max(file.size, 1))
        return start + max(count, 1)

    def ends(self, storage: Storage, path: str, start: int, end: int, step: int) -> Iterator[int]:
        """Ends of splits of the rows ``start``..``end``, each of whole row groups and ``step`` rows or
        more but the last."""
        last_end = start
        for border in accumulate(self._groups(storage, path)):
            if border >= last_end + step and border < end:
                yield border
                last_end = border
        yield end

    def _groups(self, storage: Storage, path: str) -> list[int]:
        try:
            with storage.open(path) as file:
                return self.format.group_rows(file)
        except (OSError, pa.ArrowException, UnicodeDecodeError) as e:
            raise ConnectorError(f"Cannot read file {storage.full_path(path)}: {e}") from None
