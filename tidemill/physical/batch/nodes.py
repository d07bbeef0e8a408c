"""The nodes of a batch plan: each node is an operator, and becomes one piece of a Spark frame.

Spark adds exchanges, local phases and the sorts of aggregations by itself, so the plan does not have Flink's
nodes for them; EXPLAIN shows them (``view``). An operator's expressions are over the fields of its input.

Invariant: a node's ``fields`` are its output columns, with unique names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidemill.catalog.table import CatalogTable
from tidemill.physical.joins.lookup import Lookup
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Expr, Literal, OverCall, SortKey, UserCall
from tidemill.types.logical import Field
from tidemill.user_functions.calls import BoundTable


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNode:
    """``most``: an upper bound of the bytes of its rows, None if unknown. It decides what is broadcast, so
    only certain facts lower it."""

    fields: tuple[Field, ...]
    most: int | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """What Flink calls it."""
        return type(self).__name__

    @property
    def inputs(self) -> tuple[BatchNode, ...]:
        return ()

    def walk(self) -> Iterator[BatchNode]:
        """This node and everything below, inputs first."""
        for node in self.inputs:
            yield from node.walk()
        yield self


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(BatchNode):
    input: BatchNode

    @property
    def inputs(self) -> tuple[BatchNode, ...]:
        return (self.input,)


def all_of(root: BatchNode) -> Iterator[BatchNode]:
    """The nodes of a plan, each once."""
    stack, visited = [root], set[int]()
    while stack:
        node = stack.pop()
        if id(node) not in visited:
            visited.add(id(node))
            stack += node.inputs
            yield node


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSourceScan(BatchNode):
    """A table's columns, as in ``plan.nodes.Scan``. ``limit``: the number of rows that is enough, if any."""

    table: CatalogTable
    columns: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    filters: tuple[Expr, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFrameScan(BatchNode):
    """A Spark DataFrame registered as a view; ``key`` names it in the session."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(BatchNode):
    rows: tuple[tuple[Literal, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calc(Unary):
    """Filter, then project."""

    projections: tuple[Expr, ...]
    condition: Expr | None = None

    @property
    def name(self) -> str:
        return "PythonCalc" if any(isinstance(x, UserCall) for x in self.projections) else "Calc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand(Unary):
    """One output row per projection."""

    projections: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Unary):
    """Fields: the grouping columns ``keys`` of the input, then one per call."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort(Unary):
    order: tuple[SortKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit(Unary):
    """The rows after ``offset`` in the order of ``order`` (if any), at most ``fetch``."""

    order: tuple[SortKey, ...]
    offset: int
    fetch: int | None

    @property
    def name(self) -> str:
        return "SortLimit" if self.order else "Limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverAggregate(Unary):
    """The source's fields, then one per call; the calls share partition and order.

    ``last_first``: among rows with equal sort keys, ROW_NUMBER counts the latest arrival first.
    """

    calls: tuple[OverCall, ...]
    last_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Unary):
    """``match`` is the logical node; its expressions are over the input's fields."""

    match: n.MatchRecognize


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

    @property
    def name(self) -> str:
        return "Correlate"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFunction(Unary):
    """A row per row of a user's function."""

    function: BoundTable
    args: tuple[Expr, ...]
    outer: bool

    @property
    def name(self) -> str:
        return "Correlate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(BatchNode):
    """``condition`` over the fields of both inputs. ``null_aware``: an anti join, such as NOT IN's, that also
    matches if a side of an equality is NULL.

    ``broadcast``: the side that is known to be small enough to be sent to every task; '' if Spark decides.
    ``hint``: the query's strategy of ``n.JOIN_STRATEGIES`` for the side ``build``; '' for none.
    """

    left: BatchNode
    right: BatchNode
    kind: n.JoinKind
    condition: Expr
    build: str = ""
    broadcast: str = ""
    hint: str = ""
    null_aware: bool = False

    @property
    def inputs(self) -> tuple[BatchNode, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalJoin(BatchNode):
    """Joins each left row with the last right row of its ``keys`` (left, right, whether NULL equals NULL) up
    to its time. ``condition``, over the fields of both inputs, then accepts or rejects that row. ``alive``:
    the right's last field says whether the row is visible. ``order`` and ``later``: see ``Versions``.
    ``arrives``: versions are ordered by arrival, not by time."""

    left: BatchNode
    right: BatchNode
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
    def inputs(self) -> tuple[BatchNode, ...]:
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
class Union(BatchNode):
    """UNION ALL: the branches' columns by position."""

    branches: tuple[BatchNode, ...]

    @property
    def inputs(self) -> tuple[BatchNode, ...]:
        return self.branches


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedSets(BatchNode):
    """INTERSECT ALL and EXCEPT ALL: Flink's plans rewrite them, Spark has operators for them."""

    kind: n.SetKind
    left: BatchNode
    right: BatchNode

    @property
    def name(self) -> str:
        return "Intersect" if self.kind is n.SetKind.INTERSECT else "Minus"

    @property
    def inputs(self) -> tuple[BatchNode, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTableFunction(Unary):
    """TABLE(TUMBLE(...)) etc., as ``window`` says."""

    window: n.WindowTableFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Unary):
    """INSERT INTO ``target``, the logical sink."""

    target: n.Sink
