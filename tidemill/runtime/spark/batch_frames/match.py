"""MATCH_RECOGNIZE in batch: the streaming search over whole keys, one exchange, a task's rows in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.changelog.batch import contiguous, hashes_of
from tidemill.changelog.columns import single, vector
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.changelog.watermarks import END
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import TidemillError
from tidemill.operators.match.operator import MatchSpec, grouped, key_slices
from tidemill.operators.rows.keyed_values import Keys
from tidemill.physical import nodes as p
from tidemill.runtime.compile.match import match_parts
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.physical import quote, spark_schema


def match_frame(node: p.Match, below: DataFrame, zone: str) -> DataFrame:
    """``below`` (with ``$seq``) searched; the columns are the node's fields."""
    inputs = node.input.fields
    parts = match_parts(node, inputs)
    before = Translator(columns=tuple(f.name for f in inputs), zone=zone)
    carried = [f"{before.sql(x)} AS {quote(name)}" for name, x in parts.carried]
    rows = below.selectExpr(*carried, quote(SEQUENCE_COLUMN))
    keys = [F.col(quote(name)) for name in parts.spec.keys]
    together = rows.repartition(*keys) if keys else rows.coalesce(1)
    found = map_batches(together, _MatchTask(spec=parts.spec), spark_schema(parts.fields))
    after = Translator(columns=tuple(f.name for f in parts.fields), zone=zone)
    shown = zip(parts.outputs, node.fields, strict=True)
    return found.selectExpr(*(f"{after.sql(x)} AS {quote(f.name)}" for x, f in shown))


@dataclass(frozen=True, slots=True, kw_only=True)
class _MatchTask:
    """All rows of a Spark partition in, a row per match out."""

    spec: MatchSpec

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = [batch for batch in batches if batch.num_rows]
        if not pieces:
            return
        try:
            found = self._found(pa.Table.from_batches(pieces))
        except TidemillError as e:
            raise WorkerError(e) from None
        yield from found.combine_chunks().to_batches()

    def _found(self, table: pa.Table) -> pa.Table:
        spec = self.spec
        types = [*(kind for _, kind in spec.columns), pa.int64()]
        names = [*(name for name, _ in spec.columns), SEQUENCE_COLUMN]
        table = contiguous(table.cast(pa.schema(list(zip(names, types, strict=True)))))
        columns = [single(table.column(name)) for name in spec.keys]
        slices = key_slices(hashes_of(table, columns))
        return pa.concat_tables(self._of_keys(table.take(pa.array(rows))) for rows in slices)

    def _of_keys(self, table: pa.Table) -> pa.Table:
        spec = self.spec
        columns = [single(table.column(name)) for name in spec.keys]
        _, numbers = Keys.of(columns, hashes_of(table, columns))
        order = spec.sorted(table, numbers, vector(table.column(SEQUENCE_COLUMN)).values)
        rows, begins = grouped(spec, table.take(pa.array(order)), numbers[order], END)
        attempts, found = spec.matches(rows, begins, np.ones(len(rows), np.bool_))
        results = spec.results_of(rows, attempts, found.matches)
        return pa.Table.from_arrays(results, schema=spec.output_schema())
