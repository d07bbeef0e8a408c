"""Writes a table of versions by its primary key, exactly once.

1. *stage*: tasks keep the changes of an epoch by key, as files below ``_tidemill`` in the table's directory,
   which no version names.
2. *publish*: the buckets that have changes are merged with the files of the newest version, in Spark's
   workers where that is much, and one version takes the new files in and the old ones out. If another writer
   has made that version meanwhile, the buckets are merged again: the changes are still there.
3. The staged changes go away after that. Merged files that no version names stay until the table is cleaned
   up in its format's way.

The cost of an epoch follows the buckets that it touches (see ``lakehouse.merging``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.connectors.api import Sink, SinkRequest
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.lakehouse.api import Change, Marked, Version
from tidemill.connectors.lakehouse.buckets import bucket_keys
from tidemill.connectors.lakehouse.changes import ChangeStager, Partition, Staged, staged_units
from tidemill.connectors.lakehouse.commits import Commits
from tidemill.connectors.lakehouse.merging import BucketMerger
from tidemill.connectors.lakehouse.sink import LakeSink, replaced_files
from tidemill.connectors.lakehouse.units import merged, plan_units
from tidemill.connectors.lakehouse.writing import LakeWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def lake_sink(
    request: SinkRequest, commits: Commits, writer: LakeWriter, directory: str, buckets: int
) -> LakeSink | UpsertSink:
    """Of a table with a primary key one that upserts, of others one that appends. ``directory``: as of
    UpsertSink."""
    if not request.table.primary_key:
        return LakeSink(
            commits=commits, writer=writer, overwrite=request.overwrite, rewriting=request.table.rewriting
        )
    return UpsertSink(
        commits=commits,
        writer=writer,
        directory=directory,
        keys=bucket_keys(request.table),
        buckets=buckets,
        ordered=request.ordered,
        overwrite=request.overwrite,
    )


@dataclass(slots=True, kw_only=True)
class UpsertSink(Sink):
    """``directory``: its own for staged changes, stable over restarts; the keys and buckets are as of
    BucketMerger."""

    commits: Commits
    writer: LakeWriter
    directory: str
    keys: tuple[str, ...]
    buckets: int
    ordered: bool
    overwrite: bool
    spark: SparkSession | None = field(default=None, repr=False)

    def publish_with(self, spark: SparkSession) -> None:
        self.spark = spark

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        return map_batches(frame, self.stager(epoch), "token STRING")

    def stager(self, epoch: int) -> ChangeStager:
        return ChangeStager(
            writer=self.writer, keys=self.keys, buckets=self.buckets, directory=self._staged(epoch)
        )

    def publish(self, epoch: int, tokens: list[str]) -> None:
        """ConnectorError where the table does not take the rows; CommitUnknownError where nobody can tell
        whether it has them."""
        staged = staged_units(tokens)
        if staged or self.overwrite:
            self.commits.commit(epoch, lambda version: self._change(version, epoch, staged))
        self.writer.storage.remove_directory(self._staged(epoch))

    def discard(self, epoch: int) -> None:
        """Of the epoch before it, which may yet be published again, nothing goes."""
        self.commits.check_newer(epoch)
        for name in self.writer.storage.directories(self.directory):
            if name.isdecimal() and int(name) >= epoch:
                self.writer.storage.remove_directory(f"{self.directory}/{name}")

    def finish(self) -> None:
        self.writer.storage.remove_directory(self.directory)

    def _staged(self, epoch: int) -> str:
        return f"{self.directory}/{epoch}"

    def _change(
        self, version: Version, epoch: int, staged: Mapping[tuple[Partition, int], Sequence[Staged]]
    ) -> Change:
        version.check(removes=True)
        files = version.files(self.keys)
        units = plan_units([] if self.overwrite else files, staged, self.writer.partitions, self.buckets)
        results = merged(self._merger(epoch, version), units, self.spark)
        gone = {path for result in results for path in result["removed"]}
        gone |= {file.path for unit in units for file in unit.foreign}
        if self.overwrite:
            gone = {f.path for f in replaced_files(files, [u.partition for u in units], self.writer)}
        current = {file.path: file for file in files}
        return Change(
            added=[file for result in results for file in result["added"]],
            removed=[file for file in files if file.path in gone],
            marked=[
                Marked(file=current[mark["path"]], vector=mark["vector"], columns=mark["columns"])
                for result in results
                for mark in result["marked"]
            ],
        )

    def _merger(self, epoch: int, version: Version) -> BucketMerger:
        return BucketMerger(
            writer=self.writer,
            keys=self.keys,
            buckets=self.buckets,
            directory=self._staged(epoch),
            ordered=self.ordered,
            vectors=version.vectors(),
        )
