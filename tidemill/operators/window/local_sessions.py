"""The local phase of an aggregation in sessions, before the exchange.

A *stretch* is a set of rows of one key that touch one another, none of which was behind the watermark when it
came (the watermark had not reached the millisecond before it). Such rows are in one session, whatever other
rows come, because no session that they touch can be gone. A row behind the watermark is sent unchanged, and
ends the stretches of its key, because its session depends on the rows before it.

A task only knows the watermark of its own rows. If the watermark of the rows before the task turns out to be
beyond a stretch's first row, and a session near it may be gone, the result of the single rows is unknown.
Then the step reports ``AGAIN``, and the epoch runs again with uncombined rows. ``settling`` makes this rare:
the first rows of a chunk tell how far time is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of, with_types
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.operators.api import HASH_COLUMN
from tidemill.operators.buckets import TELLS
from tidemill.operators.rows.copies import LOCAL_GAIN
from tidemill.operators.window.assigners.session import Sessions, merge
from tidemill.operators.window.assigners.spans import Spans, clusters_of, may_meet_the_gone
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.local import ROWS
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.store.partial_aggregates import END, Accumulated, PartialAggregates, ends_of
from tidemill.operators.window.store.sessions import Open

LAST = "$last"
"""The end of a stretch."""
_UNTIL = "$until"
_NUMBER = pa.int64()
_SETTLING = 4096
_LOOKED_AT = 16_384
_ONE_KEY_IN = 16


@dataclass(frozen=True, kw_only=True)
class LocalSessions:
    """Gives pieces of stretches; a row outside of a stretch is a piece of its own. A piece has the time of
    its first row, ``$last``, ``$wm``, ``$seq`` of the first and the last row that came, ``$rows``, the keys
    and their ``$hash``. ``settling``: the number of rows after which the task's own watermark is taken as the
    watermark of all rows before."""

    pieces: PartialAggregates
    keys: tuple[tuple[str, pa.DataType], ...]
    time: str
    gap: int
    clock: Clock
    settling: int = _SETTLING

    def combine(self, table: pa.Table) -> pa.Table:
        """The combined rows; ``table`` itself if a sample shows that it would not shrink much."""
        if len(table) > _LOOKED_AT and not any(map(self._shrinks, _samples(table))):
            return table
        return self._combined(table)

    def condensed(self, table: pa.Table) -> pa.Table:
        """Pieces of stretches. The first piece of each is marked (``TELLS``), because it describes the
        stretch."""
        pieces = by_arrival(self._combined(table))
        first = _firsts(pieces, vector(single(pieces.column(HASH_COLUMN))).values)
        return pieces.append_column(TELLS, pa.array(first))

    def _combined(self, table: pa.Table) -> pa.Table:
        table = self._in_order(table)
        return self._of(table, self._stretches(table, self._steady(table)))

    def _shrinks(self, sample: pa.Table) -> bool:
        sample = self._in_order(sample)
        stretches = self._stretches(sample, self._steady(sample))
        return len(np.unique(stretches)) <= LOCAL_GAIN * len(sample)

    def _steady(self, table: pa.Table) -> Mask:
        marks = vector(table.column(WATERMARK_COLUMN)).values
        settled = marks[min(self.settling, len(marks) - 1)]
        reached = self.clock.all_reached(np.maximum(marks, settled))
        steady: Mask = self._times(table) - 1 > reached
        return steady

    def apart(self, table: pa.Table) -> pa.Table:
        """Each row as its own stretch."""
        table = self._in_order(table)
        return self._of(table, np.arange(len(table)))

    def pieces_of(self, rows: pa.Table, windows: Ints) -> pa.Table:
        """The pieces from ``combine``, assigned to ``windows``."""
        schema = self.pieces.schema
        pieces = rows.append_column(END, to_arrow(Vec(windows), _NUMBER)).select(schema.names).cast(schema)
        return self.pieces.folded(pieces) if len(pieces) else pieces

    def _in_order(self, table: pa.Table) -> pa.Table:
        table = with_types(table, dict(self.keys))
        return contiguous(by_arrival(contiguous(table)))

    def _times(self, table: pa.Table) -> Ints:
        times: Ints = vector(table.column(self.time)).values // MICROSECONDS
        return times

    def _stretches(self, table: pa.Table, steady: Mask) -> Ints:
        """The number of each row's stretch; rows that are not ``steady`` have one of their own."""
        keys = [single(table.column(name)) for name, _ in self.keys]
        groups = group_rows(hashes_of(table, keys), keys)
        order = groups.order
        ends_one = ~steady[order]
        # Both numbers ascend: their sum is another one wherever either is.
        parts = groups.ids() + np.cumsum(ends_one)
        rows, times = order[~ends_one], self._times(table)
        spans = Spans(
            keys=parts[~ends_one],
            starts=times[rows],
            ends=times[rows] + self.gap,
            marks=np.full(len(rows), NONE, np.int64),
            stored=0,
        )
        of = np.empty(len(table), np.int64)
        of[rows] = clusters_of(spans)
        alone = order[ends_one]
        of[alone] = len(rows) + np.arange(len(alone))
        return of

    def _of(self, table: pa.Table, of: Ints) -> pa.Table:
        """The pieces of the stretches ``of`` rows."""
        _, of = np.unique(of, return_inverse=True)
        of = of.reshape(-1)
        order = np.argsort(of, kind="stable")
        sizes = np.bincount(of)
        first = np.cumsum(sizes) - sizes
        times, marks = self._times(table)[order], vector(table.column(WATERMARK_COLUMN)).values[order]
        sequence = vector(table.column(SEQUENCE_COLUMN)).values[order]
        pieces = self.pieces.cut(table.append_column(END, to_arrow(Vec(of), _NUMBER)))
        if not isinstance(self.pieces, Accumulated):
            pieces = self.pieces.folded(pieces)
        each = ends_of(pieces)
        starts = np.minimum.reduceat(times, first) * MICROSECONDS
        numbers = {
            LAST: np.maximum.reduceat(times, first) + self.gap,
            WATERMARK_COLUMN: np.where(sizes > 1, NONE, marks[first]),
            SEQUENCE_COLUMN: sequence[first],
            _UNTIL: sequence[first + sizes - 1],
            ROWS: sizes,
        }
        output = pieces.drop_columns([END])
        output = output.append_column(
            HASH_COLUMN, table.column(HASH_COLUMN).take(pa.array(order[first][each]))
        )
        output = output.append_column(
            self.time, to_arrow(Vec(starts[each]), table.schema.field(self.time).type)
        )
        for name, values in numbers.items():
            output = output.append_column(name, to_arrow(Vec(values[each]), _NUMBER))
        return output


