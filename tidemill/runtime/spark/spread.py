"""One pass over a node's rows for several readers: in the worker that makes them, as Arrow blocks.

Each reader has a number. A stage gets the exchange blocks of its ports; a reader that needs the rows
unchanged gets them whole (``ROWS``). Spark keeps the frame of all blocks for the epoch (few rows with large
binary values, so no row is touched), and each reader takes the blocks with its number. Cost: a copy of the
blocks, instead of reading and computing the rows again for each reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tidemill.connectors.api import BatchMap
from tidemill.runtime.spark.block_files import BlockReader, BlockWriter
from tidemill.runtime.spark.exchange import (
    BLOCK_COLUMN,
    BLOCK_SCHEMA,
    Form,
    Writers,
    block_row,
    chunks,
)
from tidemill.runtime.spark.settings import ARROW_ROWS_PER_BATCH
from tidemill.runtime.spark.watermark_stage import task_number

READER_COLUMN = "$reader"
SPREAD_SCHEMA = f"`{READER_COLUMN}` INT, {BLOCK_SCHEMA}"
ROWS = -1
"""The reader that takes rows as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadWriter:
    """``readers``: the writers of each stage by its number; ``rows``: somebody wants them as they are;
    ``folder``: of large blocks."""

    readers: tuple[tuple[int, Writers], ...]
    rows: bool
    folder: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = task_number()
        with BlockWriter(self.folder) as writer:
            for chunk in chunks(batches):
                if self.rows:
                    whole = writer.written(pa.Table.from_batches(chunk))
                    yield _numbered(ROWS, block_row(0, 0, Form.RAW, task, whole))
                for number, writers in self.readers:
                    for block in writers.blocks(chunk, task, writer):
                        yield _numbered(number, block)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOfBlocks:
    """The rows of whole blocks under ``names``, or what ``then`` makes of them."""

    names: tuple[str, ...]
    then: BatchMap | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = self._rows(batches)
        yield from rows if self.then is None else self.then(rows)

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = BlockReader()
        for batch in batches:
            for block in batch.column(BLOCK_COLUMN):
                table = reader.table(block.as_buffer())
                yield from table.rename_columns(list(self.names)).to_batches(
                    max_chunksize=ARROW_ROWS_PER_BATCH
                )


def _numbered(number: int, block: pa.RecordBatch) -> pa.RecordBatch:
    return block.add_column(0, READER_COLUMN, pa.array([number] * block.num_rows, pa.int32()))
