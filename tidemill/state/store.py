"""The state of one operator on one partition, for one epoch.

Life of a store, within one task::

    store = StateStore.open(root, operator, partition, base_manifest, epoch, now=time_ms)
    output = spec.step(inputs, store, context)        # reads the base, buffers this epoch's rows
    manifest = store.flush()                          # writes runs, then the manifest; None: no state

``root`` is a directory or a ``pyarrow.fs`` URI; ``base_manifest`` is the name that the previous epoch's
``flush`` returned (relative to the root; None: no state yet). ``flush`` returns the new manifest's
name, ``<operator>/<partition>/<epoch>.manifest.json``, or the base unchanged if the epoch changed
nothing. Files appear whole (temporary name, fsync, rename), runs before the manifest that names them;
until a commit record names the manifest they mean nothing. The same step writes the same names and
bytes, so a task may run twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.state.layout import Layout
from tidemill.state.manifest import Manifest, manifest_name, read_manifest
from tidemill.state.run import RunReader, write_run
from tidemill.state.spine import SpineOptions
from tidemill.state.storage import Storage
from tidemill.state.table import StateTable

DEFAULT_OPTIONS = SpineOptions()


@dataclass(slots=True)
class StateStore:
    storage: Storage
    operator: str
    partition: int
    epoch: int
    now: int
    base: str | None
    manifest: Manifest
    options: SpineOptions = DEFAULT_OPTIONS
    _tables: dict[str, StateTable] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        root: str,
        operator: str,
        partition: int,
        base_manifest: str | None,
        epoch: int,
        *,
        now: int = 0,
        options: SpineOptions = DEFAULT_OPTIONS,
    ) -> StateStore:
        """The state after ``base_manifest``; ``now`` is the epoch's processing time in milliseconds."""
        storage = Storage.open(root)
        manifest = (
            read_manifest(storage, base_manifest) if base_manifest else Manifest(epoch=epoch, tables={})
        )
        return cls(storage, operator, partition, epoch, now, base_manifest, manifest, options)

    def table(self, layout: Layout) -> StateTable:
        """The table of that name; always the same object within a step."""
        table = self._tables.get(layout.name)
        if table is None:
            layers = [
                tuple(RunReader.of_run(self.storage, run) for run in layer)
                for layer in self.manifest.tables.get(layout.name, ())
            ]
            table = StateTable(layout, self.storage, self.options, self.now, self.epoch, layers)
            self._tables[layout.name] = table
        return table

    def flush(self) -> str | None:
        """Writes what the step changed; the name of the manifest that now describes the state."""
        tables = dict(self.manifest.tables)
        changed = False
        for name in sorted(self._tables):
            table = self._tables[name]
            layers = table.finish(_Writer(self, table.layout, sorted({*tables, *self._tables}).index(name)))
            if layers is not None:
                changed = True
                tables[name] = tuple(tuple(r.run for r in layer if r.run) for layer in layers)
        if not changed:
            return self.base
        manifest = Manifest(epoch=self.epoch, tables=tables)
        name = manifest_name(self.operator, self.partition, self.epoch)
        self.storage.publish(name, lambda sink: sink.write(manifest.to_bytes()))
        self.manifest = manifest
        return name


@dataclass(slots=True)
class _Writer:
    """Names and writes the runs of one table in this epoch: ``<epoch>.<table number>.<run number>``."""

    store: StateStore
    layout: Layout
    number: int
    written: int = 0

    def __call__(self, rows: RunReader) -> RunReader:
        store = self.store
        path = f"{store.operator}/{store.partition}/{store.epoch}.{self.number}.{self.written}.arrow"
        self.written += 1
        run = write_run(store.storage, path, rows.table, rows.epochs, self.layout.schema_id)
        return RunReader.of_run(store.storage, run)
