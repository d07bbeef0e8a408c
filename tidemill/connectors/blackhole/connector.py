"""The ``blackhole`` connector: takes every row and forgets it. Rows are computed all the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.api import BatchMap, Connector, Sink, SinkRequest
from tidemill.connectors.arrow_maps import map_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BlackholeSink(Sink):
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


class BlackholeConnector(Connector):
    identifier = "blackhole"
    is_sink = True

    def sink_kinds(
        self, table: CatalogTable, options: Mapping[str, str], wanted: frozenset[RowKind]
    ) -> frozenset[RowKind]:
        return wanted - {RowKind.UPDATE_BEFORE}

    def sink(self, request: SinkRequest) -> BlackholeSink:
        return BlackholeSink()


CONNECTOR = BlackholeConnector()
