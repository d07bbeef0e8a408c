"""Pipelined exchanges of a batch query: the tasks that read an exchange run beside those that write it, and
its rows lie on no disk in between.

All tasks of such a query run at once, so each needs a slot of its own, and one that fails ends them all.
Spark refuses a job that has no room for them, and one in which some exchanges are pipelined and others are
not. So the query is planned without adaptive execution, how wide its stages are goes by the slots, and what
Spark would exchange by itself while it runs (the first rows of all tasks, for a LIMIT) is written out.
Broadcast sides and sub-queries are jobs of their own and stay as they are. Cost: calls into the JVM for each
operator, no Spark job.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from tidemill.spark_internals.java import (
    SQL,
    each,
    executed_plan,
    java_class,
    java_frame,
    java_session,
    python_frame,
    scala_object,
    sequence,
)
from tidemill.spark_internals.scheduler import is_set, slots
from tidemill.spark_internals.versions import PIPELINED_EXCHANGES, is_on, spark_version

_EXCHANGE, _SHARED, _BROADCAST = "ShuffleExchangeExec", "ReusedExchangeExec", "BroadcastExchangeExec"
_FIRST_IN_ORDER, _LIMITED = "TakeOrderedAndProjectExec", "CollectLimitExec"
_MOVED = (_EXCHANGE, _FIRST_IN_ORDER, _LIMITED)
"""What gathers or spreads the rows of other tasks."""
_KEPT, _UNION, _PRODUCT, _COALESCE = (
    "InMemoryTableScanExec",
    "UnionExec",
    "CartesianProductExec",
    "CoalesceExec",
)
_NUMBERED_ANEW = (_UNION, _PRODUCT, _COALESCE)
"""Whose tasks have other numbers than the parts of what is below, or read several of them."""
_HASHED, _ALL_TO_ONE, _IN_ORDER = "HashPartitioning", "SinglePartition$", "RangePartitioning"
MOST_SORTED = 64 << 20
"""Bytes of rows that one task sorts: as many as adaptive execution leaves to one."""
PIPELINED_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    # How many tasks read a table is decided by the slots.
    "spark.sql.files.maxPartitionBytes": str(1 << 60),
}
"""Spark's settings of a query whose exchanges are to be pipelined."""


class NotPipelined(Exception):
    """Why the exchanges of a query cannot be pipelined."""


class NothingExchanged(NotPipelined):
    """There are none."""


_REFUSED = (
    re.compile(r"INSUFFICIENT_SLOT\] .*?(needs \d+ concurrent task slots).*?(only \d+) are currently free"),
    re.compile(r"uses an unsupported feature: (.+?)\. Pipelined ", re.DOTALL),
    re.compile(r"(mixes a pipelined shuffle dependency with a regular) shuffle"),
)
_CUT_OFF = re.compile(r"Connection to streaming shuffle writer \d+\b.* closed before termination")
"""What tasks that read say of one that has ended before its time; why it did, they do not know."""
_UNREAD = re.compile(
    r"\b(?:Stackless)?ClosedChannelException\b"
    r"|\b(?:NativeIoException|IOException): .*(?:Broken pipe|Connection reset by peer)"
)
"""What tasks that write say of one that reads no more: it has failed, or needs no more rows (LIMIT)."""


def why_not(text: str) -> str:
    """Why Spark has not run a job with pipelined exchanges, or not to its end, of what it says of that; ''
    where there is another cause."""
    refused = next((found for pattern in _REFUSED if (found := pattern.search(text))), None)
    if refused:
        return f"Spark refused: {', '.join(refused.groups())}"
    if _CUT_OFF.search(text):
        return "a task that writes one ended before its time"
    return "a task that reads one ended before all was sent" if _UNREAD.search(text) else ""


def pipelined(frame: DataFrame, sorts: int | None) -> DataFrame:
    """The rows of ``frame``, of a session with ``PIPELINED_SETTINGS``, in its order; ``NotPipelined`` where
    they cannot be had so. ``sorts``: the bytes of all that is put in order, at most, None for nobody knows.
    Runs what its joins send to every task, and its sub-queries, nothing else."""
    _check_version()
    spark = frame.sparkSession
    with _active(spark):
        plan, _ = _fitting(frame, sorts)
        schema = java_frame(frame).schema()
        return python_frame(java_session(spark).internalCreateDataFrame(plan.execute(), schema, False), spark)


