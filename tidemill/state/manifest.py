"""A manifest: which runs make up the state of one operator partition after one epoch.

A JSON file named ``<operator>/<partition>/<epoch>.manifest.json`` below the state root; paths in it
are relative to that root. Per state table it lists layers, newest first; a layer is a list of runs
with disjoint, ascending hash ranges. Manifests are immutable: going back to an epoch is naming its
manifest, a savepoint is a manifest whose files are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tidemill.errors import StateError
from tidemill.state.run import Run
from tidemill.state.storage import Storage

VERSION = 1

Layers = tuple[tuple[Run, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    epoch: int
    tables: dict[str, Layers]

    @property
    def runs(self) -> Iterator[Run]:
        for layers in self.tables.values():
            for layer in layers:
                yield from layer

    @property
    def rows(self) -> int:
        """Rows in all runs; a key that several runs hold counts several times."""
        return sum(run.rows for run in self.runs)

    @property
    def size(self) -> int:
        """Bytes of all files named."""
        return sum({run.path: run.bytes for run in self.runs}.values())

    def to_bytes(self) -> bytes:
        tables = {
            name: [[run.to_json() for run in layer] for layer in layers]
            for name, layers in sorted(self.tables.items())
        }
        return json.dumps({"version": VERSION, "epoch": self.epoch, "tables": tables}, indent=1).encode()


def manifest_name(operator: str, partition: int, epoch: int) -> str:
    return f"{operator}/{partition}/{epoch}.manifest.json"


def read_manifest(storage: Storage, name: str) -> Manifest:
    """The manifest of that name; StateError if it is missing, damaged or of another version."""
    try:
        data = json.loads(storage.read_bytes(name))
        version = data["version"]
        tables = {
            table: tuple(tuple(Run.from_json(run) for run in layer) for layer in layers)
            for table, layers in data["tables"].items()
        }
        manifest = Manifest(epoch=data["epoch"], tables=tables)
    except (ValueError, KeyError, TypeError) as e:
        raise StateError(f"Manifest '{storage.path(name)}' is damaged: {e}") from e
    if version != VERSION:
        raise StateError(
            f"Manifest '{storage.path(name)}' has version {version}, this Tidemill reads {VERSION}"
        )
    return manifest
