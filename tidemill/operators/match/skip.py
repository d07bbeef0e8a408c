"""AFTER MATCH SKIP: selects the emitted matches, and the rows that are still needed.

The rows of a key are processed in order. A row that starts no match is skipped; after a match the search
resumes at the target of SKIP. At an open attempt the search waits. With SKIP TO NEXT ROW every row is tried
anyway, so each match is emitted as soon as it is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from tidemill.changelog.columns import Ints
from tidemill.errors import ExecutionError
from tidemill.operators.match.matcher import FAILED, MATCHED, OPEN, Attempts
from tidemill.operators.rows.grouped import segmented_accumulate


class SkipTo(Enum):
    NEXT_ROW = "SKIP TO NEXT ROW"
    PAST_LAST_ROW = "SKIP PAST LAST ROW"
    FIRST = "SKIP TO FIRST"
    LAST = "SKIP TO LAST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """``variable``: the number of the variable that FIRST and LAST name."""

    to: SkipTo
    variable: int = 0


@dataclass(frozen=True, slots=True)
class Search:
    """``matches``: numbers of attempts. ``known``: the time at which each was decided. ``kept``: per
    key the first row that is still needed."""

    matches: Ints
    known: Ints
    kept: Ints


def search(skip: Skip, attempts: Attempts, begins: Ints, ends: Ints) -> Search:
    """``begins`` and ``ends``: the rows of each key. All rows are starts, unless it is to the next row."""
    if skip.to is SkipTo.NEXT_ROW:
        matches = np.flatnonzero(attempts.verdicts == MATCHED)
        return Search(matches, attempts.known[matches], _first_open(attempts, begins, ends))
    return _followed(attempts, _targets(skip, attempts), begins, ends)


def _first_open(attempts: Attempts, begins: Ints, ends: Ints) -> Ints:
    rows = attempts.starts[attempts.verdicts == OPEN]
    first_open = np.searchsorted(rows, begins)
    first = np.append(rows, np.iinfo(np.int64).max)[first_open]
    first_needed: Ints = np.minimum(first, ends)
    return first_needed


def _targets(skip: Skip, attempts: Attempts) -> Ints:
    """Per attempt the row at which the search resumes after its match; its own row if that is forbidden."""
    sizes = attempts.counts.sum(axis=0)
    if skip.to is SkipTo.PAST_LAST_ROW:
        past: Ints = attempts.starts + sizes
        return past
    first = attempts.starts + attempts.counts[: skip.variable].sum(axis=0)
    own = attempts.counts[skip.variable]
    target = first if skip.to is SkipTo.FIRST else first + own - 1
    matched = attempts.verdicts == MATCHED
    result: Ints = np.where(matched & (own == 0), -1, target)
    return result


def _followed(attempts: Attempts, targets: Ints, begins: Ints, ends: Ints) -> Search:
    """Follows the matches of each key, one step per match; rows without a match are skipped at once."""
    size = len(attempts.starts)
    decided = np.append(attempts.verdicts != FAILED, True)
    after = np.minimum.accumulate(np.where(decided, np.arange(size + 1), size)[::-1])[::-1].tolist()
    verdicts, goes = attempts.verdicts.tolist(), targets.tolist()
    sought: list[int] = []
    matches: list[int] = []
    first_needed: list[int] = []
    firsts: list[int] = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        row, first = begin, len(matches)
        while row < end:
            next_match = min(after[row], end)
            if next_match == end or verdicts[next_match] == OPEN:
                row = next_match
                break
            sought.append(row)
            matches.append(next_match)
            row = _resume_row(next_match, goes[next_match])
        if len(matches) > first:
            firsts.append(first)
        first_needed.append(row)
    match_numbers = np.array(matches, np.int64)
    known_at = _known_at(
        attempts.known, np.array(sought, np.int64), match_numbers, np.array(firsts, np.int64)
    )
    return Search(match_numbers, known_at, np.array(first_needed, np.int64))


def _known_at(known_at: Ints, sought: Ints, matches: Ints, firsts: Ints) -> Ints:
    """The time at which each match is known: when all earlier attempts of its key are. ``sought``: the row
    from which each was searched. ``firsts``: the first match of each key."""
    if len(matches) == 0:
        return matches
    bounds = np.column_stack([sought, matches + 1]).reshape(-1)
    times = np.maximum.reduceat(np.append(known_at, 0), bounds)[::2]
    latest: Ints = segmented_accumulate(np.maximum, times, firsts)
    return latest


def _resume_row(row: int, target: int) -> int:
    if target > row:
        return target
    if target < 0:
        raise ExecutionError(
            "Could not skip to a variable of AFTER MATCH SKIP: the match has no row of this variable",
            hint="Skip to a variable that every match has, or use SKIP TO NEXT ROW or SKIP PAST LAST ROW.",
        )
    raise ExecutionError(
        "Could not skip to first element of a match: the search would find the same match forever",
        hint="Skip to a variable that cannot stand first, or use SKIP TO NEXT ROW or SKIP PAST LAST ROW.",
    )
