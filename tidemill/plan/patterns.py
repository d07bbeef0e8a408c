"""The pattern of MATCH_RECOGNIZE, and the expressions of its clauses.

A pattern is a sequence of variables with quantifiers. DEFINE and MEASURES read rows through variables:
``A.x`` is ``x`` of the last row of A, FIRST and LAST count rows from either end, and aggregates read all rows
of A. ``variable`` is an index in the pattern. EVERY means the rows of all variables, for a column without a
variable.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.operators.match.skip import SkipTo
from tidemill.plan.expressions import Expr

EVERY = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternVariable:
    """Matches ``least`` to ``most`` rows (None: no limit). ``greedy``: as many as possible."""

    name: str
    least: int = 1
    most: int | None = 1
    greedy: bool = True

    @property
    def quantified(self) -> bool:
        return (self.least, self.most) != (1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterMatch:
    """The row where the search resumes. ``variable``: of SKIP TO FIRST and SKIP TO LAST."""

    to: SkipTo
    variable: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """``within``: the exclusive limit of a match's duration in milliseconds."""

    variables: tuple[PatternVariable, ...]
    after: AfterMatch
    within: int | None = None

    def name(self, variable: int) -> str:
        return "*" if variable == EVERY else self.variables[variable].name


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternColumn(Expr):
    """``operand``, over the input, of one row of ``variable``: ``offset`` rows from its last one (or first).

    ``plain``: written without FIRST and LAST. ``name``: of the variable, '*' for EVERY.
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
