"""Writes a Delta table by appending, exactly once.

1. *stage*: tasks write data files beside the table's own. Nobody reads them: no version names them.
2. *publish*: the driver commits the files of all tasks and the epoch as one version (see ``commits``).
3. *discard*: what is left behind stays until a VACUUM of the table, which removes files that no version
   names.

An INSERT OVERWRITE (batch only) also takes out all files that the version had, or those of the partitions
that are written to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.delta.commits import Change, DeltaCommits
from tidemill.connectors.delta.table import active_files, check_writable
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.connectors.lakehouse.writing import LakeWriter, files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSink:
    commits: DeltaCommits
    writer: LakeWriter
    overwrite: bool

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        return map_batches(frame, self.stager(epoch), "token STRING")

    def stager(self, epoch: int) -> LakeWriter:
        return self.writer

    def publish(self, epoch: int, tokens: list[str]) -> None:
        """ConnectorError where the table does not take the files; CommitUnknownError where nobody can tell
        whether it has them."""
        files = files_of(tokens)
        if files or self.overwrite:
            self.commits.commit(epoch, lambda table: self._change(table, files))

    def discard(self, epoch: int) -> None:
        self.commits.check_newer(epoch)

    def finish(self) -> None:
        """Nothing is left to do."""

    def _change(self, table: DeltaTable, files: list[dict[str, Any]]) -> Change:
        check_writable(
            self.commits.place,
            table,
            self.writer.fields,
            [f.name for f in self.writer.partitions],
            removes=self.overwrite,
        )
        return Change(added=files, removed=self._replaced(table, files) if self.overwrite else ())

    def _replaced(self, table: DeltaTable, files: list[dict[str, Any]]) -> list[DataFile]:
        """By the partition's directory, which is the writer's own for all files that it has written."""
        present = active_files(self.commits.place, table, (), ())
        if not self.writer.partitions:
            return present
        written = {file["path"].rpartition("/")[0] for file in files}
        return [file for file in present if file.path.rpartition("/")[0] in written]
