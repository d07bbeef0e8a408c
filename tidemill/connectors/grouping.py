"""Aggregates over a table's columns that a source may have made where the rows lie.

What it gives are parts: rows of the same keys may come several times (once for each range of the table), and
whoever asks puts them together. A part is exact or is not given at all; where only the rows tell that it
cannot be exact, reading fails with ``UNLIKE``, and whoever asks reads the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.types.logical import Field, LogicalType

UNLIKE = "rows of a database do not have the types of their columns, so they are not aggregated there"


@dataclass(frozen=True, slots=True)
class Part:
    """COUNT, SUM, MIN or MAX of ``column``, or COUNT of rows (None); ``type``: the result's."""

    function: str
    column: str | None
    type: LogicalType


@dataclass(frozen=True, slots=True)
class Grouping:
    """By the columns ``keys``, none for one row of each part of a scan."""

    keys: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def columns(self) -> set[str]:
        """All that it asks of the table."""
        return {*self.keys, *(part.column for part in self.parts if part.column is not None)}

    def fields(self, columns: tuple[Field, ...]) -> tuple[Field, ...]:
        """What comes: the keys, then the parts, by number. ``columns``: the table's."""
        types = {f.name: f.type for f in columns}
        kinds = [*(types[key] for key in self.keys), *(part.type for part in self.parts)]
        return tuple(Field(f"${i}", kind) for i, kind in enumerate(kinds))
