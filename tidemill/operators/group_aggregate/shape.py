"""The spec of a GROUP BY: its keys, calls and accumulators, and the layout of its state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of, weights_of, with_types
from tidemill.changelog.columns import single
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source
from tidemill.operators.aggregates.distinct import DistinctView, distinct_views
from tidemill.operators.aggregates.records import ROWS, AnyAccumulator, is_stateful
from tidemill.operators.aggregates.registry import build, is_ordered
from tidemill.operators.rows.grouped import GroupedRows
from tidemill.operators.rows.schemas import output_schema
from tidemill.state.layout import Layout

RECORDS = "groups"


@dataclass(frozen=True, kw_only=True)
class GroupShape:
    """``keys``: (column, Arrow type), none for a global aggregate. ``retracts``: the input has -U or -D.

    ``emit_update_before``: every +U has a -U. ``state_ttl`` in milliseconds; 0: no expiry. ``mark``: a column
    with the calls that an update changed (bit i: call i). ``timed``, with ``per_record``: rows carry their
    watermark, and a change has the watermark of the row that caused it.
    """

    keys: tuple[tuple[str, pa.DataType], ...]
    calls: tuple[AggregateSpec, ...] = ()
    retracts: bool = False
    emit_update_before: bool = True
    per_record: bool = False
    sequence: bool = False
    state_ttl: int = 0
    partial_input: bool = False
    output: tuple[str, ...] = ()
    mark: str = ""
    timed: bool = False

    @cached_property
    def source(self) -> Source:
        return Source(keys=self.key_fields, retracts=self.retracts, ttl=self.state_ttl)

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        return tuple(pa.field(name, kind) for name, kind in self.keys)

    @cached_property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return tuple(build(call, self.source) for call in self.calls)

    @cached_property
    def accumulators(self) -> Mapping[str, AnyAccumulator]:
        """The distinct accumulators by name, in the order of the calls; with a row count if the input
        retracts."""
        by_name: dict[str, AnyAccumulator] = {ROWS.name: ROWS} if self.retracts else {}
        for aggregate in self.aggregates:
            for accumulator in aggregate.accumulators:
                by_name.setdefault(accumulator.name, accumulator)
        return by_name

    @cached_property
    def views(self) -> tuple[DistinctView, ...]:
        return distinct_views(self.calls, self.source)

    @property
    def insert_only(self) -> bool:
        """Whether no row is retracted: SELECT DISTINCT over append-only input. With a TTL Flink renews
        rows."""
        return not self.calls and not self.retracts and not self.renews

    @property
    def renews(self) -> bool:
        """Whether equal results are emitted again, to renew the state downstream, as in Flink."""
        return self.per_record and self.state_ttl > 0

    @property
    def needs_sequence(self) -> bool:
        """Whether the input must carry ``$seq``."""
        return self.per_record or self.sequence or any(map(is_ordered, self.calls))

    @property
    def fingerprint(self) -> str:
        layout = self.layout
        return hashlib.sha256(f"group-aggregate {layout.schema} {layout.ttl > 0}".encode()).hexdigest()[:16]

    @cached_property
    def layout(self) -> Layout:
        columns = tuple(f for a in self.accumulators.values() for f in a.fields)
        return Layout(name=RECORDS, keys=self.key_fields, columns=columns, ttl=self.state_ttl)

    @property
    def evolving(self) -> tuple[Layout, ...]:
        """See ``operators.api.Evolving``."""
        own = (a.layout for a in self.accumulators.values() if is_stateful(a))
        return (self.layout, *(view.layout for view in self.views), *own)

    @property
    def output_names(self) -> tuple[str, ...]:
        own = (*(name for name, _ in self.keys), *(call.name for call in self.calls))
        return self.output or (*own, *((self.mark,) if self.mark else ()))

    @property
    def handed_on(self) -> tuple[str, ...]:
        """The hidden columns that a change inherits from the row that caused it."""
        return (*[SEQUENCE_COLUMN] * self.sequence, *[WATERMARK_COLUMN] * self.timed)

    def output_schema(self) -> pa.Schema:
        types: dict[str, pa.DataType] = {**dict(self.keys), **{c.name: c.result for c in self.calls}}
        types[self.mark] = pa.int64()
        columns = [(name, types[name]) for name in self.output_names]
        return output_schema(columns, kinds=not self.insert_only, sequence=self.sequence, timed=self.timed)

    def ordered(self, table: pa.Table) -> pa.Table:
        """``table`` with one chunk per column, of the declared types, in arrival order if a call needs it."""
        table = with_types(table, self._input_types)
        return contiguous(by_arrival(table) if self.needs_sequence else table)

    @cached_property
    def _input_types(self) -> dict[str, pa.DataType]:
        args = {arg: kind for call in self.calls for arg, kind in zip(call.args, call.arg_types, strict=True)}
        return {**args, **dict(self.keys)}

    def grouped(self, table: pa.Table) -> GroupedRows:
        """The rows of ``table`` grouped by key."""
        keys = [single(table.column(name)) for name, _ in self.keys]
        hashes = hashes_of(table, keys)
        groups = group_rows(hashes, keys)
        heads = groups.heads
        picks = pa.array(heads)
        weights = weights_of(table)
        if weights is not None:
            weights = weights[groups.order]
        return GroupedRows(
            table,
            groups,
            hashes[heads],
            [key.take(picks) for key in keys],
            weights,
            ordered=self.needs_sequence,
        )
