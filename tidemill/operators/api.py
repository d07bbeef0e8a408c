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
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from tidemill.changelog.watermarks import NONE
from tidemill.operators.late_rows import LateRows

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


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochContext:
    """``time``: the epoch's processing time in milliseconds, fixed by its plan record (for TTL).
    ``watermark``: in milliseconds, what event time has reached after the epoch's rows, over all inputs;
    ``before``: what it had reached before them; ``reached``: what it has after them if that is not the end of
    the input (which takes it to the last time of all). ``late``: what came too late to count. ``notes``: what
    the operator has to say of the epoch, by name (``timer``: the processing time, in ms, at which it wants an
    epoch, with or without rows; ``again``, ``hot``: see ``AGAIN``, ``HOT``)."""

    epoch: int
    time: int
    partition: int
    first: bool = False
    watermark: int = NONE
    before: int = NONE
    reached: int = NONE
    late: LateRows = field(default_factory=LateRows)
    notes: dict[str, int] = field(default_factory=dict)


class OperatorSpec(Protocol):
    """``fingerprint`` names the state layout: same fingerprint, same meaning of the state."""

    @property
    def fingerprint(self) -> str: ...

    def output_schema(self) -> pa.Schema: ...

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table: ...


@runtime_checkable
class Evolving(Protocol):
    """An operator whose state a changed query can take over: calls may come and go, each with its columns."""

    @property
    def evolving(self) -> tuple[Layout, ...]:
        """The tables whose columns the calls decide; none where the fingerprint tells all."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRows:
    """What an operator keeps of its input's rows, of which a changed query may carry other columns.
    ``layouts``: the tables, none where columns go by place. ``needed``: columns beside the keys that no row
    can do without. ``most``: how many ranks of a key are kept at most; None: all rows. ``finds``: a row that
    is taken back is found that was stored with fewer columns. Of rows that expire another might be found."""

    layouts: tuple[Layout, ...]
    needed: frozenset[str] = frozenset()
    most: int | None = None
    finds: bool = True


@runtime_checkable
class KeepsRows(Protocol):
    """An operator that keeps rows of its input."""

    @property
    def kept_rows(self) -> KeptRows: ...


@runtime_checkable
class LocalPhase(Protocol):
    """An operator of one input that can do a part of its work before the exchange, where ``combinable``."""

    @property
    def combinable(self) -> bool: ...

    def combine(self, table: pa.Table) -> pa.Table:
        """Input rows (with ``$hash``) as fewer rows (with ``$hash``), in a form of the operator's own."""
        ...

    def merged(self, raw: list[pa.Table], combined: list[pa.Table]) -> tuple[OperatorSpec, pa.Table]:
        """What takes rows of which some were combined, and these rows as its one input."""
        ...


@runtime_checkable
class Condensing(Protocol):
    """A local phase that can tell apart what every bucket must know (see ``operators.buckets``)."""

    def condensed(self, table: pa.Table) -> pa.Table:
        """``table`` combined, also where that is not much less, with the column ``TELLS``."""
        ...


class Summary(Protocol):
    """What every partition must know of an input, whichever has its rows: an input of its own."""

    def of(self, table: pa.Table) -> pa.Table:
        """A few rows in place of ``table``, some of the input's rows; none where there is nothing to say."""
        ...


@runtime_checkable
class Delayed(Protocol):
    """An operator by event time that gives rows behind the watermark of its inputs."""

    @property
    def delay(self) -> int:
        """By how many milliseconds the watermark of what it gives is behind."""
        ...


@runtime_checkable
class Limited(Protocol):
    """An operator that may have given all it ever will before its input ends."""

    @property
    def limit(self) -> int | None:
        """Once its one partition keeps so many rows, its output never changes; None: it always may."""
        ...
