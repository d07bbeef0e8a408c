"""Any Spark source as a table.

Batch: the frame that ``spark.read`` gives. Streaming: a StreamingQuery copies its micro-batches into
a spool directory of Parquet files, one rename per micro-batch, and a watched file source reads the
spool; so ranges can be read again, which a streaming source alone cannot promise. The spool's place
is part of the offset, so a restarted job goes on with the same query. What was committed is removed.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, StreamingQueryException, UnsupportedOperationException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.connectors.api import Offset, ReadLimit, Source
from tidemill.connectors.api.source import WholeSource
from tidemill.connectors.filesystem.offsets import from_json
from tidemill.errors import ConnectorError, NotSupportedError
from tidemill.files.storage import Storage
from tidemill.types.logical import Field
from tidemill.types.physical import quote, spark_schema, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.readwriter import DataFrameReader
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader

_SPOOL = "spool"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkFormat:
    """``columns``: all physical columns of the table; ``fields``: those that are asked for; ``table``: one of
    Spark's catalogs, instead of a format's ``name``."""

    name: str
    options: Mapping[str, str]
    columns: tuple[Field, ...]
    fields: tuple[Field, ...]
    table: str = ""

    def load(self, reader: Callable[[], DataFrameReader | DataStreamReader]) -> DataFrame:
        """The source's frame with the table's columns by name, cast; ConnectorError where it has not
        all of them or cannot be opened. Sources that know their schema refuse to be given one."""
        try:
            frame = self._of_table(reader) if self.table else self._of_format(reader)
            return frame.select(*(F.col(quote(f.name)).cast(spark_type(f.type)) for f in self.columns))
        except (AnalysisException, UnsupportedOperationException) as e:
            raise ConnectorError(f"Spark source '{self.shown}': {str(e).splitlines()[0]}") from None
        except Exception as e:
            if "ClassNotFound" in str(e) or "DATA_SOURCE_NOT_FOUND" in str(e):
                raise ConnectorError(f"Spark has no data source '{self.name}' on its class path.") from None
            raise

    @property
    def shown(self) -> str:
        return self.name or self.table

    def _of_table(self, reader: Callable[[], DataFrameReader | DataStreamReader]) -> DataFrame:
        return reader().options(**self.options).table(self.table)

    def _of_format(self, reader: Callable[[], DataFrameReader | DataStreamReader]) -> DataFrame:
        try:
            return self._configured(reader).schema(spark_schema(self.columns)).load()
        except (AnalysisException, UnsupportedOperationException):
            return self._configured(reader).load()

    def _configured(
        self, reader: Callable[[], DataFrameReader | DataStreamReader]
    ) -> DataFrameReader | DataStreamReader:
        return reader().format(self.name).options(**self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkBatchSource(WholeSource):
    """Read once and whole, in batch mode only."""

    format: SparkFormat
    sequence: bool

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        frame = self.format.load(lambda: spark.read).select(*(quote(f.name) for f in self.format.fields))
        if self.sequence:
            frame = frame.withColumn(SEQUENCE_COLUMN, F.monotonically_increasing_id())
        return frame


@dataclass(kw_only=True)
class SparkStreamSource(Source):
    """``spool``: makes the file source over a spool directory; ``root``: where spools are made."""

    format: SparkFormat
    spool: Callable[[str], Source]
    root: str
    records: Storage | None = None
    _open: dict[str, Source] = field(default_factory=dict, repr=False)
    _queries: dict[str, StreamingQuery] = field(default_factory=dict, repr=False)

    @property
    def is_bounded(self) -> bool:
        return False

    def record_in(self, storage: Storage) -> None:
        self.records = storage

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        """ConnectorError when the query has failed."""
        place = start[_SPOOL] if start else self._new_spool()
        self._running(place)
        if start:
            _forget(Path(place), start)
        return {**self._source(place).next_offset(start, limit), _SPOOL: place}

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return self._source(end[_SPOOL]).is_empty(start, end)

    def is_finished(self, offset: Offset | None) -> bool:
        return False

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        return self._source(end[_SPOOL]).read(spark, start, end)

    def read_all(self, spark: SparkSession) -> DataFrame:
        raise NotSupportedError("A Spark streaming source cannot be read in batch mode.")

    def _new_spool(self) -> str:
        """One per source object, kept until the first offset is committed."""
        if self._open:
            return next(iter(self._open))
        Path(self.root).mkdir(parents=True, exist_ok=True)
        return tempfile.mkdtemp(prefix="tidemill-spool-", dir=self.root)

    def _source(self, place: str) -> Source:
        if place not in self._open:
            if not Path(place).is_dir():
                raise ConnectorError(
                    f"The spool directory {place} of a Spark streaming source is gone.",
                    hint="Set the option 'spool.path' to a directory that outlives the machine's restarts.",
                )
            (Path(place) / "data").mkdir(exist_ok=True)
            self._open[place] = made = self.spool(str(Path(place) / "data"))
            if self.records is not None:
                made.record_in(self.records)
        return self._open[place]

    def _running(self, place: str) -> None:
        self._source(place)
        query = self._queries.get(place)
        if query is None:
            query = self._queries[place] = self._start(Path(place))
            weakref.finalize(self, _stop, query)
        failure: StreamingQueryException | None = query.exception()
        if failure is not None:
            text = str(failure).splitlines()[0]
            raise ConnectorError(f"Spark streaming source '{self.format.shown}' failed: {text}")

    def _start(self, place: Path) -> StreamingQuery:
        session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        stream = self.format.load(lambda: session.readStream)
        writer = stream.writeStream.foreachBatch(_Spooler(place))
        return writer.option("checkpointLocation", str(place / "checkpoint")).start()


def _stop(query: StreamingQuery) -> None:
    query.stop()


@dataclass(frozen=True, slots=True)
class _Spooler:
    """Writes a micro-batch where no reader looks, then renames it into place; once per batch id."""

    place: Path

    def __call__(self, batch: DataFrame, number: int) -> None:
        final = self.place / "data" / f"batch-{number:012d}"
        if final.exists() or (self.place / "done" / final.name).exists():
            return
        hidden = self.place / "data" / f".{final.name}"
        batch.write.mode("overwrite").parquet(str(hidden))
        hidden.rename(final)


def _forget(place: Path, start: Offset) -> None:
    """Removes micro-batches that are committed whole; their names stay, so that none comes again."""
    files = from_json(start, str(place / "data")).files
    last = files[-1].path.split("/")[0] if files else ""
    for name in {f.path.split("/")[0] for f in files} - {last}:
        batch = place / "data" / name
        if batch.exists():
            (place / "done").mkdir(exist_ok=True)
            (place / "done" / name).touch()
            shutil.rmtree(batch)