def tasks_at_once(frame: DataFrame, sorts: int | None) -> int:
    """How many tasks ``pipelined`` runs, all beside each other; ``NotPipelined``. Runs nothing."""
    _check_version()
    with _active(frame.sparkSession):
        return _fitting(frame, sorts)[1]


def _check_version() -> None:
    if not is_on(PIPELINED_EXCHANGES):
        raise NotPipelined(f"they were not written for Spark {spark_version()}")


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """An operator that is made belongs to the session that is active in the thread, and takes settings and
    metrics from it; a thread that made none has none."""
    session = java_class(spark.sparkContext, f"{SQL}.classic.SparkSession")
    before = session.getActiveSession()
    session.setActiveSession(java_session(spark))
    try:
        yield
    finally:
        if before.isDefined():
            session.setActiveSession(before.get())
        else:
            session.clearActiveSession()


def _fitting(frame: DataFrame, sorts: int | None) -> tuple[Any, int]:
    """Spark's plan with stages as wide as there are slots for all of them, and how many tasks it has."""
    try:
        plan = _Operator.of(executed_plan(frame))
    except RecursionError:
        raise NotPipelined("the plan is too deep") from None
    if not any(True for _ in plan.exchanges()):
        raise NothingExchanged("nothing is exchanged")
    free = _slots(frame.sparkSession.sparkContext)
    width = next((width for width in range(free, 0, -1) if _tasks(plan, width) <= free), 0)
    if not width:
        raise NotPipelined(f"{_tasks(plan, 1)} tasks must run at once, and there are {free} slots")
    return _Writer(frame.sparkSession, width, sorts).made(plan), _tasks(plan, width)


def _slots(context: SparkContext) -> int:
    """How many tasks can run at once. ``NotPipelined`` where Spark pipelines nothing."""
    for key in ("spark.speculation", "spark.dynamicAllocation.enabled"):
        if is_set(context, key):
            raise NotPipelined(f"{key} is on")
    return slots(context)


@dataclass(frozen=True, slots=True)
class _Operator:
    """Of Spark's physical plan. ``leaf``: how many tasks read a table; 0 where there are children, or where
    it is sent to every task of a join."""

    java: Any
    name: str
    children: tuple[_Operator, ...]
    leaf: int

    @classmethod
    def of(cls, java: Any) -> _Operator:
        name = _class(java)
        if name == _SHARED:
            name = _class(java.child())
            if name != _BROADCAST:
                raise NotPipelined("an exchange is read twice")
        if name == _BROADCAST:
            return cls(java, name, (), 0)
        children = tuple(map(cls.of, each(java.children())))
        if name == _KEPT:
            raise NotPipelined("rows are kept in memory for several readers")
        return cls(java, name, children, 0 if children else java.execute().getNumPartitions())

    @property
    def below(self) -> tuple[_Operator, ...]:
        """What it reads, but for what is sent to every task."""
        return tuple(child for child in self.children if not child.is_sent)

    @property
    def is_sent(self) -> bool:
        """Whether it goes to every task of a join."""
        return self.name == _BROADCAST or (self.name == "InputAdapter" and self.children[0].is_sent)

    def exchanges(self) -> Iterator[_Operator]:
        """Those that the stage of the operator reads."""
        if self.name in _MOVED:
            yield self
        else:
            for child in self.below:
                yield from child.exchanges()

    def width(self, each: int) -> int:
        """How many tasks its stage has where an exchange by keys has ``each``."""
        if self.name in _MOVED:
            spread = self.name == _EXCHANGE and _class(self.java.outputPartitioning()) == _HASHED
            return each if spread else 1
        if not self.below:
            return self.leaf
        if self.name in _NUMBERED_ANEW and any(True for _ in self.exchanges()):
            # Who writes knows a reader by its number, and one that reads part after part stands in the way.
            raise NotPipelined(f"{self.name.removesuffix('Exec')} reads an exchange")
        widths = [child.width(each) for child in self.below]
        if self.name == _COALESCE:
            return min(int(self.java.numPartitions()), *widths)
        if self.name == _PRODUCT:
            return math.prod(widths)
        return sum(widths) if self.name == _UNION else max(widths)


