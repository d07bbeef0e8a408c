"""The nodes of a batch plan: each node is an operator, and becomes one piece of a Spark frame.

Nodes that mean the same in a stream are in ``physical.nodes``. The others are here.

Spark adds exchanges, local phases and the sorts of aggregations by itself, so the plan does not have Flink's
nodes for them; EXPLAIN shows them (``view``). An operator's expressions are over the fields of its input.

Invariant: a node's ``fields`` are its output columns, with unique names.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.physical.joins.lookup import Lookup
from tidemill.physical.nodes import PhysicalNode, Unary
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Expr, OverCall, SortKey
from tidemill.user_functions.calls import BoundTable


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSourceScan(PhysicalNode):
    """A table's columns, as in ``plan.nodes.Scan``. ``limit``: the number of rows that is enough, if any."""

    table: CatalogTable
    columns: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    filters: tuple[Expr, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Unary):
    """Fields: the grouping columns ``keys`` of the input, then one per call."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverAggregate(Unary):
    """The source's fields, then one per call; the calls share partition and order.

    ``last_first``: among rows with equal sort keys, ROW_NUMBER counts the latest arrival first.
    """

    calls: tuple[OverCall, ...]
    last_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank(Unary):
    """The rows of ranks ``start`` to ``end``, both included, with the rank behind the input's fields."""

    call: OverCall
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnest(Unary):
    """A row per element of a collection, as in ``plan.nodes.Unnest``."""

    collection: Expr
    outer: bool
    ordinality: bool
    condition: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFunction(Unary):
    """A row per row of a user's function."""

    function: BoundTable
    args: tuple[Expr, ...]
    outer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(PhysicalNode):
    """``condition`` over the fields of both inputs. ``null_aware``: an anti join, such as NOT IN's, that also
    matches if a side of an equality is NULL.

    ``broadcast``: the side that is known to be small enough to be sent to every task; '' if Spark decides.
    ``hint``: the query's strategy of ``n.JOIN_STRATEGIES`` for the side ``build``; '' for none.
    """

    left: PhysicalNode
    right: PhysicalNode
    kind: n.JoinKind
    condition: Expr
    build: str = ""
    broadcast: str = ""
    hint: str = ""
    null_aware: bool = False

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalJoin(PhysicalNode):
    """Joins each left row with the last right row of its ``keys`` (left, right, whether NULL equals NULL) up
    to its time. ``condition``, over the fields of both inputs, then accepts or rejects that row. ``alive``:
    the right's last field says whether the row is visible. ``order`` and ``later``: see ``Versions``.
    ``arrives``: versions are ordered by arrival, not by time."""

    left: PhysicalNode
    right: PhysicalNode
    kind: n.JoinKind
    keys: tuple[tuple[Expr, Expr, bool], ...]
    condition: Expr | None
    left_time: int
    right_time: int
    alive: bool
    order: tuple[SortKey, ...] = ()
    later: bool = False
    arrives: bool = True

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return (self.left, self.right)

    @property
    def latest(self) -> bool:
        """Whether a row is a version only if it is not older than the versions before."""
        key = self.order[0] if len(self.order) == 1 else None
        return self.later and key is not None and key.index == self.right_time and not key.ascending


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupJoin(Unary):
    """The source's fields, then the columns of the rows that ``lookup`` gives for each row."""

    kind: n.JoinKind
    lookup: Lookup


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedSets(PhysicalNode):
    """INTERSECT ALL and EXCEPT ALL: Flink's plans rewrite them, Spark has operators for them."""

    kind: n.SetKind
    left: PhysicalNode
    right: PhysicalNode

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTableFunction(Unary):
    """TABLE(TUMBLE(...)) etc., as ``window`` says."""

    window: n.WindowTableFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Unary):
    """INSERT INTO ``target``, the logical sink."""

    target: n.Sink
