"""Finds the preferred match from every possible start row; all attempts run in lockstep.

As in SQL, a greedy variable takes as many rows as possible, a reluctant variable as few. If the rest does not
match, the last choice is changed first. An attempt is one row of arrays: its start, the number of rows per
variable, and the next variable. A round first moves all attempts forward, variable by variable, then moves
failed attempts back to their last choice. A condition is evaluated for all attempts at once.

An attempt that needs a row which may still come is ``OPEN``. Earlier rows do not change, so an attempt would
make the same decisions in any later epoch.

Cost: a few array operations per variable and row of the longest attempt. A greedy variable whose condition
reads only the current row takes all its rows in one operation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask
from tidemill.changelog.watermarks import END
from tidemill.operators.match.pattern import Alone, Paths, Piece, Variable

FAILED, OPEN, MATCHED = 0, 1, 2
_MANY = int(np.iinfo(np.int64).max) // 4
_WORD = 63
"""The bits of a search word: the number of a key and a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows sorted by key, then in the order of the pattern. ``times`` in milliseconds. ``groups``: the number
    of each row's key. ``ends``: the end of the rows of its key. ``watermark``: no more rows come up to it."""

    table: pa.Table
    times: Ints
    groups: Ints
    ends: Ints
    watermark: int

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True, slots=True)
class Attempts:
    """For each start: the outcome, the number of rows per variable (a line each), and the time (in ms) at
    which the outcome is known."""

    starts: Ints
    verdicts: Ints
    counts: Ints
    known: Ints


