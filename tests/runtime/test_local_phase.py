"""What an exchange combines before it sends: chunks whose keys repeat; and what becomes of an epoch whose
combined rows do not tell enough."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Session
from tidemill.connectors.filesystem import source as filesystem
from tidemill.operators.rank.operator import RankSpec
from tidemill.operators.rows.ordering import OrderKey
from tidemill.runtime.epoch_loop import StreamingJob
from tidemill.runtime.spark.block_files import BlockWriter
from tidemill.runtime.spark.exchange import ExchangeWriter, Form, PortRows

ROWS = 1 << 18
SPEC = RankSpec(
    function="ROW_NUMBER",
    columns=(("k", pa.int64()), ("v", pa.int64())),
    partition=("k",),
    order=(OrderKey("v", False, False),),
    start=1,
    end=1,
)


def sent(keys: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[tuple[bool, pa.Table]]:
    values = np.arange(len(keys)) % 1000
    batch = pa.record_batch({"k": keys, "v": values, "$seq": np.arange(len(keys))})
    shape = PortRows(columns=((0, "k"), (1, "v"), (2, "$seq")), keys=("k",))
    writer = ExchangeWriter(port=0, rows=shape, partitions=2, local=SPEC)
    for block in writer.blocks([batch], 0, BlockWriter()):
        ((_, _, form, _, data),) = zip(*(c.to_pylist() for c in block.columns), strict=True)
        yield form == Form.COMBINED, ipc.open_stream(pa.py_buffer(data)).read_all()


@pytest.mark.parametrize("keys", [1, 1000, 60_000])
def test_keys_that_repeat_are_combined(keys: int) -> None:
    rng = np.random.default_rng(keys)
    blocks = list(sent(rng.integers(0, keys, ROWS)))
    assert all(partial for partial, _ in blocks)
    found = sorted(k for _, rows in blocks for k in rows.column("k").to_pylist())
    assert len(found) == len(set(found)) == pytest.approx(keys, rel=0.02)


@pytest.mark.parametrize("keys", [250_000, 10**9])
def test_keys_that_hardly_repeat_are_sent_as_they_are(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(spec: RankSpec, table: pa.Table) -> pa.Table:
        raise AssertionError("combining was tried")

    monkeypatch.setattr(RankSpec, "combine", never)
    blocks = list(sent(np.random.default_rng(keys).integers(0, keys, ROWS)))
    assert not any(partial for partial, _ in blocks)
    assert sum(len(rows) for _, rows in blocks) == ROWS


@pytest.mark.parametrize(("begin", "runs"), [(895, 1), (0, 2)])
def test_sessions_whose_rows_may_be_late_get_them_as_they_are(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, begin: int, runs: int
) -> None:
    """The rows of ``y`` are in order, and what their task has seen makes none of them late; but the file
    before theirs ends at 900."""
    _write(tmp_path / "1.csv", "x", [t * 30 for t in range(30_001)])
    times = [begin * 1000 + t * 40 for t in range(30_000)]
    _write(tmp_path / "2.csv", "y", times)
    ran: list[int] = []
    run = StreamingJob._run

    def noted(job: StreamingJob, plan: Any) -> Any:
        ran.append(plan.epoch)
        return run(job, plan)

    monkeypatch.setattr(StreamingJob, "_run", noted)
    monkeypatch.setattr(filesystem, "_TASK_BYTES", 1 << 16)
    made = Session({"tidemill.epoch.max-rows": "100000"})
    made.execute(
        "CREATE TABLE clicks (ts TIMESTAMP(3), k STRING, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)"
        f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv')"
    )
    changes = made.changes(
        "SELECT k, COUNT(*), COUNT(DISTINCT EXTRACT(MINUTE FROM ts)), window_start"
        " FROM TABLE(SESSION(TABLE clicks PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND))"
        " GROUP BY k, window_start, window_end"
    )
    kept = [t for t in times if t + 5_000 - 1 > 898_000]
    minutes = len({t // 60_000 % 60 for t in kept})
    first = dt.datetime(2024, 5, 1) + dt.timedelta(milliseconds=kept[0])
    assert {row[0]: row[1:] for _, row in changes} == {
        "x": (30_001, 16, dt.datetime(2024, 5, 1)),
        "y": (len(kept), minutes, first),
    }
    assert len(changes) == 2
    assert sum(epoch == 1 for epoch in ran) == runs


def _write(path: Path, key: str, times: list[int]) -> None:
    stamps = (dt.datetime(2024, 5, 1) + dt.timedelta(milliseconds=t) for t in times)
    path.write_text("".join(f"{t:%Y-%m-%d %H:%M:%S.%f}"[:-3] + f",{key}\n" for t in stamps))
