"""Queries and what writes or explains them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.errors import Position
from tidemill.sql.statements.base import Options, Path, Statement
from tidemill.sql.statements.tables import CreateTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Statement):
    """A SELECT, VALUES, WITH or set operation."""

    tree: exp.Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported(Statement):
    """Valid Flink SQL that no part of Tidemill runs; ``feature`` names it."""

    feature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(Statement):
    """INSERT INTO / OVERWRITE. ``partition`` values are None if written without one.

    ``conflict`` is '', 'NOTHING', 'ERROR' or 'DEDUPLICATE'. ``hints`` are the OPTIONS of the target.
    """

    target: Path
    query: exp.Expression
    target_position: Position
    columns: tuple[str, ...] = ()
    partition: tuple[tuple[str, exp.Expression | None], ...] = ()
    overwrite: bool = False
    conflict: str = ""
    hints: Options = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Statement):
    """DELETE FROM target [WHERE condition]."""

    target: Path
    target_position: Position
    condition: exp.Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """``column = value`` of an UPDATE."""

    column: str
    value: exp.Expression
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(Statement):
    """UPDATE target SET assignments [WHERE condition]."""

    target: Path
    target_position: Position
    assignments: tuple[Assignment, ...]
    condition: exp.Expression | None


@dataclass(frozen=True, slots=True)
class MergeColumn:
    """A column that a clause of MERGE INTO writes."""

    name: str
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """``action``: UPDATE or DELETE of WHEN MATCHED, INSERT of WHEN NOT MATCHED. An INSERT without ``columns``
    has a value for each column of the table."""

    action: str
    condition: exp.Expression | None
    columns: tuple[MergeColumn, ...]
    values: tuple[exp.Expression, ...]
    position: Position

    @property
    def matches(self) -> bool:
        return self.action != "INSERT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(Statement):
    """MERGE INTO target [alias] USING source ON condition clauses. ``alias``: the target's name within."""

    target: Path
    target_position: Position
    alias: str
    source: exp.Expression
    condition: exp.Expression
    clauses: tuple[MergeClause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementSet(Statement):
    """EXECUTE STATEMENT SET BEGIN ... END."""

    inserts: tuple[Insert, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilePlan(Statement):
    """COMPILE PLAN 'file' FOR ...; ``execute``: COMPILE AND EXECUTE PLAN."""

    file: str
    target: Insert | StatementSet
    if_not_exists: bool = False
    execute: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutePlan(Statement):
    """EXECUTE PLAN 'file'."""

    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(Statement):
    """``details`` of CHANGELOG_MODE, EXECUTION_PLAN, ESTIMATED_COST, JSON_EXECUTION_PLAN, PLAN_ADVICE, as
    written. ``state``: EXPLAIN EVOLUTION FROM 'path', what becomes of the state there; else ''."""

    target: Query | Insert | StatementSet | CreateTable | Unsupported
    details: tuple[str, ...] = ()
    state: str = ""
