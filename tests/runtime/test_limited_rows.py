"""A LIMIT reads on where the last part has ended, and stops at the part that has its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pytest

from tests.connectors.sources import table
from tidemill.connectors.api import Offset, ReadLimit, Source
from tidemill.physical.batch.nodes import TableSourceScan
from tidemill.physical.batch.portions import limit_by_portions
from tidemill.physical.nodes import PhysicalNode, SortLimit
from tidemill.runtime.batch.limited_rows import Stretch, limited_rows
from tidemill.types import logical as t
from tidemill.types.logical import Field

KIB, MIB = 1 << 10, 1 << 20
SIZE = 40 * MIB
FIRST, SECOND = 256 * KIB, 4 * MIB + 256 * KIB
"""Where the parts end."""


@dataclass(frozen=True)
class Bytes:
    """A source of ``SIZE`` bytes. ``matching``: where rows are that a condition leaves."""

    matching: tuple[int, ...]
    is_bounded: bool = True
    gives_portions: bool = True

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        return {"at": SIZE if limit.bytes is None else (start or {"at": 0})["at"] + limit.bytes}

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not asked for")


def rows_of(matching: tuple[int, ...], fetch: int, offset: int) -> tuple[list[int], list[tuple[int, int]]]:
    """The rows, and the parts that were read for them."""
    fields = (Field("v", t.BIGINT),)
    scan = TableSourceScan(
        fields=fields, most=SIZE, table=table({"v": t.BIGINT}, {}), columns=("v",), options=()
    )
    asked = limit_by_portions(SortLimit(fields=fields, input=scan, order=(), fetch=fetch, offset=offset))
    assert asked is not None
    read = []

    def run(part: PhysicalNode, stretch: Stretch) -> pa.Table:
        assert isinstance(part, SortLimit)
        assert (part.offset, stretch.scan) == (0, scan)
        begin, end = (stretch.start or {"at": 0})["at"], stretch.end["at"]
        read.append((begin, end))
        return pa.table(
            {"v": pa.array([at for at in matching if begin <= at < end][: part.fetch], pa.int64())}
        )

    return limited_rows(asked, cast(Source, Bytes(matching)), run)["v"].to_pylist(), read


@pytest.mark.parametrize(
    ("matching", "fetch", "offset", "rows", "read"),
    [
        ((1, 2, 3, 4), 3, 0, [1, 2, 3], [(0, FIRST)]),
        ((1, FIRST, FIRST + 1, SECOND), 3, 0, [1, FIRST, FIRST + 1], [(0, FIRST), (FIRST, SECOND)]),
        ((1, FIRST, SECOND), 1, 1, [FIRST], [(0, FIRST), (FIRST, SECOND)]),
        ((SIZE - 1,), 2, 0, [SIZE - 1], [(0, FIRST), (FIRST, SECOND), (SECOND, SIZE)]),
        ((1, 2), 2, 5, [], [(0, FIRST), (FIRST, SECOND), (SECOND, SIZE)]),
        ((), 2, 0, [], [(0, FIRST), (FIRST, SECOND), (SECOND, SIZE)]),
    ],
)
def test_no_part_is_read_twice(
    matching: tuple[int, ...], fetch: int, offset: int, rows: list[int], read: list[tuple[int, int]]
) -> None:
    assert rows_of(matching, fetch, offset) == (rows, read)
