"""The ``blackhole`` connector: takes every row and forgets it. Rows are computed all the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.connectors.api import BatchMap, ConnectorOption, SinkRequest, Source, SourceRequest
from tidemill.connectors.arrow_maps import map_batches
from tidemill.errors import NotSupportedError
from tidemill.types.logical import LogicalType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BlackholeSink:
    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        return map_batches(frame, _swallow, "token STRING")

    def stager(self, epoch: int) -> BatchMap:
        return _swallow

    def publish(self, epoch: int, tokens: list[str]) -> None:
        pass

    def discard(self, epoch: int) -> None:
        pass

    def finish(self) -> None:
        pass


def _swallow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(b.num_rows for b in batches)
    yield pa.record_batch([pa.array([f'{{"rows": {rows}}}'])], names=["token"])


class BlackholeConnector:
    identifier = "blackhole"
    options: tuple[ConnectorOption, ...] = ()
    allows_unknown_options = False
    is_source = False
    is_sink = True

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        pass

    def metadata(self, options: Mapping[str, str]) -> Mapping[str, LogicalType]:
        return {}

    def source_kinds(self, table: CatalogTable, options: Mapping[str, str]) -> frozenset[RowKind]:
        return INSERT_ONLY

    def sink_kinds(
        self, table: CatalogTable, options: Mapping[str, str], wanted: frozenset[RowKind]
    ) -> frozenset[RowKind]:
        return wanted - {RowKind.UPDATE_BEFORE}

    def source(self, request: SourceRequest) -> Source:
        raise NotSupportedError("Connector 'blackhole' cannot be used as a source.")

    def sink(self, request: SinkRequest) -> BlackholeSink:
        return BlackholeSink()


CONNECTOR = BlackholeConnector()
