"""What a sink promises."""

# ruff: noqa: B027 - methods that do nothing by default are not abstract

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.errors import ValidationError
from tidemill.files.fence import OPEN, Fence
from tidemill.types.logical import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


BatchMap = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRequest:
    """``fields``: columns of the frames to come. ``kinds``: the RowKinds they will carry (a
    ``$kind`` column is present iff that is not insert-only). ``job_id`` is stable over restarts."""

    table: CatalogTable
    options: Mapping[str, str]
    fields: tuple[Field, ...]
    kinds: frozenset[RowKind]
    job_id: str
    overwrite: bool
    static_partition: Mapping[str, str]
    time_zone: str
    streaming: bool
    ordinal: int = 0
    """The sink's number within its job: two INSERTs of one job into one table must not collide."""
    fence: Fence = OPEN
    """Where links among its files may lead."""
    former: tuple[str, ...] = ()
    """Ids of the jobs whose state the job has taken up, by way of savepoints."""
    kept: tuple[str, ...] = ()
    """What ``Connector.kept_places`` has said for the sinks of the job and of those jobs."""
    ordered: bool = False
    """Tasks are in the order of arrival, rows within them too (nothing was exchanged since the sources)."""

    def refuse_streaming_overwrite(self) -> None:
        """ValidationError, in Flink's words, if a streaming job would overwrite the table."""
        if self.overwrite and self.streaming:
            raise ValidationError("Streaming mode not support overwrite.")


class Sink(ABC):
    """The base class of sinks: a table that is written, one epoch at a time, in two steps (see
    runtime.commit)."""

    __slots__ = ()

    @abstractmethod
    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        """A lazy frame with one STRING column ``token``: running it writes the rows of ``frame``
        where no reader sees them, under names of its attempt's own and durably, so that a task that
        runs twice, or outlives its epoch, harms nothing: only what tokens name is published. One token
        per task, JSON text, small."""

    @abstractmethod
    def publish(self, epoch: int, tokens: list[str]) -> None:
        """Makes the staged epoch visible, atomically as far as the outside system can; idempotent."""

    @abstractmethod
    def discard(self, epoch: int) -> None:
        """Removes the staged rows of ``epoch`` and later epochs, after a crash or a failed epoch."""

    def finish(self) -> None:
        """The job ended normally (bounded input): last clean-up, e.g. success files."""

    def stager(self, epoch: int) -> BatchMap | None:
        """``stage`` as a map over Arrow batches, so that it can run in the workers that make the rows; None
        if ``stage`` is no such map. Picklable. In: a task's batches (the request's fields by place, ``$kind``
        by name). Out: one row with the STRING column ``token``, with the promises of ``stage``. It is not
        called for tasks without rows."""
        return None

    def publish_with(self, spark: SparkSession) -> None:
        """Called once, before the first epoch is published. ``publish`` may use Spark's workers."""


class GroupedSink(Sink):
    """A sink that can commit together with other sinks of its job: sinks with an equal ``group`` are
    published by one call, so that a reader never sees different epochs in them."""

    __slots__ = ()

    @property
    @abstractmethod
    def group(self) -> Hashable:
        """For example the address of the database."""

    @abstractmethod
    def publish_group(self, epoch: int, parts: Sequence[tuple[Any, list[str]]]) -> None:
        """``parts``: every sink of the group with its tokens, this sink among them; idempotent."""