@dataclass(slots=True)
class Matcher:
    """One use: ``run`` attempts every start. ``within``: milliseconds, None for no bound."""

    variables: tuple[Variable, ...]
    pieces: dict[str, Piece]
    rows: Rows
    within: int | None
    _flags: list[Mask | None] = field(default_factory=list)
    _runs: list[Ints | None] = field(default_factory=list)
    _starts: Ints = field(init=False)
    _counts: Ints = field(init=False)
    _at: Ints = field(init=False)
    _stops: Ints = field(init=False)
    _final: Mask = field(init=False)
    _known: Ints = field(init=False)
    _next: Ints = field(init=False)
    _back: Mask = field(init=False)
    _open: Mask = field(init=False)

    def run(self, starts: Ints) -> Attempts:
        self._begin(starts)
        alive = np.arange(len(starts))
        while len(alive):
            for number in range(len(self.variables)):
                self._forward(number, alive)
            for number in reversed(range(len(self.variables))):
                self._backward(number, alive)
            alive = alive[self._alive(alive)]
        verdicts = np.where(self._next < 0, FAILED, MATCHED)
        return Attempts(starts, np.where(self._open, OPEN, verdicts), self._counts, self._known)

    def _alive(self, attempts: Ints) -> Mask:
        variable_number = self._next[attempts]
        return ~self._open[attempts] & (variable_number >= 0) & (variable_number < len(self.variables))

    def _begin(self, starts: Ints) -> None:
        size, rows = len(starts), self.rows
        self._starts, self._at = starts, starts.copy()
        self._counts = np.zeros((len(self.variables), size), np.int64)
        self._next, self._back = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        self._open = np.zeros(size, np.bool_)
        self._known = rows.times[starts]
        self._stops = rows.ends[starts]
        self._final = np.full(size, rows.watermark == END)
        if self.within is not None:
            limits = rows.times[starts] + self.within
            self._stops = np.minimum(self._stops, _first_at(rows, rows.groups[starts], limits))
            self._final |= (self._stops < rows.ends[starts]) | (rows.watermark >= limits - 1)
        for variable in self.variables:
            flags = None if variable.alone is None else variable.alone.matches(Alone(rows.table))
            self._flags.append(flags)
            plain = variable.condition is None
            self._runs.append(_run_lengths(flags, len(rows)) if plain else None)

    # -- forward ----------------------------------------------------------------------------------

    def _forward(self, number: int, alive: Ints) -> None:
        """Attempts whose next variable is ``number`` take its rows, until they leave it."""
        variable = self.variables[number]
        here = alive[(self._next[alive] == number) & ~self._back[alive] & ~self._open[alive]]
        limit = variable.least if not variable.greedy else _MANY if variable.most is None else variable.most
        if self._runs[number] is not None:
            self._take_run(number, here, limit)
            return
        while len(here):
            full = self._counts[number, here] >= limit
            self._leave(number, here[full])
            here = here[~full]
            took, is_known = self._take_one(number, here)
            self._leave(number, here[is_known & ~took])
            here = here[took]

    def _take_run(self, number: int, here: Ints, limit: int) -> None:
        runs = self._runs[number]
        assert runs is not None
        room = limit - self._counts[number, here]
        remaining = self._stops[here] - self._at[here]
        there = remaining > 0
        run = np.zeros(len(here), np.int64)
        run[there] = runs[self._at[here[there]]]
        taken_rows = np.minimum(np.minimum(room, remaining), run)
        self._counts[number, here] += taken_rows
        self._at[here] += taken_rows
        short = taken_rows < room
        blocked = short & (taken_rows == remaining)
        self._saw(here[short & ~blocked], 0)
        self._saw(here[~short], -1)
        self._run_out(here[blocked])
        self._leave(number, here[~self._open[here]])

    def _take_one(self, number: int, here: Ints) -> tuple[Mask, Mask]:
        """Whether the next row belongs to the variable, and whether this is known."""
        there = self._at[here] < self._stops[here]
        self._run_out(here[~there])
        is_known = there | self._final[here]
        took = np.zeros(len(here), np.bool_)
        chosen = here[there]
        self._saw(chosen, 0)
        took[there] = self._meets(number, chosen)
        chosen = here[took]
        self._counts[number, chosen] += 1
        self._at[chosen] += 1
        return took, is_known

    def _meets(self, number: int, attempts: Ints) -> Mask:
        variable, flags = self.variables[number], self._flags[number]
        fits = np.ones(len(attempts), np.bool_) if flags is None else flags[self._at[attempts]]
        if variable.condition is None or not fits.any():
            return fits
        candidates = attempts[fits]
        counts = self._counts[:, candidates]
        counts[number] += 1
        paths = Paths(self.rows.table, self.pieces, self._starts[candidates], counts)
        fits[fits] = variable.condition.matches(paths)
        return fits

    def _leave(self, number: int, attempts: Ints) -> None:
        """Moves on to the next variable, or back if there are too few rows."""
        enough = self._counts[number, attempts] >= self.variables[number].least
        self._next[attempts[enough]] = number + 1
        self._undo(number, attempts[~enough])

    def _undo(self, number: int, attempts: Ints) -> None:
        """Releases all rows of the variable; the choice before it is next."""
        self._at[attempts] -= self._counts[number, attempts]
        self._counts[number, attempts] = 0
        self._next[attempts] = number - 1
        self._back[attempts] = True

    # -- back -------------------------------------------------------------------------------------

    def _backward(self, number: int, alive: Ints) -> None:
        """Attempts that failed after variable ``number`` change their choice there, if they have one."""
        variable = self.variables[number]
        here = alive[(self._next[alive] == number) & self._back[alive] & ~self._open[alive]]
        if len(here) == 0:
            return
        if variable.greedy:
            other = self._counts[number, here] > variable.least
            chosen = here[other]
            self._counts[number, chosen] -= 1
            self._at[chosen] -= 1
        else:
            room = self._counts[number, here] < (_MANY if variable.most is None else variable.most)
            other = np.zeros(len(here), np.bool_)
            took, is_known = self._take_one(number, here[room])
            other[room] = took | ~is_known
        self._undo(number, here[~other])
        chosen = here[other]
        self._next[chosen] = number + 1
        self._back[chosen] = False

    # -- what is known when -----------------------------------------------------------------------

    def _saw(self, attempts: Ints, offset: int) -> None:
        """Records that the row at ``offset`` from the current row was read."""
        rows = np.maximum(self._at[attempts] + offset, self._starts[attempts])
        self._known[attempts] = np.maximum(self._known[attempts], self.rows.times[rows])

    def _run_out(self, attempts: Ints) -> None:
        """Handles attempts that need a row beyond the last one: there is none, or it may still come."""
        final = self._final[attempts]
        self._open[attempts[~final]] = True
        closed = attempts[final]
        if self.within is None:
            self._known[closed] = END
        else:
            limits = self.rows.times[self._starts[closed]] + self.within - 1
            self._known[closed] = np.maximum(self._known[closed], limits)


def _run_lengths(flags: Mask | None, size: int) -> Ints:
    """The number of consecutive TRUE rows from each row on."""
    if flags is None:
        return np.full(size, _MANY, np.int64)
    stops = np.where(flags, size, np.arange(size))
    lengths: Ints = np.minimum.accumulate(stops[::-1])[::-1] - np.arange(size)
    return lengths


def _first_at(rows: Rows, groups: Ints, limits: Ints) -> Ints:
    """The first row of each of the keys ``groups`` whose time is at or after its limit; otherwise the end of
    the key's rows."""
    if len(limits) == 0:
        return limits
    times = rows.times
    base = min(int(times.min()), int(limits.min()))
    bits = (max(int(times.max()), int(limits.max())) - base).bit_length()
    if bits + int(rows.groups[-1]).bit_length() < _WORD:
        times, limits = times - base, limits - base
    else:
        distinct = np.unique(times)
        times, limits = np.searchsorted(distinct, times), np.searchsorted(distinct, limits)
        bits = len(distinct).bit_length()
    first_rows: Ints = np.searchsorted((rows.groups << bits) | times, (groups << bits) | limits)
    return first_rows
