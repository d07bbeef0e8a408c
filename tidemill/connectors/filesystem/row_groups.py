"""Offsets in columnar files count rows; cuts fall between row groups or stripes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tidemill.connectors.filesystem.offsets import TakenFile
from tidemill.connectors.filesystem.storage import Storage
from tidemill.errors import ConnectorError


class RowGroupIndex(Protocol):
    def group_rows(self, file: pa.NativeFile) -> list[int]:
        """Rows of each row group (stripe) of a file."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroups:
    index: RowGroupIndex

    def rows(self, storage: Storage, path: str) -> int:
        return sum(self._groups(storage, path))

    def cut(self, storage: Storage, file: TakenFile, start: int, rows: int | None, length: int | None) -> int:
        """The end of a range from ``start``: exact in rows, about right in bytes, at least one row."""
        wanted = file.length - start
        if rows is not None:
            wanted = min(wanted, rows)
        if length is not None:
            wanted = min(wanted, length * file.length // max(file.size, 1))
        return start + max(wanted, 1)

    def _groups(self, storage: Storage, path: str) -> list[int]:
        try:
            with storage.open(path) as file:
                return self.index.group_rows(file)
        except (OSError, pa.ArrowException) as e:
            raise ConnectorError(f"Cannot read file {storage.absolute(path)}: {e}") from None
