"""One input of a window buffer: its waiting rows, and the counted rows of an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import weights_of
from tidemill.changelog.columns import Ints, single, vector
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.operators.rows.stored_before import Late
from tidemill.operators.rows.waiting import WaitingRows, each_copy, summed
from tidemill.operators.window.output import MICROSECONDS
from tidemill.state.run import DUE


@runtime_checkable
class Choosing(Protocol):
    """An operator that emits some of its rows unchanged. ``prunes``: other rows may displace a row for
    good."""

    @property
    def prunes(self) -> bool: ...

    def promising(self, table: pa.Table) -> Ints:
        """The rows that it may still emit, whatever other rows come."""
        ...


@dataclass(frozen=True, kw_only=True)
class BufferedPort:
    """``columns``: the row, (name, type); ``keys``: those that rows are sent by; ``end``: the end of the
    window, in local time. ``ordered``: rows only come, and carry ``$seq``; ``retracts``: they are changes,
    whose rows have no order but that of their contents. ``late``: as in ``WaitingRows``."""

    name: str
    columns: tuple[tuple[str, pa.DataType], ...]
    keys: tuple[str, ...]
    end: str
    ordered: bool = False
    retracts: bool = False
    late: Late | None = None

    @cached_property
    def waiting(self) -> WaitingRows:
        """Rows by the end of their window."""
        sequence = ((SEQUENCE_COLUMN, pa.int64()),) * self.ordered
        columns = self.columns if self.late is None else sorted(self.columns)
        return WaitingRows(name=self.name, columns=(*columns, *sequence), keys=self.keys, late=self.late)

    def ends(self, table: pa.Table) -> Ints:
        """The end of each row's window, in ms."""
        if len(table) == 0:
            return np.zeros(0, np.int64)
        ends: Ints = vector(single(table.column(self.end))).values // MICROSECONDS
        return ends

    def as_given(self, rows: pa.Table) -> pa.Table:
        """Rows as the inner operator gets them: as often as their weights say; of changes what they add up
        to, in the order of contents."""
        if not self.retracts:
            return each_copy(rows).drop_columns([DUE])
        whole = each_copy(summed(rows)).drop_columns([DUE])
        return whole.append_column(SEQUENCE_COLUMN, pa.array(np.arange(len(whole), dtype=np.int64)))


@dataclass(frozen=True, slots=True)
class Came:
    """The rows that came to a port in an epoch: ``table``, the ends of its windows, and the numbers of the
    ``rows`` that are not late. ``waited``: the stored rows of windows that have ended."""

    port: BufferedPort
    table: pa.Table
    ends: Ints
    rows: Ints
    waited: pa.Table

    def weighted(self, rows: Ints) -> pa.Table:
        """``rows`` of the table as they are kept."""
        chosen = self.table.take(pa.array(rows))
        return self.port.waiting.weighted(chosen, self.ends[rows], weights_of(chosen))
