"""What an exchange combines before it sends: chunks whose keys repeat."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

from tidemill.operators.rank.operator import RankSpec
from tidemill.operators.rows.ordering import OrderKey
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
