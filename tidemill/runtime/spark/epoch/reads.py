"""How the sources of an epoch are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import SparkSession

from tidemill.connectors.api import ArrowSource, Offset, ReadTasks, Source
from tidemill.errors import InternalError


@dataclass(frozen=True)
class Reads:
    """``ranges``: (start, end] per source. A source is asked for its tasks once, when they are wanted."""

    spark: SparkSession
    sources: Mapping[str, Source]
    ranges: Mapping[str, tuple[Offset | None, Offset]]
    _made: dict[str, ReadTasks] = field(default_factory=dict)

    def of(self, name: str) -> ReadTasks:
        """Of a source whose rows are Arrow batches. ConnectorError if it cannot say how its range is read."""
        if name not in self._made:
            source = self.sources[name]
            if not isinstance(source, ArrowSource):
                raise InternalError(f"source {name} does not make Arrow batches")
            self._made[name] = source.read_tasks(self.spark, *self.ranges[name])
        return self._made[name]

    @cached_property
    def all(self) -> dict[str, ReadTasks]:
        """By the names of the sources, whose rows are Arrow batches."""
        return {name: self.of(name) for name in self.sources}

    @cached_property
    def size(self) -> int | None:
        """About how many bytes; None if a source does not know."""
        if not all(isinstance(source, ArrowSource) for source in self.sources.values()):
            return None
        sizes = [made.size for made in self.all.values()]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def tasks(self) -> int:
        """How many tasks read, where all rows are Arrow batches."""
        return sum(len(made.tasks) for made in self.all.values())
