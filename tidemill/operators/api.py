"""The contract between the exec graph and a kernel.

A stateful operator is a frozen, picklable spec. The runtime hash-partitions the operator's input by
``spec`` key columns and calls, in a Spark Python worker, once per (operator, partition, epoch)::

    output = spec.step(inputs, state, epoch)

``inputs``: one Arrow table per input port, whole for this partition and epoch; columns are the ones
the spec names, then ``$kind`` (int8, absent: all +I), ``$seq`` (int64, where the spec asks for it) and
``$hash`` (uint64 of the partition key, made by the exchange; key groups and state order follow it). An
operator that works by event time also gets ``$wm`` (int64, the watermark that the rows before had reached),
and is called in every epoch, with or without rows.
``state``: this operator's ``StateStore`` for the partition (see ``state.store``): reads the spine of
epoch-1, buffers this epoch's new runs; the runtime flushes it after the step. The output has the
spec's ``output`` columns, then ``$kind`` unless the operator is insert-only, then ``$seq`` where asked.

A step is pure in (inputs, state) and deterministic: a task may run twice, its files come out the same.
No per-row Python; no imports but numpy, pyarrow, ``state``, ``changelog``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask
from tidemill.changelog.watermarks import NONE

if TYPE_CHECKING:
    from tidemill.state.layout import Layout
    from tidemill.state.store import StateStore


HASH_COLUMN = "$hash"
TIMER = "timer"
"""What the time of an operator's next timer is noted as."""
AGAIN = "again"
"""Noted where a step cannot tell its output from rows that were combined: the epoch is to run again with the
rows as they are."""

HOT = "hot"
"""Noted for keys (their hashes) that have many rows and nothing in state yet: from this epoch on their rows
go to all buckets (see ``operators.buckets``)."""


@dataclass(slots=True)
class LateRows:
    """The late rows of one step. ``wanted``: whether the rows themselves are kept."""

    wanted: bool = False
    count: int = 0
    rows: list[pa.Table] = field(default_factory=list)

    def add(self, table: pa.Table, late: Mask, sizes: Ints | None = None) -> None:
        """Adds the ``late`` rows of ``table``. ``sizes``: the number of rows that each stands for; default
        1."""
        if late.any():
            self.count += int(np.count_nonzero(late) if sizes is None else sizes[late].sum())
            if self.wanted:
                self.rows.append(table.filter(pa.array(late)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochContext:
    """``time``: the epoch's processing time in milliseconds, fixed by its plan record (for TTL).

    ``watermark``: the event time over all inputs after the epoch's rows, in milliseconds; ``before``: before
    them. ``reached``: as ``watermark``, without the jump to the last time at the end of the input. ``late``:
    rows that came too late. ``notes``: reports of the operator by name (``timer``: the processing time, in
    ms, at which it needs an epoch, with or without rows; ``again``, ``hot``: see ``AGAIN``, ``HOT``)."""

    epoch: int
    time: int
    partition: int
    first: bool = False
    watermark: int = NONE
    before: int = NONE
    reached: int = NONE
    late: LateRows = field(default_factory=LateRows)
    notes: dict[str, Any] = field(default_factory=dict)


class OperatorSpec(Protocol):
    """``fingerprint`` names the state layout: same fingerprint, same meaning of the state."""

    @property
    def fingerprint(self) -> str: ...

    def output_schema(self) -> pa.Schema: ...

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table: ...


@runtime_checkable
class Evolving(Protocol):
    """An operator whose state a changed query can use: calls may be added and removed, each with its
    columns."""

    @property
    def evolving(self) -> tuple[Layout, ...]:
        """The tables whose columns depend on the calls; none if the fingerprint determines the layout."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRows:
    """The input rows that an operator keeps. A changed query may have other columns in them.

    ``layouts``: the tables; none if columns are stored by position. ``needed``: the columns besides the keys
    that every row must have. ``most``: the most ranks per key; None: all rows. ``finds``: a retraction finds
    a row that was stored with fewer columns. For rows that expire it might find another row. ``order``: the
    columns that order the rows of a key, where arrival decides between rows that are equal in them; None:
    arrival decides nothing."""

    layouts: tuple[Layout, ...]
    needed: frozenset[str] = frozenset()
    most: int | None = None
    finds: bool = True
    order: tuple[str, ...] | None = None


@runtime_checkable
class KeepsRows(Protocol):
    """An operator that keeps rows of its input."""

    @property
    def kept_rows(self) -> KeptRows: ...


@runtime_checkable
class TakesRows(KeepsRows, Protocol):
    """An operator whose state can be built from rows of its inputs. The first of its ``kept_rows`` tables
    have these rows, one table per input. The operator derives all other columns and tables."""

    def take_in(self, port: int, rows: pa.Table, state: StateStore, epoch: EpochContext) -> None:
        """Leaves the state that a step leaves if ``rows`` come on input ``port`` and nothing else comes, and
        emits nothing. ``rows``: as for ``step``, without ``$kind``, maybe with ``$copies``, and with ``$seq``
        if the table has it."""
        ...


@runtime_checkable
class LocalPhase(Protocol):
    """An operator with one input that can do a part of its work before the exchange, if ``combinable``."""

    @property
    def combinable(self) -> bool: ...

    def combine(self, table: pa.Table) -> pa.Table:
        """Combines input rows (with ``$hash``) into fewer rows (with ``$hash``) in the operator's own
        form."""
        ...

    def merged(self, raw: list[pa.Table], combined: list[pa.Table]) -> tuple[OperatorSpec, pa.Table]:
        """The operator for partly combined input, and its input: ``raw`` and ``combined`` rows in one
        form."""
        ...


@runtime_checkable
class Condensing(Protocol):
    """A local phase that can mark the rows that every bucket needs (see ``operators.buckets``)."""

    def condensed(self, table: pa.Table) -> pa.Table:
        """``table`` combined, even if it does not shrink much, with the column ``TELLS``."""
        ...


class Summary(Protocol):
    """A summary of an input that every partition gets as a further input."""

    def of(self, table: pa.Table) -> pa.Table:
        """A few rows that summarize ``table``, a part of the input; none if there is nothing to report."""
        ...


@runtime_checkable
class Delayed(Protocol):
    """An operator by event time whose output is behind the watermark of its inputs."""

    @property
    def delay(self) -> int:
        """The delay of the output's watermark in milliseconds."""
        ...


@runtime_checkable
class Limited(Protocol):
    """An operator whose output may be complete before its input ends."""

    @property
    def limit(self) -> int | None:
        """The number of kept rows from which the output never changes; None if it always may change."""
        ...
