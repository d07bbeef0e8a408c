"""The part of an operator's state that a partition has: slices of manifests, by key groups.

The upper bits of a key's hash are its key group. A partition has a range of key groups, so a range of hashes.
After a rescaling, the state of a partition consists of slices of what other partitions wrote:

    before: partition 0 has groups 0-2047, partition 1 has groups 2048-4095
    after:  partition 0 has 0-1365, partition 1 has 1366-2730, partition 2 has 2731-4095

Runs are cut to the partition's range, and no row is rewritten. A run ordered by hash is cut by
position. A run ordered by time has no such position. Both say which of their rows count (``Run.within``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import zip_longest

import numpy as np

from tidemill.changelog.columns import Hashes
from tidemill.state.growing_types import grows
from tidemill.state.manifest import Layers, Manifest, TableEntry, TableShape, read_manifest
from tidemill.state.run import DUE, Run, RunReader
from tidemill.state.storage import StateFiles

KEY_GROUP_BITS = 12
KEY_GROUPS = 1 << KEY_GROUP_BITS
"""Upper bound of a job's parallelism, as Flink's maximum parallelism."""
_GROUP_SHIFT = 64 - KEY_GROUP_BITS
_ALL = (0, (1 << 64) - 1)

Slices = dict[str, dict[int, tuple["Slice", ...]]]
"""operator -> partition -> what its state is."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The key groups of a manifest from ``first`` to before ``stop``."""

    manifest: str
    first: int
    stop: int

    @property
    def hashes(self) -> tuple[int, int]:
        """The first and the last hash."""
        return self.first << _GROUP_SHIFT, (self.stop << _GROUP_SHIFT) - 1


def key_groups(partition: int, partitions: int) -> tuple[int, int]:
    """The first key group of a partition, and the one after its last (see ``exchange.partition_of``)."""
    first, stop = (-(-p * KEY_GROUPS // partitions) for p in (partition, partition + 1))
    return first, stop


def first_hashes(groups: tuple[int, int]) -> Hashes:
    """The first hash of each key group of a partition."""
    return np.arange(*groups, dtype=np.uint64) << np.uint64(_GROUP_SHIFT)


def resliced(slices: Mapping[int, Iterable[Slice]], partitions: int) -> dict[int, tuple[Slice, ...]]:
    """The same state for another number of partitions."""
    held = sorted((s for part in slices.values() for s in part), key=lambda s: s.first)
    result: dict[int, tuple[Slice, ...]] = {}
    for partition in range(partitions):
        first, stop = key_groups(partition, partitions)
        cut = (replace(s, first=max(s.first, first), stop=min(s.stop, stop)) for s in held)
        if parts := tuple(s for s in cut if s.first < s.stop):
            result[partition] = parts
    return result


def read_slices(files: StateFiles, slices: Sequence[Slice]) -> Manifest | None:
    """The state of ``slices``, as if one partition had written it; None if there is none.

    Opens only the runs that cross a boundary.
    """
    if not slices:
        return None
    if len(slices) == 1:
        manifest = read_manifest(files, slices[0].manifest)
        whole = manifest.groups == (slices[0].first, slices[0].stop)
        return manifest if whole else _cut(files, manifest, slices[0])
    parts = [_cut(files, read_manifest(files, s.manifest), s) for s in slices]
    tables: dict[str, TableEntry] = {}
    for name in sorted({name for part in parts for name in part.tables}):
        entries = [part.tables[name] for part in parts if name in part.tables]
        columns = _columns(entries)
        shape = TableShape.together([entry.shape for entry in entries if entry.shape is not None])
        unlike = any(columns[c] != kind for entry in entries for c, kind in entry.columns.items())
        if shape is not None and unlike:
            shape = replace(shape, mixed=True)
        tables[name] = TableEntry(columns=columns, layers=_side_by_side(columns, entries), shape=shape)
    return Manifest(
        epoch=max(p.epoch for p in parts), groups=(slices[0].first, slices[-1].stop), tables=tables
    )


def _columns(entries: Sequence[TableEntry]) -> dict[str, str]:
    """The columns of all; of partitions not all of which are converted so far, the widest type counts."""
    columns: dict[str, str] = {}
    for entry in entries:
        for column, kind in entry.columns.items():
            if not grows(kind, columns.get(column, "")):
                columns[column] = kind
    return columns


def _side_by_side(columns: Mapping[str, str], entries: list[TableEntry]) -> Layers:
    """Layers of disjoint hashes, from the oldest on side by side. In a table ordered by time their ranges
    overlap, so they are stacked in any order."""
    if DUE in columns:
        return reduce(_stacked, (entry.layers for entry in entries))
    depth = max(len(entry.layers) for entry in entries)
    return tuple(
        _in_a_row(run for e in entries if len(e.layers) >= height for run in e.layers[-height])
        for height in range(depth, 0, -1)
    )


def _in_a_row(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Parts of a file that follow each other are one run again."""
    whole: list[Run] = []
    for run in runs:
        if whole and (whole[-1].path, whole[-1].stop) == (run.path, run.start):
            before = whole.pop()
            run = replace(run, start=before.start, lo=before.lo, within=_range(before, run))
        whole.append(run)
    return tuple(whole)


def _stacked(upper: Layers, lower: Layers) -> Layers:
    """Below both what they have parts of since it was cut between them."""
    shared: list[tuple[Run, ...]] = []
    while upper and lower and (whole := _put_together(upper[-1], lower[-1])):
        upper, lower, shared = upper[:-1], lower[:-1], [whole, *shared]
    return (*upper, *lower, *shared)


def _put_together(layer: tuple[Run, ...], neighbour: tuple[Run, ...]) -> tuple[Run, ...]:
    """A layer of time-ordered runs that was cut in two; nothing if they are not that."""
    whole: list[Run] = []
    for one, other in zip_longest(layer, neighbour):
        if one is None or other is None or one.within is None or other.within is None:
            return ()
        if replace(one, within=other.within) != other or one.within[1] + 1 != other.within[0]:
            return ()
        whole.append(replace(one, within=_range(one, other)))
    return tuple(whole)


def _range(one: Run, other: Run) -> tuple[int, int] | None:
    """The hashes of two parts of a file, which are neighbours; None for all."""
    if one.within is None or other.within is None:
        return None
    both = one.within[0], other.within[1]
    return None if both == _ALL else both


def _cut(files: StateFiles, manifest: Manifest, part: Slice) -> Manifest:
    tables = {}
    for name, entry in manifest.tables.items():
        cut = _within if DUE in entry.columns else _clipped
        layers = (tuple(r for run in layer if (r := cut(files, run, part))) for layer in entry.layers)
        tables[name] = replace(entry, layers=tuple(layer for layer in layers if layer))
    return replace(manifest, groups=(part.first, part.stop), tables=tables)


def _clipped(files: StateFiles, run: Run, part: Slice) -> Run | None:
    lo, hi = part.hashes
    if run.lo >= lo and run.hi <= hi:
        return run
    if run.hi < lo or run.lo > hi:
        return None
    reader = RunReader.of_run(files, run)
    start, stop = reader.at(lo), reader.at(hi + 1)
    cut = reader.cut(start, stop).run if start < stop else None
    return None if cut is None else replace(cut, within=part.hashes)


def _within(files: StateFiles, run: Run, part: Slice) -> Run | None:
    lo, hi = part.hashes
    if run.within is not None:
        lo, hi = max(lo, run.within[0]), min(hi, run.within[1])
    return replace(run, within=(lo, hi)) if lo <= hi else None
