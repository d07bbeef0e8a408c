"""Joins: of two inputs, by time, as of a time, into a table that is asked by key."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.lookup.options import Retry
from tidemill.physical.nodes.base import PhysicalNode, Unary
from tidemill.plan.expressions import Expr
from tidemill.plan.nodes import JoinKind
from tidemill.types.values import is_identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(PhysicalNode):
    """Equi keys ``left_keys[i] = right_keys[i]`` plus ``residual`` over left fields + right fields.

    ``null_safe[i]``: key i compares NULLs as equal; ``by_identity[i]`` (none: no key): it brings together
    what GROUP BY would, not what ``=`` calls equal. ``null_aware`` (NOT IN): the first so many keys count as
    equal if either side is NULL; the inputs are partitioned by the others. ``overwrites``: a side that is
    keyed by its join columns may come without -U; our kernels add up weights and get -U with every +U.
    """

    left: PhysicalNode
    right: PhysicalNode
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    by_identity: tuple[bool, ...] = ()
    residual: Expr | None
    null_aware: int = 0
    left_ttl: int = 0
    right_ttl: int = 0
    ttl_hints: tuple[tuple[str, str], ...] = ()
    overwrites: bool = True

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return (self.left, self.right)

    @property
    def partition_keys(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The columns either side is sent by."""
        return self.left_keys[self.null_aware :], self.right_keys[self.null_aware :]

    @property
    def counts_nulls(self) -> bool:
        """Whether it is a NOT IN of one key, which runs partitioned by it: all partitions know of NULLs. What
        expires is not counted, and where equal values are not one there is no such key."""
        if self.null_aware != 1 or len(self.left_keys) > 1 or self.residual is not None:
            return False
        sides = ((self.left, self.left_keys), (self.right, self.right_keys))
        exact = all(is_identity(side.fields[keys[0]].type) for side, keys in sides)
        return exact and not (self.left_ttl or self.right_ttl)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBounds:
    """``left[left] - right[right]`` lies between ``lower`` and ``upper`` milliseconds, both inclusive."""

    rowtime: bool
    lower: int
    upper: int
    left: int
    right: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalJoin(Join):
    """A join whose sides' times are a bounded distance apart."""

    bounds: TimeBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalJoin(Join):
    """INNER or LEFT: a left row with the right row of its keys as of the time in its field ``left_time``;
    since when a right row holds says ``right_time``. ``version_key``: of right fields; there is one row of it
    at a time. As it runs, the right side's rows are all versions as they came: ``alive`` is a field that is
    TRUE where a version can be seen (None: all can), with ``latest`` one older than one that came before is
    none.
    """

    left_time: int
    right_time: int
    version_key: tuple[int, ...]
    alive: int | None = None
    latest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupJoin(Unary):
    """INNER or LEFT: the input's fields, then those of ``table`` (its ``columns``) for every row that it
    gives for the row's ``keys``: places in the input and among the columns, where the ``condition``, over all
    fields, holds. ``retry``: of keys that have no rows."""

    table: CatalogTable
    options: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    kind: JoinKind
    keys: tuple[tuple[int, int], ...]
    condition: Expr | None = None
    retry: Retry | None = None
    overwrites: bool = True
    """As Flink shows it: updates go on in the form that is asked for. As it runs, each -U is needed."""

    @property
    def finds_one(self) -> bool:
        """Whether the table says that it has one row of a key at most."""
        primary = self.table.primary_key
        return bool(primary) and {self.columns[column] for _, column in self.keys} >= set(primary)

    @property
    def keeps_rows(self) -> bool:
        """Whether each row of the input is there as often as it was."""
        return self.kind is JoinKind.LEFT and self.finds_one
