"""Scans, row-by-row nodes, exchanges, sinks, and nodes that normalize changelogs."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.physical.nodes.base import PhysicalNode, Unary, Versioned
from tidemill.plan.expressions import Expr, Literal
from tidemill.plan.nodes import ChangelogCall
from tidemill.user_functions.calls import BoundTable


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSourceScan(PhysicalNode):
    """``columns``: names of the table's physical/metadata columns, parallel to ``fields``."""

    table: CatalogTable
    columns: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    filters: tuple[Expr, ...] = ()
    projected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFrameScan(PhysicalNode):
    """A Spark DataFrame that is registered as a view. ``key`` names it in the session."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(PhysicalNode):
    rows: tuple[tuple[Literal, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calc(Unary):
    """Filter by ``condition`` (over the input), then one expression per field."""

    projections: tuple[Expr, ...]
    condition: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkAssigner(Unary):
    rowtime: int
    watermark: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniBatchAssigner(Unary):
    """``interval``: of Flink's plan, in milliseconds. ``passes``: the interval of the running plan by event
    time (see ``traits.mini_batch``). ``mode``: ProcTime or RowTime."""

    interval: int
    passes: int
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange(Unary):
    """Hash by field indexes ``keys``; no keys is distribution=[single]."""

    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand(Unary):
    """Each input row gives one row per projection. ``phase``: the copies are only for an aggregation by
    window (``aggregates.salted_distinct``)."""

    projections: tuple[tuple[Expr, ...], ...]
    phase: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Union(PhysicalNode):
    """UNION ALL: the columns of the branches by position."""

    branches: tuple[PhysicalNode, ...]

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return self.branches


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlate(Unary):
    """UNNEST (``function`` UNNEST) or a table function per row. ``outer`` keeps rows without result.

    ``user`` is a user's function; ``function`` is then its name. ``condition``, over all fields, filters the
    results.
    """

    function: str
    args: tuple[Expr, ...]
    outer: bool
    ordinality: bool = False
    user: BoundTable | None = None
    condition: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToChangelog(Unary):
    """Every change as an insert-only row: its code, then the input's fields. ``codes``: by kind; a change
    without a code is dropped. ``call``: only for EXPLAIN."""

    codes: tuple[tuple[RowKind, str], ...]
    call: ChangelogCall


@dataclass(frozen=True, slots=True, kw_only=True)
class FromChangelog(Unary):
    """Every row as a change, whose kind is the code in the input's field ``op``. The fields are the other
    fields. ``call``: only for EXPLAIN."""

    op: int
    codes: tuple[tuple[str, RowKind], ...]
    call: ChangelogCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogNormalize(Versioned):
    """Keeps the last row per ``keys``; turns an upsert or duplicate-ridden changelog into a full one.

    ``condition`` filters the full changelog: a row that no longer passes is retracted.
    """

    keys: tuple[int, ...]
    condition: Expr | None = None
    state_ttl: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DropUpdateBefore(Unary):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Unary):
    """``consumed``: the kinds that the sink accepts. ``materialize``: it needs a SinkUpsertMaterializer.

    ``retract``: it needs -U/+U pairs even of an upsert stream, so each change names the row that it replaces.
    ``input.traits.kinds``: the kinds that arrive. The sink itself produces no kinds. ``state_ttl``: of the
    materializer.
    """

    table: CatalogTable
    options: tuple[tuple[str, str], ...]
    consumed: frozenset[RowKind]
    retract: bool = False
    materialize: bool = False
    conflict: str = ""
    overwrite: bool = False
    static_partition: tuple[tuple[str, str], ...] = ()
    target_columns: tuple[str, ...] = ()
    state_ttl: int = 0
