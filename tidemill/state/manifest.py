"""A manifest: the runs that are the state of one operator's partition after one epoch.

A manifest is a record (see ``state.record``) named
``<operator>/<partition>/<epoch>.<attempt>.manifest.json`` below the state root, and its paths are
relative to that root. For each state table it has the columns, with type and version, and the layers,
newest first. A layer is a list of runs with disjoint, ascending ranges.

Manifests are immutable, and count only if a commit record names them. To go back to an epoch is to name its
manifest. A savepoint is a manifest whose files are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidemill.state.record import damaged, decode_record, encode_record
from tidemill.state.run import Run
from tidemill.state.storage import StateFiles

VERSION = 5
_OLDER = {3: lambda fields: fields, 4: lambda fields: fields}
"""Readers of the versions before. 4: runs may be packed (``state.packing``), which the file itself says.
5: their integers may count steps, and due times may be there once each."""

Layers = tuple[tuple[Run, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """The identity of rows, ``keys`` and ``values``, and the milliseconds after which a row expires
    (``ttl``), so that readers without the operator can combine versions of a row. ``mixed``: some runs lack
    some ``values``, or have narrower types, because a rescaling combined partitions of different queries."""

    keys: tuple[str, ...]
    values: tuple[str, ...] = ()
    ttl: int = 0
    mixed: bool = False

    @classmethod
    def together(cls, shapes: Sequence[TableShape]) -> TableShape | None:
        """The shape of runs with different keys; None if there are no ``shapes``."""
        if len(set(shapes)) < 2:
            return shapes[-1] if shapes else None
        values = dict.fromkeys(value for shape in shapes for value in shape.values)
        return replace(shapes[-1], values=tuple(values), mixed=True)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TableShape:
        keys, values = tuple(data["keys"]), tuple(data["values"])
        return cls(keys=keys, values=values, ttl=int(data["ttl"]), mixed=bool(data.get("mixed")))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """``columns``: name -> type and version, for all columns that a run of the table may have. ``shape``:
    None if no epoch has written the table since manifests have shapes."""

    columns: Mapping[str, str]
    layers: Layers
    shape: TableShape | None = None

    @property
    def runs(self) -> Iterator[Run]:
        for layer in self.layers:
            yield from layer

    def to_json(self) -> dict[str, Any]:
        layers = [[run.to_json() for run in layer] for layer in self.layers]
        shape = {} if self.shape is None else {"shape": asdict(self.shape)}
        return {"columns": dict(sorted(self.columns.items())), "layers": layers, **shape}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TableEntry:
        layers = tuple(tuple(Run.from_json(run) for run in layer) for layer in data["layers"])
        shape = TableShape.from_json(data["shape"]) if "shape" in data else None
        return cls(columns=dict(data["columns"]), layers=layers, shape=shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """``groups``: the first key group of the partition, and the group after its last."""

    epoch: int
    groups: tuple[int, int]
    tables: Mapping[str, TableEntry]

    @property
    def runs(self) -> Iterator[Run]:
        for table in self.tables.values():
            yield from table.runs

    @property
    def files(self) -> frozenset[str]:
        """The files that it names."""
        return frozenset(run.path for run in self.runs)

    @property
    def rows(self) -> int:
        """The rows of all runs. A key in several runs counts several times."""
        return sum(run.rows for run in self.runs)

    @property
    def size(self) -> int:
        """The bytes of all files that it names."""
        return sum({run.path: run.size for run in self.runs}.values())

    def to_bytes(self) -> bytes:
        tables = {name: entry.to_json() for name, entry in sorted(self.tables.items())}
        return encode_record(VERSION, {"epoch": self.epoch, "groups": self.groups, "tables": tables})


def manifest_name(operator: str, partition: int, epoch: int, attempt: str) -> str:
    return f"{operator}/{partition}/{epoch}.{attempt}.manifest.json"


def read_manifest(storage: StateFiles, name: str) -> Manifest:
    """The manifest of that name; StateError if it is missing, damaged or of another version."""
    description = f"the manifest '{storage.path(name)}'"
    if storage.owner:
        description += f" of {storage.owner}"
    fields = decode_record(storage.read_bytes(name), VERSION, description, _OLDER)
    try:
        tables = {table: TableEntry.from_json(data) for table, data in fields["tables"].items()}
        first, stop = fields["groups"]
        return Manifest(epoch=fields["epoch"], groups=(first, stop), tables=tables)
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise damaged(description, f"{type(e).__name__}: {e}") from e
