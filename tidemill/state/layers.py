"""The layers of one state table during an epoch: the stored rows, and above them the rows of the epoch.

``layers`` are newest first. Rows that are put during the epoch form layers in memory, and later lookups
of the same epoch see them. Nothing is written before ``finish``, which merges within the budget of the
epoch (see ``state.spine``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tidemill.state.conversion import converted
from tidemill.state.layout import Layout
from tidemill.state.manifest import TableEntry
from tidemill.state.merge import merge_readers
from tidemill.state.reclaim import reclaimed
from tidemill.state.run import RunReader
from tidemill.state.spine import Layer, SpineOptions, compact
from tidemill.state.storage import StateFiles

GROWING_LAYERS = 8
"""Layers of a growing table that are not merged, because its rows are wide and lookups have few keys."""


@dataclass(slots=True)
class TableLayers:
    """``now``: the epoch's processing time in ms, the clock of TTL."""

    layout: Layout
    storage: StateFiles
    options: SpineOptions
    now: int
    epoch: int
    stored: list[Layer]
    fresh: list[Layer] = field(default_factory=list)
    added: int = 0
    taken: bool = False
    converted: bool = False

    @property
    def all(self) -> list[Layer]:
        return [*self.fresh, *self.stored]

    def add(self, rows: pa.Table) -> None:
        """``rows``: sorted by code, with all columns of the layout."""
        self.added += len(rows)
        self.fresh.insert(0, (RunReader.of_table(self.storage, rows, (self.epoch, self.epoch)),))
        # In-memory layers stay geometric, so that many small puts are cheap.
        while len(self.fresh) > 1 and 2 * _rows(self.fresh[0]) >= _rows(self.fresh[1]):
            self.fresh[:2] = _layers(self.merge([r for layer in self.fresh[:2] for r in layer], False))

    def clear(self) -> None:
        """Forgets all rows."""
        self.stored, self.fresh, self.taken = [], [], True

    def convert(self, entry: TableEntry) -> None:
        """Converts the stored rows, which are those of ``entry``, to this layout (see
        ``state.conversion``)."""
        readers = [reader for layer in self.stored for reader in layer]
        self.fresh = converted(self.layout, entry, readers, self.options.slice_bytes, self.now)
        self.stored = []
        self.taken = self.converted = True

    def take_below(self, code: int) -> list[RunReader]:
        """Removes the rows with a code below ``code`` from all layers; returns them, newest first."""
        taken_rows: list[RunReader] = []
        self.fresh = [_cut_below(layer, code, taken_rows) for layer in self.fresh]
        self.stored = [_cut_below(layer, code, taken_rows) for layer in self.stored]
        self.taken |= bool(taken_rows)
        self.fresh, self.stored = ([la for la in layers if la] for layers in (self.fresh, self.stored))
        return taken_rows

    def finish(self, write: Callable[[RunReader], RunReader]) -> list[Layer] | None:
        """The layers after this epoch. ``write`` writes each new layer. None if nothing changed."""
        before = [[r.run for r in layer] for layer in self.stored]
        if len(self.fresh) > 1:
            self.fresh = _layers(self.merge([r for layer in self.fresh for r in layer], not self.stored))
        options = replace(self.options, lazy_layers=GROWING_LAYERS) if self.layout.growing else self.options
        layers = compact(self.all, options, self.added, self.merge) if self.fresh else self.stored
        layers = reclaimed(layers, self.layout, options, self.now, self.merge)
        if not self.taken and [[r.run for r in layer] for layer in layers] == before:
            return None
        return [tuple(r if r.run is not None else write(r) for r in layer) for layer in layers]

    def merge(self, readers: list[RunReader], last: bool) -> list[RunReader]:
        """See ``merge_readers``."""
        return merge_readers(self.layout, readers, self.options.slice_bytes, last=last, now=self.now)


def _rows(layer: Layer) -> int:
    return sum(reader.rows for reader in layer)


def _layers(readers: list[RunReader]) -> list[Layer]:
    return [tuple(readers)] if readers else []


def _cut_below(layer: Layer, code: int, gone: list[RunReader]) -> Layer:
    kept: list[RunReader] = []
    for reader in layer:
        lo, hi = reader.bounds
        at = 0 if lo >= code else reader.rows if hi < code else reader.at(code)
        if at:
            gone.append(reader if at == reader.rows else reader.cut(0, at))
        if at < reader.rows:
            kept.append(reader if at == 0 else reader.cut(at, reader.rows))
    return tuple(kept)
