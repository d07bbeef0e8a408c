"""The table that collects late rows, with the epoch in which they came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.connectors import registry
from tidemill.connectors.api import Sink, SinkRequest
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.runtime.spark.late_rows import LateWriter
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

_FORM = "(operator STRING, reached TIMESTAMP_LTZ(3), line STRING)"


@dataclass(frozen=True, slots=True, kw_only=True)
class LateTable:
    sink: Sink
    watermark: pa.DataType

    def writer(self, epoch: int) -> LateWriter:
        """NotSupportedError if the tasks that find late rows cannot write to the table."""
        stager = self.sink.stager(epoch)
        if stager is None:
            raise NotSupportedError(
                "The table of late rows cannot be of this connector, or with these options",
                hint="Take a table of filesystem, jdbc, kafka, upsert-kafka, delta, iceberg or blackhole. "
                "A filesystem table may not have sink.parallelism or sink.shuffle-by-partition.enable.",
            )
        return LateWriter(stager=stager, watermark=self.watermark)


def late_table(
    table: CatalogTable, options: Mapping[str, str], job_id: str, zone: str, ordinal: int
) -> LateTable:
    """``table`` as the table of the job's late rows. ValidationError if its columns do not fit."""
    columns = table.physical_columns
    text, clock = (t.VarCharType,), t.TIMESTAMP_TYPES
    kinds = (text, clock, text)
    if len(columns) != 3 or not all(isinstance(c.type, k) for c, k in zip(columns, kinds, strict=True)):
        raise ValidationError(
            f"Table '{table.path}' cannot take late rows",
            hint=f"Its columns must be, under any names, {_FORM}.",
        )
    found = registry.validate(table, options, role="sink")
    request = SinkRequest(
        table=table,
        options=options,
        fields=tuple(Field(c.name, c.type) for c in columns),
        kinds=INSERT_ONLY,
        job_id=job_id,
        overwrite=False,
        static_partition={},
        time_zone=zone,
        streaming=True,
        ordinal=ordinal,
    )
    return LateTable(sink=found.sink(request), watermark=arrow_type(columns[1].type))