def _samples(table: pa.Table) -> Iterator[pa.Table]:
    """Two samples: the first rows, which reveal a dominant key, and all rows of some keys."""
    yield table.slice(0, _LOOKED_AT)
    hashes = table.column(HASH_COLUMN).combine_chunks().to_numpy()
    some = np.flatnonzero(hashes % _ONE_KEY_IN == 0)
    if len(some):
        yield table.take(pa.array(some))


def sessions_of(
    rows: pa.Table, keys: Ints, open_: Open, *, time: str, gap: int, marks: Ints
) -> Sessions | None:
    """The sessions from open sessions and ``rows``, which may be pieces of stretches. ``marks``: the time
    reached before each row. None if they cannot be determined. Cost: that of the stretches."""
    first = _firsts(rows, keys)
    if first.all():
        spans = _spans_of(rows, keys, open_, time=time, gap=gap, marks=marks)
        return None if _is_undecided(spans, rows, gap) else merge(spans)
    chosen = rows.take(pa.array(np.flatnonzero(first)))
    spans = _spans_of(chosen, keys[first], open_, time=time, gap=gap, marks=marks[first])
    if _is_undecided(spans, chosen, gap):
        return None
    sessions = merge(spans)
    each = len(open_) + np.cumsum(first) - 1
    return replace(sessions, of=np.concatenate([sessions.of[: len(open_)], sessions.of[each]]))


def _firsts(rows: pa.Table, keys: Ints) -> Mask:
    """The mask of rows that begin a stretch."""
    first = np.ones(len(rows), np.bool_)
    if LAST in rows.schema.names and len(rows):
        names = (SEQUENCE_COLUMN, _UNTIL, LAST)
        numbers = (keys, *(vector(single(rows.column(name))).values for name in names))
        first[1:] = np.logical_or.reduce([n[1:] != n[:-1] for n in numbers])
    return first


def _spans_of(rows: pa.Table, keys: Ints, open_: Open, *, time: str, gap: int, marks: Ints) -> Spans:
    """The spans of open sessions, then of ``rows``, which may be stretches. ``marks``: the time reached
    before each."""
    nothing = np.zeros(0, np.int64)
    times = vector(rows.column(time)).values // MICROSECONDS if len(rows) else nothing
    ends = vector(rows.column(LAST)).values if LAST in rows.schema.names and len(rows) else times + gap
    return Spans.behind(open_, keys, times, ends, marks)


def _is_undecided(spans: Spans, rows: pa.Table, gap: int) -> bool:
    """Whether a stretch among ``rows`` may have another result than its single rows: its first row may be
    late, or may have come when a session near it was gone, or a row behind the watermark came between its
    rows."""
    if LAST not in rows.schema.names or len(rows) == 0:
        return False
    many = np.concatenate([np.zeros(spans.stored, np.bool_), vector(rows.column(ROWS)).values > 1])
    behind = spans.starts - 1 <= spans.marks
    behind[: spans.stored] = False
    if not (many.any() and behind.any()):
        return False
    late = many & (spans.starts + gap - 1 <= spans.marks)
    if late.any() or len(may_meet_the_gone(spans, ~many)):
        return True
    came = slice(spans.stored, None)
    first, last = (vector(rows.column(name)).values for name in (SEQUENCE_COLUMN, _UNTIL))
    return _between(spans.keys[came], first, last, many[came], behind[came])


def _between(keys: Ints, first: Ints, last: Ints, many: Mask, behind: Mask) -> bool:
    """Whether a row that was ``behind`` came between the ``first`` and ``last`` row of a stretch of its
    key."""
    distinct, ranks = np.unique(np.concatenate([first, last]), return_inverse=True)
    ranks = ranks.reshape(-1) + np.tile(keys, 2) * (len(distinct) + 1)
    begun, ended = ranks[: len(keys)], ranks[len(keys) :]
    order = np.flatnonzero(many)[np.argsort(begun[many], kind="stable")]
    # The furthest end so far of each key; ends of a later key are above all earlier ends.
    furthest = np.maximum.accumulate(ended[order])
    first_index = np.searchsorted(begun[order], begun[behind], side="left") - 1
    return bool(((first_index >= 0) & (furthest[first_index] > begun[behind])).any())
