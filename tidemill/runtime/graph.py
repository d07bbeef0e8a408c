"""The exec graph: what an epoch runs. Every expression is Spark SQL text, or a call over such texts; a
projection may have a second translation, for rows in Python workers (``Arrays``).

The graph is built once per job, from the physical plan. ``runtime.spark.epoch`` turns it into
lazy frames, epoch by epoch. Nodes have the columns of their frame by name, and up to three hidden
columns:

- ``$kind`` if ``kinds`` is more than insert-only;
- ``$seq``, the order of arrival, if ``sequenced``;
- ``$wm``, the watermark that preceded the row, if ``timed`` (see ``changelog.watermarks``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.connectors.lookup.asking import Asking
from tidemill.functions.arrays.expressions import Projection
from tidemill.operators.api import OperatorSpec, Summary
from tidemill.operators.buckets import Buckets, Everywhere
from tidemill.operators.window.assigners.attached import AttachedWindows
from tidemill.runtime.event_time.pace import ALWAYS, Pace
from tidemill.types.physical import quote
from tidemill.user_functions.calls import BoundScalar, BoundTable


@dataclass(frozen=True, slots=True)
class UserColumn:
    """A call of a user function. ``args`` are Spark SQL texts. A table function gives a list of rows."""

    function: BoundScalar | BoundTable
    args: tuple[str, ...]


Expression = str | UserColumn
"""Spark SQL text, or a call that Spark SQL cannot say."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """The projection of a ``Select`` for rows that are Arrow batches in a Python worker. ``name``: the
    operator that reports a batch which the kernels cannot compute exactly; the JVM then computes all rows.
    ``schema``: the schema of the rows without event time, as Spark DDL."""

    name: str
    projection: Projection
    schema: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecNode:
    columns: tuple[str, ...]
    kinds: frozenset[RowKind]
    sequenced: bool

    @property
    def inputs(self) -> tuple[ExecNode, ...]:
        return ()

    @property
    def has_kind(self) -> bool:
        return self.kinds != INSERT_ONLY

    @property
    def hidden(self) -> tuple[str, ...]:
        """The hidden columns of the frame, after the visible columns."""
        kind, sequence = (KIND_COLUMN,) * self.has_kind, (SEQUENCE_COLUMN,) * self.sequenced
        return (*kind, *sequence, *((WATERMARK_COLUMN,) * self.timed))

    @property
    def timed(self) -> bool:
        """Whether rows carry the watermark that preceded them. Stateless nodes pass it on."""
        return bool(self.inputs) and all(i.timed for i in self.inputs)

    def walk(self) -> Iterator[ExecNode]:
        """This node and everything below, each once, readers first. Not recursive, because graphs may be
        deep."""
        seen: set[int] = set()
        waiting: list[ExecNode] = [self]
        while waiting:
            node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                waiting += node.inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(ExecNode):
    """The epoch's range of source ``source``. ``schema`` describes its rows as Spark DDL. ``arrow``: they are
    made as Arrow batches."""

    source: str
    schema: str
    arrow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignWatermark(ExecNode):
    """The input's rows with their watermark: the greatest time in column ``mark`` so far, less ``delay``
    ms.

    ``columns`` are columns of the input, and ``rowtime`` is the time attribute among them. ``interval``
    is the interval of event-time mini-batch, in ms; 0 lets every watermark pass. ``pace``: how long
    others wait for this source.
    """

    input: ExecNode
    source: str
    rowtime: str
    mark: str
    delay: int = 0
    interval: int = 0
    pace: Pace = ALWAYS

    @property
    def inputs(self) -> tuple[ExecNode, ...]:
        return (self.input,)

    @property
    def timed(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Marked:
    """Of rows that say in ``column`` what an update changed: those that come or go, and the updates that have
    one of the ``bits``."""

    column: str
    bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(ExecNode):
    """A filter, then one expression per column. Hidden columns pass; ``$wm`` passes if ``keeps_time``."""

    input: ExecNode
    expressions: tuple[Expression, ...]
    references: tuple[str | None, ...]
    """Per column the input column it is as it stands, None where something is computed."""
    condition: str | None = None
    marked: Marked | None = None
    keeps_time: bool = True
    kind: str | None = None
    """Spark text, over the input's columns, of the kind of each row where the node gives it."""
    arrays: Arrays | None = None
    """The same over Arrow batches; None if an expression has no entry for Arrow."""

    @property
    def timed(self) -> bool:
        return self.keeps_time and self.input.timed

    @property
    def inputs(self) -> tuple[ExecNode, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate(ExecNode):
    """A table function or a window. ``generator`` is a Spark generator text, such as inline(...), that
    names its columns. ``expressions`` are the other visible columns, before them. For windows,
    ``attached`` does the same over Arrow batches, by the input column ``time``, and passes on all
    columns of the input."""

    input: ExecNode
    expressions: tuple[str, ...]
    generator: str
    attached: AttachedWindows | None = None
    time: str = ""

    @property
    def inputs(self) -> tuple[ExecNode, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup(ExecNode):
    """The input's columns, then the columns of every row that ``asking`` finds for the row's ``keys``
    (input columns).

    ``outer``: NULLs if nothing is found. ``nested``: instead one column with the list of found rows,
    and one column with a number that is unique in the epoch. ``schema`` describes the found rows as
    Spark DDL. ``name`` is the name in the counts of requests. ``bundle``: the most rows of a task that
    share a request; None means all.
    """

    input: ExecNode
    asking: Asking
    keys: tuple[str, ...]
    outer: bool
    nested: bool
    schema: str
    name: str
    bundle: int | None = None

    @property
    def inputs(self) -> tuple[ExecNode, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge(ExecNode):
    """UNION ALL: the branches' columns by position."""

    branches: tuple[ExecNode, ...]

    @property
    def inputs(self) -> tuple[ExecNode, ...]:
        return self.branches


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One input of a keyed operator. ``references`` are input columns, and ``columns`` are their names in
    the kernel. ``keys`` are the kernel names that decide the partition of a row."""

    input: ExecNode
    references: tuple[str, ...]
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    schema: pa.Schema | None = None
    """What the kernel gets when no row came; needed where there are several ports, or time."""
    summary: Summary | None = None
    """What every partition gets in place of the rows: see ``operators.api``."""
    buckets: Buckets | Everywhere | None = None
    """The bucket of each row, a column more for the kernel."""
    timed: bool = False
    """The operator works by event time: it gets ``$wm`` and the watermark, and steps without rows."""
    behind: int = 0
    """By how many ms the operator holds the port's watermark back."""

    @property
    def hidden(self) -> tuple[str, ...]:
        """The hidden columns that the kernel gets."""
        return tuple(h for h in self.input.hidden if self.timed or h != WATERMARK_COLUMN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed(ExecNode):
    """A stateful operator behind an exchange. ``schema`` describes its output as Spark DDL.

    - ``single``: one partition, because there are no keys.
    - ``local``: the spec can combine rows before the exchange.
    - ``partitioned``: for each partition key, the output columns that have its value in every row.
    - ``keeps_time``: the output has ``$wm``. ``hands_on``: an operator above reads it.
    - ``delay``: how far, in ms, its watermark is behind the latest time of its rows; None if unknown.
    - ``clocked``: the sources below a processing-time operator.
    """

    operator: str
    spec: OperatorSpec
    ports: tuple[Port, ...]
    schema: str
    single: bool = False
    local: bool = False
    partitioned: tuple[frozenset[str], ...] = ()
    keeps_time: bool = False
    hands_on: bool = True
    delay: int | None = None
    clocked: frozenset[str] = frozenset()

    @property
    def inputs(self) -> tuple[ExecNode, ...]:
        return tuple(p.input for p in self.ports)

    @property
    def works_by_time(self) -> bool:
        """Whether it is an event-time operator."""
        return any(port.timed for port in self.ports)

    @property
    def timed(self) -> bool:
        return self.keeps_time


UNREAD = "NULL"
"""The text of a column at which nobody looks."""


def choice(
    node: ExecNode, columns: tuple[str, ...], chosen: tuple[str | None, ...], sequenced: bool
) -> Select:
    """The columns ``chosen`` of ``node`` under the names ``columns``; None: nobody looks at it."""
    return Select(
        columns=columns,
        kinds=node.kinds,
        sequenced=sequenced,
        input=node,
        expressions=tuple(UNREAD if c is None else quote(c) for c in chosen),
        references=chosen,
    )


def renamed(node: ExecNode, columns: tuple[str, ...]) -> Select:
    return choice(node, columns, node.columns, node.sequenced)


def without_time(node: ExecNode) -> Select:
    """``node`` for readers that do not use event time."""
    return replace(renamed(node, node.columns), keeps_time=False)
