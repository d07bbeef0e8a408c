"""DELETE and UPDATE of a table without a primary key: the files with rows to change are written anew.

1. The statement asks which files of a version have such rows (the metadata column ``ROW_FILE``).
2. Workers write the rows that these files have after the statement, as any sink does (see ``sink``).
3. One version takes the new files in and the old files out. If the newest version does not have one of the
   old files any more, another writer has changed rows of it: the statement fails and changes nothing. Files
   that others have added meanwhile stay as they are, as if they had come after the statement.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tidemill.catalog.table import CatalogTable, Rewriting
from tidemill.connectors.lakehouse.files import DataFile, is_worn
from tidemill.connectors.lakehouse.reading import METADATA, ROW_FILE, ROW_NUMBER
from tidemill.errors import ConnectorError, NotSupportedError
from tidemill.files.entries import FileEntry
from tidemill.files.storage import Storage
from tidemill.types.logical import Field

_PLACES = (Field(ROW_FILE, METADATA[ROW_FILE]), Field(ROW_NUMBER, METADATA[ROW_NUMBER]))


def chosen_files(table: CatalogTable) -> frozenset[str] | None:
    """The files that are read; None for all."""
    return None if table.rewriting is None else frozenset(file.path for file in table.rewriting.files)


def refuse_versions(table: CatalogTable, options: Collection[str]) -> None:
    """NotSupportedError for a table whose ``options`` name a version to read."""
    named = next((key for key in options if key in table.options), None)
    if named is not None:
        raise NotSupportedError(
            f"DELETE, UPDATE and MERGE INTO of a table with '{named}'",
            hint="The newest version changes: leave the option out.",
        )


def part_of(
    table: CatalogTable,
    listed: Sequence[DataFile],
    wanted: Mapping[str, int],
    storage: Storage,
    statement: str,
    version: int,
    change_type: str = "",
    *,
    marks: bool = False,
) -> CatalogTable:
    """``table`` with those files of a version that ``wanted`` has as ``ROW_FILE`` names them, each with its
    number of rows that change. ``marks``: the files can lose rows without being written anew."""
    files = [file for file in listed if storage.full_path(file.path) in wanted]
    deleted = sum(file.rows - file.live_rows for file in files) + sum(wanted.values())
    stay = marks and not is_worn(deleted, sum(file.rows for file in files))
    made = Rewriting(
        files=tuple(FileEntry(path=file.path, size=file.size, modified=0) for file in files),
        statement=statement,
        version=version,
        states=tuple(file.state for file in files),
        change_type=change_type,
        places=_PLACES if stay else (),
    )
    return replace(table, rewriting=made)


def rewritten_files(rewriting: Rewriting, files: Sequence[DataFile], table: str) -> list[DataFile]:
    """The files in the newest version. ConnectorError if one of them is not there any more, or has lost other
    rows since."""
    current = {file.path: file for file in files}
    states = {file.path: file.state for file in files}
    was = {file.path: state for file, state in zip(rewriting.files, rewriting.states, strict=True)}
    gone = next((path for path, state in was.items() if states.get(path) != state), None)
    if gone is not None:
        raise ConnectorError(
            f"{rewriting.statement} changes nothing in table '{table}': another writer has changed rows of"
            f" the file {gone} meanwhile.",
            hint="Run the statement again.",
        )
    return [current[file.path] for file in rewriting.files]
