"""Appends to a table of versions, exactly once.

1. *stage*: tasks write data files beside the table's own. Nobody reads them: no version names them.
2. *publish*: the driver commits the files of all tasks and the epoch as one version (see ``commits``).
3. *discard*: what is left behind stays until the table is cleaned up in its format's way (VACUUM, orphan
   files).

An INSERT OVERWRITE (batch only) also takes out all files that the version had, or those of the partitions
that are written to; a DELETE or UPDATE the files that it has written anew (see ``rewriting``), or it marks
rows of them as deleted (see ``marking``).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidemill.catalog.table import Rewriting
from tidemill.connectors.api import Sink
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.lakehouse.api import Change, Target, Version
from tidemill.connectors.lakehouse.commits import Commits
from tidemill.connectors.lakehouse.files import DataFile, RowNumbers
from tidemill.connectors.lakehouse.marking import RowMarker, marked_files, marks_of
from tidemill.connectors.lakehouse.rewriting import rewritten_files
from tidemill.connectors.lakehouse.units import values_of
from tidemill.connectors.lakehouse.writing import LakeWriter, files_of
from tidemill.errors import ConnectorError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSink(Sink):
    """``rewriting``: the files that the written ones replace, or whose rows they replace; None unless they
    do."""

    commits: Commits
    writer: LakeWriter
    overwrite: bool
    rewriting: Rewriting | None = None

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        return map_batches(frame, self.stager(epoch), "token STRING")

    def stager(self, epoch: int) -> LakeWriter | RowMarker:
        if self.rewriting is not None and self.rewriting.places:
            return RowMarker(writer=self.writer, writes=self.rewriting.statement != "DELETE")
        return self.writer

    def publish(self, epoch: int, tokens: list[str]) -> None:
        """ConnectorError where the table does not take the files; CommitUnknownError where nobody can tell
        whether it has them."""
        files = files_of(tokens)
        changes = files_of(tokens, "changes")
        if self.rewriting is not None and self.rewriting.places:
            marks = marks_of(tokens)
            self.commits.commit(epoch, lambda version: self._marks(version, files, marks))
        elif files or self.overwrite or self.rewriting is not None:
            self.commits.commit(epoch, lambda version: self._change(version, files, changes))

    def discard(self, epoch: int) -> None:
        self.commits.check_newer(epoch)

    def finish(self) -> None:
        """Nothing is left to do."""

    def _change(self, version: Version, files: list[dict[str, Any]], changes: list[dict[str, Any]]) -> Change:
        version.check(removes=self.overwrite or self.rewriting is not None)
        if self.rewriting is not None:
            gone = rewritten_files(self.rewriting, version.files(()), self.writer.table)
            return Change(added=files, removed=gone, changes=changes, what=self.rewriting.statement)
        if not self.overwrite:
            return Change(added=files)
        written = [tuple(file["partition"].items()) for file in files]
        replaced = replaced_files(version.files(()), written, self.writer)
        return Change(added=files, removed=replaced)

    def _marks(self, version: Version, files: list[dict[str, Any]], marks: dict[str, RowNumbers]) -> Change:
        assert self.rewriting is not None
        version.check(removes=True)
        vectors = version.vectors()
        if vectors is None:
            raise ConnectorError(
                f"{self.rewriting.statement} changes nothing in table '{self.writer.table}': it does not take"
                " deletion vectors any more.",
                hint="Run the statement again.",
            )
        found = rewritten_files(self.rewriting, version.files(()), self.writer.table)
        gone, marked = marked_files(self.writer.storage, found, marks, vectors)
        return Change(added=files, removed=gone, marked=marked, what=self.rewriting.statement)


def empty(target: Target, table: str) -> None:
    """A version without files."""

    def all_go(version: Version) -> Change:
        version.check(removes=True)
        return Change(added=(), removed=version.files(()))

    Commits(target=target, table=table, sink=f"truncate-{uuid.uuid4().hex}").commit(1, all_go)


def replaced_files(
    files: Sequence[DataFile], written: Sequence[tuple[tuple[str, str | None], ...]], writer: LakeWriter
) -> list[DataFile]:
    """Those that an INSERT OVERWRITE of the partitions ``written`` takes out: all of a table without any."""
    partitions = writer.partitions
    wanted = {values_of(partition, partitions) for partition in written}
    return [f for f in files if not partitions or tuple(f.partition[p.name] for p in partitions) in wanted]
