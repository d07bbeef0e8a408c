"""The state of one operator on one partition, for one epoch.

The life of a store, within one task::

    store = StateStore.open(root, operator, partition, base, epoch, attempt=..., now=time_ms)
    output = spec.step(inputs, store, context)        # reads the base, buffers this epoch's rows
    manifest = store.flush()                          # writes runs, then the manifest; None: no state

``root`` is a directory or a URI. ``base`` is the name that ``flush`` of the previous epoch returned,
relative to the root. It is None if there is no state yet, or slices of several manifests after a
rescaling. ``flush`` returns the name of the new manifest,
``<operator>/<partition>/<epoch>.<attempt>.manifest.json``, or the name of the base if the epoch changed
nothing.

No two attempts share a name, so an attempt that outlives its epoch overwrites nothing. Only the commit
record, which names a manifest, decides which attempt counts. Before ``flush`` returns, everything that
the manifest names is forced to disk, file names included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.state.conversion import is_other
from tidemill.state.growing_types import grows
from tidemill.state.layers import TableLayers
from tidemill.state.layout import Layout
from tidemill.state.manifest import Manifest, TableEntry, manifest_name
from tidemill.state.run import RunReader, write_run
from tidemill.state.slices import KEY_GROUPS, Slice, read_slices
from tidemill.state.spine import SpineOptions
from tidemill.state.storage import StateFiles
from tidemill.state.table import StateTable
from tidemill.state.timeline import TimeTable

DEFAULT_OPTIONS = SpineOptions()


@dataclass(slots=True)
class StateStore:
    """``files``: what the manifest names that ``flush`` has written; None if it has written none."""

    storage: StateFiles
    operator: str
    partition: int
    epoch: int
    now: int
    base: Sequence[Slice]
    manifest: Manifest
    attempt: str = "0"
    options: SpineOptions = DEFAULT_OPTIONS
    files: frozenset[str] | None = None
    _layers: dict[str, TableLayers] = field(default_factory=dict)
    _tables: dict[str, StateTable | TimeTable] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        root: Storage | str,
        operator: str,
        partition: int,
        base: str | Sequence[Slice] | None,
        epoch: int,
        *,
        groups: tuple[int, int] = (0, KEY_GROUPS),
        attempt: str = "0",
        now: int = 0,
        options: SpineOptions = DEFAULT_OPTIONS,
    ) -> StateStore:
        """The state after ``base``. ``now`` is the processing time of the epoch in milliseconds.

        ``groups``: the key groups of the partition. ``base``: the slices of manifests with these
        groups; a single name has the same groups. ``attempt``: letters and digits that no other run of
        this epoch's task has.
        """
        files = StateFiles.open(
            root, f"operator '{operator}', partition {partition} (the last whole epoch is {epoch - 1})"
        )
        if isinstance(base, str):
            base = (Slice(base, *groups),)
        slices = base or ()
        stored = read_slices(files, slices)
        if stored is None:
            stored = Manifest(epoch=epoch, groups=groups, tables={})
        # Partitions without state have no slice, but this partition owns their key groups, too.
        manifest = replace(stored, groups=groups)
        return cls(files, operator, partition, epoch, now, slices, manifest, attempt, options)

    def scratch(self) -> StateStore:
        """An empty store that is never flushed, for results that are computed once and emitted."""
        return replace(
            self,
            base=(),
            manifest=Manifest(epoch=self.epoch, groups=self.manifest.groups, tables={}),
            _layers={},
            _tables={},
        )

    def table(self, layout: Layout) -> StateTable:
        """The table of that name. Within a step it is always the same object."""
        table = self._tables.get(layout.name)
        if table is None:
            table = self._tables[layout.name] = StateTable(self._opened(layout))
        assert isinstance(table, StateTable)
        return table

    def timeline(self, layout: Layout) -> TimeTable:
        """The table of that name, which is ordered by time."""
        table = self._tables.get(layout.name)
        if table is None:
            table = self._tables[layout.name] = TimeTable(self._opened(layout))
        assert isinstance(table, TimeTable)
        return table

    def flush(self) -> str | None:
        """Writes the changes of the step. Returns the name of the manifest that now describes the state."""
        tables = dict(self.manifest.tables)
        changed = False
        numbers = {name: number for number, name in enumerate(sorted({*tables, *self._layers}))}
        for name, open_layers in sorted(self._layers.items()):
            layers = open_layers.finish(_Writer(self, numbers[name], open_layers.layout))
            if layers is not None:
                changed = True
                before = {} if open_layers.converted else _columns(tables.get(name))
                tables[name] = TableEntry(
                    columns={**before, **open_layers.layout.described},
                    layers=tuple(tuple(r.run for r in layer if r.run) for layer in layers),
                    shape=open_layers.layout.shape,
                )
        if not changed:
            return self.base[0].manifest if len(self.base) == 1 else None
        manifest = Manifest(epoch=self.epoch, groups=self.manifest.groups, tables=tables)
        name = manifest_name(self.operator, self.partition, self.epoch, self.attempt)
        self.storage.publish(name, lambda sink: sink.write(manifest.to_bytes()))
        self.storage.settle(f"{self.operator}/{self.partition}")
        self.manifest, self.files = manifest, manifest.files
        return name

    def _opened(self, layout: Layout) -> TableLayers:
        entry = self.manifest.tables.get(layout.name)
        if entry is not None:
            self._check_columns(layout, entry)
        stored = [
            tuple(RunReader.of_run(self.storage, run) for run in layer)
            for layer in (entry.layers if entry is not None else ())
        ]
        layers = TableLayers(layout, self.storage, self.options, self.now, self.epoch, stored)
        if entry is not None and is_other(layout, entry):
            layers.convert(entry)
        self._layers[layout.name] = layers
        return layers

    def _check_columns(self, layout: Layout, entry: TableEntry) -> None:
        """A column of the same name must be of the same type and version, or grow; one that is new is NULL so
        far, but no row can do without a part of its identity that is not ``late``, its weight or its time."""
        payload = {f.name for f in layout.columns if not f.name.startswith("$")}
        other = is_other(layout, entry)
        payload.update(layout.late if other else ())
        if layout.evolves and entry.shape is not None and entry.shape.keys != layout.shape.keys:
            raise StateError(
                f"The state of {self.storage.owner} does not fit: table '{layout.name}' is kept by "
                f"{', '.join(entry.shape.keys)}, the query needs it by {', '.join(layout.shape.keys)}",
                hint="Use another checkpoint directory, or run the query that made this one.",
            )
        for name, kind in layout.described.items():
            found = entry.columns.get(name)
            if other and found is not None and grows(found, kind, key=name in layout.shape.keys):
                continue
            if found != kind and (found is not None or name not in payload):
                raise StateError(
                    f"The state of {self.storage.owner} does not fit: column '{name}' of its table "
                    f"'{layout.name}' is {found or 'missing'}, the query needs {kind}",
                    hint="Use another checkpoint directory, or run the query that made this one.",
                )


def _columns(entry: TableEntry | None) -> dict[str, str]:
    return dict(entry.columns) if entry is not None else {}


@dataclass(slots=True)
class _Writer:
    """Names and writes the runs of one table: ``<epoch>.<attempt>.<table number>.<run number>``."""

    store: StateStore
    number: int
    layout: Layout
    written: int = 0

    def __call__(self, rows: RunReader) -> RunReader:
        store = self.store
        name = f"{store.epoch}.{store.attempt}.{self.number}.{self.written}.arrow"
        self.written += 1
        path = f"{store.operator}/{store.partition}/{name}"
        options = store.options
        gain = options.gain(self.layout) if len(rows.table) >= options.packed_rows else None
        payload = [f.name for f in self.layout.columns]
        run = write_run(store.storage, path, rows.table, rows.epochs, packed_gain=gain, payload=payload)
        return RunReader.of_run(store.storage, run)
