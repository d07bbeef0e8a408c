"""Blocks are taken in the order of the tasks that wrote them, not in that of their arrival."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidemill.runtime.spark import exchange
from tidemill.runtime.spark.exchange import ExchangeWriter, PortRows, received


def blocks_of(task: int, values: list[float], monkeypatch: pytest.MonkeyPatch) -> list[pa.RecordBatch]:
    monkeypatch.setattr(exchange, "task_number", lambda: task)
    writer = ExchangeWriter(port=0, rows=PortRows(columns=((0, "x"),), keys=()), partitions=1)
    return list(writer([pa.record_batch({"x": values})]))


def test_rows_come_in_the_order_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = blocks_of(0, [0.1, 0.2], monkeypatch), blocks_of(1, [1e30], monkeypatch)
    for arrived in ([*first, *second], [*second, *first]):
        _, (port,) = received(arrived, 1, {})
        assert [row for table in port.raw for row in table.column("x").to_pylist()] == [0.1, 0.2, 1e30]
