"""All rows of a state table as its files tell them, for readers that know no operator.

A manifest says which columns tell rows apart (``TableShape``), so versions of a row are combined as the
operator would combine them. Without a shape only a table of one layer can be read: nothing is to be combined
there. Cost: a read of the slices that are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tidemill.errors import StateError
from tidemill.state.arrow_names import arrow_named
from tidemill.state.conversion import converted, is_other
from tidemill.state.layout import VERSION, Layout
from tidemill.state.manifest import TableEntry, TableShape
from tidemill.state.merge import merge_readers
from tidemill.state.run import DELETED, DUE, HASH, TIME, WEIGHT, RunReader
from tidemill.state.slices import Slice, read_slices
from tidemill.state.spine import SpineOptions
from tidemill.state.storage import StateFiles

_HIDDEN = (HASH, DUE, WEIGHT, DELETED, TIME)


def live_rows(
    files: StateFiles, slices: Sequence[Slice], table: str, now: int, query: Layout | None = None
) -> Iterator[pa.Table]:
    """The live rows in pieces, with all columns of the layout. ``now``: the processing time of the epoch that
    wrote the last of them, in milliseconds: what had expired by then does not count. ``query``: the layout to
    which rows of an earlier query are converted; None: they stay as they are. StateError."""
    manifest = read_slices(files, slices)
    entry = None if manifest is None else manifest.tables.get(table)
    readers = [] if entry is None else [RunReader.of_run(files, run) for run in entry.runs]
    if entry is None or not readers:
        return
    if query is not None and is_other(query, entry):
        for layer in converted(query, entry, readers, SpineOptions().slice_bytes, now):
            yield from (reader.table for reader in layer)
        return
    layout = stored_layout(files, table, entry)
    for merged in merge_readers(layout, readers, SpineOptions().slice_bytes, last=True, now=now):
        yield merged.table


def stored_layout(files: StateFiles, table: str, entry: TableEntry) -> Layout:
    """The layout that ``entry`` was written by; rows of a growing table are combined as those of others."""
    shape = entry.shape or _unshaped(files, table, entry)
    fields = {name: _field(files, table, name, text) for name, text in entry.columns.items()}
    identity = (*shape.keys, *shape.values)
    payload = [f for name, f in fields.items() if name not in identity and name not in _HIDDEN]
    try:
        return Layout(
            name=table,
            keys=tuple(fields[name] for name in shape.keys),
            values=tuple(fields[name] for name in shape.values),
            columns=tuple(payload),
            additive=WEIGHT in entry.columns,
            ttl=shape.ttl,
            by_time=DUE in entry.columns,
        )
    except (KeyError, ValueError) as e:
        raise StateError(f"The state of {files.owner} is damaged: table '{table}': {e}") from e


def _unshaped(files: StateFiles, table: str, entry: TableEntry) -> TableShape:
    """With one layer any columns will do: no row is there twice."""
    if len(entry.layers) > 1 or TIME in entry.columns:
        raise StateError(
            f"The state of {files.owner} cannot be read as a table: its file of table '{table}' does not say "
            "which columns are its keys, as it was written by an older Tidemill",
            hint="Start the job from it; once all keys have had rows, its savepoints can be read.",
        )
    return TableShape(keys=tuple(name for name in entry.columns if name not in _HIDDEN))


def _field(files: StateFiles, table: str, name: str, text: str) -> pa.Field:
    try:
        kind = arrow_named(text)
        version = text.removeprefix(str(kind)).strip().encode()
        return pa.field(name, kind, metadata={VERSION: version} if version else None)
    except ValueError as e:
        raise StateError(f"The state of {files.owner}: column '{name}' of table '{table}': {e}") from e
