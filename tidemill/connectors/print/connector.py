"""The ``print`` connector: rows as lines on standard output, after their epoch is committed.

The lines travel in the stage tokens, so that nothing is shown of an epoch that fails, and an epoch
is shown once unless the driver dies between commit and output. Cost: all rows go through the driver.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.connectors.api import BatchMap, Connector, ConnectorOption, Sink, SinkRequest
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.option_values import OptionValues
from tidemill.functions.text.to_string import to_string
from tidemill.types.logical import Field
from tidemill.types.python_values import python_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OPTIONS = (
    ConnectorOption(key="print-identifier", doc="Written before each row, as in 'name> +I[1]'."),
    ConnectorOption(key="standard-error", kind="bool", default="false", doc="Write to standard error."),
    ConnectorOption(key="sink.parallelism", kind="int", least=1, doc="Accepted; rows go through the driver."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintSink(Sink):
    fields: tuple[Field, ...]
    prefix: str
    standard_error: bool

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        names = [f.name for f in self.fields] + [c for c in (KIND_COLUMN,) if c in frame.columns]
        columns = [f"`{name.replace('`', '``')}`" for name in names]
        return map_batches(frame.select(*columns), _render(self.fields), "token STRING")

    def publish(self, epoch: int, tokens: list[str]) -> None:
        stream = sys.stderr if self.standard_error else sys.stdout
        for token in tokens:
            for line in json.loads(token):
                stream.write(f"{self.prefix}{line}\n")
        stream.flush()

    def discard(self, epoch: int) -> None:
        pass

    def finish(self) -> None:
        pass


def _render(fields: tuple[Field, ...]) -> BatchMap:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lines = [line for batch in batches for line in _lines(batch, fields)]
        yield pa.record_batch([pa.array([json.dumps(lines)])], names=["token"])

    return run


def _lines(batch: pa.RecordBatch, fields: tuple[Field, ...]) -> list[str]:
    """A line per row, as ``+I[1, a]``; ``batch`` has the fields and, unless insert-only, ``$kind``."""
    columns = [list(map(to_string(f.type), python_values(batch.column(i)))) for i, f in enumerate(fields)]
    kinds = [RowKind.INSERT.value] * batch.num_rows
    if KIND_COLUMN in batch.schema.names:
        kinds = batch.column(KIND_COLUMN).to_pylist()
    rows = zip(*columns, strict=True) if columns else [()] * batch.num_rows
    return [f"{RowKind(k).short}[{', '.join(row)}]" for k, row in zip(kinds, rows, strict=True)]


class PrintConnector(Connector):
    identifier = "print"
    options = _OPTIONS
    is_sink = True

    def sink_kinds(
        self, table: CatalogTable, options: Mapping[str, str], wanted: frozenset[RowKind]
    ) -> frozenset[RowKind]:
        return wanted

    def sink(self, request: SinkRequest) -> PrintSink:
        options = OptionValues(self.options, request.options)
        name = options["print-identifier"]
        return PrintSink(
            fields=request.fields,
            prefix=f"{name}> " if name else "",
            standard_error=options["standard-error"],
        )


CONNECTOR = PrintConnector()
