"""Joins: regular, interval, temporal and lookup joins."""

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

    ``null_safe[i]``: key i compares NULLs as equal. ``by_identity[i]`` (empty: no key): key i compares as
    GROUP BY, not as ``=``. ``null_aware`` (NOT IN): the first keys, this many, also match if either side is
    NULL; the other keys partition the inputs. ``overwrites``: as in Flink, a side keyed by its join columns
    may come without -U; Tidemill's kernels add up weights and get -U with every +U.
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
        """The columns that partition each side."""
        return self.left_keys[self.null_aware :], self.right_keys[self.null_aware :]

    @property
    def counts_nulls(self) -> bool:
        """Whether it is a NOT IN with one key that partitions the inputs, so every partition must know of
        NULLs. It needs state without expiry, and a key type whose equal values are identical."""
        if self.null_aware != 1 or len(self.left_keys) > 1 or self.residual is not None:
            return False
        sides = ((self.left, self.left_keys), (self.right, self.right_keys))
        exact = all(is_identity(side.fields[keys[0]].type) for side, keys in sides)
        return exact and not (self.left_ttl or self.right_ttl)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBounds:
    """``left[left] - right[right]`` is between ``lower`` and ``upper`` milliseconds, both inclusive."""

    rowtime: bool
    lower: int
    upper: int
    left: int
    right: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalJoin(Join):
    """A join with a bounded distance between the sides' times."""

    bounds: TimeBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalJoin(Join):
    """INNER or LEFT: joins a left row with the right row of its keys at the time in its field ``left_time``.
    ``right_time``: the right field with the start of a version. ``version_key``: right fields that identify
    one row at a time. In the running plan the right rows are all versions in order of arrival. ``alive``: the
    field that is TRUE for visible versions (None: all are visible). ``latest``: a row that is older than an
    earlier row is no version.
    """

    left_time: int
    right_time: int
    version_key: tuple[int, ...]
    alive: int | None = None
    latest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupJoin(Unary):
    """INNER or LEFT: joins an input row with the rows of ``table`` that have its ``keys`` and pass
    ``condition``, which is over all fields. Fields: the input's, then ``columns`` of the table. ``keys``:
    (input field, index in ``columns``). ``retry``: for keys without rows."""

    table: CatalogTable
    options: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    kind: JoinKind
    keys: tuple[tuple[int, int], ...]
    condition: Expr | None = None
    retry: Retry | None = None
    overwrites: bool = True
    """In Flink's plan updates pass in the form that the consumer needs. In the running plan each -U is
    needed."""

    @property
    def finds_one(self) -> bool:
        """Whether the table declares at most one row per key."""
        primary = self.table.primary_key
        return bool(primary) and {self.columns[column] for _, column in self.keys} >= set(primary)

    @property
    def keeps_rows(self) -> bool:
        """Whether each input row is in the output exactly once."""
        return self.kind is JoinKind.LEFT and self.finds_one
