"""Blocks are taken in the order of the tasks that wrote them, not in that of their arrival."""

from __future__ import annotations

import pyarrow as pa

from tidemill.runtime.spark.block_files import BlockWriter
from tidemill.runtime.spark.exchange import ExchangeWriter, PortRows, received


def blocks_of(task: int, values: list[float]) -> list[pa.RecordBatch]:
    writer = ExchangeWriter(port=0, rows=PortRows(columns=((0, "x"),), keys=()), partitions=1)
    return list(writer.blocks([pa.record_batch({"x": values})], task, BlockWriter()))


def test_rows_come_in_the_order_of_tasks() -> None:
    first, second = blocks_of(0, [0.1, 0.2]), blocks_of(1, [1e30])
    for arrived in ([*first, *second], [*second, *first]):
        _, (port,) = received(arrived, 1, {})
        assert [row for table in port.raw for row in table.column("x").to_pylist()] == [0.1, 0.2, 1e30]