def _tasks(plan: _Operator, width: int) -> int:
    """Of the stage that gives the rows of ``plan``, and of all below it."""
    exchanges = list(plan.exchanges())
    own = plan.width(width) if exchanges else min(plan.width(width), width)
    return own + sum(_tasks(exchange.children[0], width) for exchange in exchanges)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Makes physical plans of Spark's of others; stages have ``width`` tasks, or one; ``sorts`` as in
    ``pipelined``."""

    spark: SparkSession
    width: int
    sorts: int | None

    def made(self, plan: _Operator) -> Any:
        """``plan`` with every exchange written out and pipelined."""
        if plan.is_sent or not plan.children:
            return plan.java
        below = [self.made(child) for child in plan.children]
        if plan.name in _MOVED:
            return self._moved(plan, *below)
        if plan.name == "SortExec" and getattr(plan.java, "global")():
            return self._sorted(plan.java.sortOrder(), *below)
        return self._over(plan.java, below)

    def _moved(self, plan: _Operator, below: Any) -> Any:
        (source,) = plan.children
        if source.width(self.width) > self.width and not any(True for _ in source.exchanges()):
            below = self._operator(_COALESCE)(self.width, below)
        if plan.name == _EXCHANGE:
            return self._exchange(self._way(plan), below)
        if plan.name == _FIRST_IN_ORDER:
            return self._first_in_order(plan.java, below)
        return self._limited(plan.java, below)

    def _way(self, exchange: _Operator) -> Any:
        way = exchange.java.outputPartitioning()
        kind = _class(way)
        if kind == _HASHED:
            hashed = java_class(self.spark.sparkContext, f"{SQL}.catalyst.plans.physical.HashPartitioning")
            return hashed(way.expressions(), self.width)
        if kind == _IN_ORDER:
            self._check_sorted()
        if kind not in (_ALL_TO_ONE, _IN_ORDER):
            raise NotPipelined(f"rows are moved by {kind}")
        return self._one_task()

    def _check_sorted(self) -> None:
        """Spark runs what is below once more, ahead, to see which part of the order is whose; here one task
        puts all in order."""
        if self.sorts is None:
            raise NotPipelined("nobody knows how many rows are sorted")
        if self.sorts > MOST_SORTED:
            raise NotPipelined(f"up to {self.sorts >> 20} MiB of rows are sorted")

    def _first_in_order(self, plan: Any, below: Any) -> Any:
        limit, order = plan.limit(), plan.sortOrder()
        each = self._operator("LocalLimitExec")(limit, self._sorted(order, below))
        gathered = self._exchange(self._one_task(), each)
        first = self._operator("GlobalLimitExec")(limit, self._sorted(order, gathered), plan.offset())
        return self._operator("ProjectExec")(plan.projectList(), first)

    def _limited(self, plan: Any, below: Any) -> Any:
        limit = plan.limit()
        each = below if limit < 0 else self._operator("LocalLimitExec")(limit, below)
        gathered = self._exchange(self._one_task(), each)
        return self._operator("GlobalLimitExec")(limit, gathered, plan.offset())

    def _sorted(self, order: Any, below: Any) -> Any:
        """Within each task."""
        return self._operator("SortExec")(order, False, below, 0)

    def _exchange(self, way: Any, below: Any) -> Any:
        origin = scala_object(self.spark.sparkContext, f"{SQL}.execution.exchange.ENSURE_REQUIREMENTS")
        unadvised = scala_object(self.spark.sparkContext, "scala.None")
        return self._operator(f"exchange.{_EXCHANGE}")(way, below, origin, unadvised, True)

    def _one_task(self) -> Any:
        return scala_object(self.spark.sparkContext, f"{SQL}.catalyst.plans.physical.SinglePartition")

    def _over(self, plan: Any, below: list[Any]) -> Any:
        """``plan`` with other inputs."""
        if not below:
            return plan
        return plan.withNewChildren(sequence(self.spark.sparkContext, below))

    def _operator(self, name: str) -> Any:
        return java_class(self.spark.sparkContext, f"{SQL}.execution.{name}")


def _class(java: Any) -> str:
    return str(java.getClass().getSimpleName())
