"""What MATCH_RECOGNIZE looks for, and the expressions that only its clauses have.

A pattern is a sequence of variables with quantifiers. DEFINE and MEASURES look at rows through variables:
``A.x`` is ``x`` of the last row of A, FIRST and LAST count rows from either end, aggregates go over all of
them. ``variable`` is a place in the pattern, or EVERY: the rows of all variables, as of a column without one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.operators.match.skip import SkipTo
from tidemill.plan.expressions import Expr

EVERY = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternVariable:
    """Takes ``least`` to ``most`` (None: any number of) rows; ``greedy``: as many as it can."""

    name: str
    least: int = 1
    most: int | None = 1
    greedy: bool = True

    @property
    def quantified(self) -> bool:
        return (self.least, self.most) != (1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterMatch:
    """Where the search goes on; ``variable``: which one FIRST and LAST mean."""

    to: SkipTo
    variable: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """``within``: milliseconds in which a match lies, the bound itself excluded."""

    variables: tuple[PatternVariable, ...]
    after: AfterMatch
    within: int | None = None

    def name(self, variable: int) -> str:
        return "*" if variable == EVERY else self.variables[variable].name


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternColumn(Expr):
    """``operand``, over the input, of one row of ``variable``: ``offset`` rows from its last one (or first).

    ``plain``: written without FIRST and LAST. ``name``: what the variable is called, '*' for EVERY.
    """

    operand: Expr
    variable: int
    name: str
    last: bool = True
    offset: int = 0
    plain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternAggregate(Expr):
    """An aggregate over the rows of ``variable``; ``args`` are over the input."""

    function: str
    args: tuple[Expr, ...]
    variable: int
    name: str
    options: tuple[tuple[str, str], ...] = ()
