"""MATCH_RECOGNIZE row by row: recursion over all ways to match, the preferred one first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

Row = dict[str, int]
Taken = list[list[Row]]
Condition = Callable[[Taken, int, Row], bool]
"""Whether the row can be one of the variable of that number, which has it as its last one already."""


@dataclass(frozen=True)
class NaiveVariable:
    least: int
    most: int | None
    greedy: bool
    condition: Condition


def preferred(
    variables: list[NaiveVariable], rows: list[Row], start: int, within: int | None
) -> Taken | None:
    """The rows of each variable of the match that starts at ``start``."""

    def fits(number: int, taken: Taken, at: int) -> bool:
        if at >= len(rows) or (within is not None and rows[at]["t"] - rows[start]["t"] >= within):
            return False
        now = [[*own, rows[at]] if i == number else own for i, own in enumerate(taken)]
        return variables[number].condition(now, number, rows[at])

    def ways(number: int, taken: Taken, at: int) -> Iterator[Taken]:
        if number == len(variables):
            yield taken
            return
        variable, own = variables[number], len(taken[number])
        more = (variable.most is None or own < variable.most) and fits(number, taken, at)
        longer = [[*o, rows[at]] if i == number else o for i, o in enumerate(taken)] if more else taken
        if more and variable.greedy:
            yield from ways(number, longer, at + 1)
        if own >= variable.least:
            yield from ways(number + 1, taken, at)
        if more and not variable.greedy:
            yield from ways(number, longer, at + 1)

    return next(ways(0, [[] for _ in variables], start), None)


def matches(
    variables: list[NaiveVariable], rows: list[Row], skip: tuple[str, int], within: int | None
) -> Iterator[Taken]:
    """All matches of one key's sorted rows; ``skip``: the kind and the variable's number."""
    start = 0
    while start < len(rows):
        found = preferred(variables, rows, start, within)
        if found is None:
            start += 1
            continue
        yield found
        start = _onward(found, start, skip)


def _onward(found: Taken, start: int, skip: tuple[str, int]) -> int:
    kind, variable = skip
    if kind == "NEXT_ROW":
        return start + 1
    if kind == "PAST_LAST_ROW":
        return start + sum(map(len, found))
    if not found[variable]:
        raise LookupError("no row of the variable")
    last = len(found[variable]) - 1 if kind == "LAST" else 0
    target = start + sum(map(len, found[:variable])) + last
    if target <= start:
        raise LookupError("the same match for ever")
    return target
