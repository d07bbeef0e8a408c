"""Physical nodes, named as Flink's EXPLAIN names them: of streaming plans, and shared by batch plans.

Every node has its output ``fields``. A node of a stream has its ``traits``; ``changelogMode`` in EXPLAIN is
``traits.kinds``. Nodes that only batch plans have are in ``physical.batch.nodes``.
Each family of nodes has a file; ``base`` has the base classes.
"""

from __future__ import annotations

from tidemill.physical.nodes.aggregates import (
    AggregatePart,
    DistinctReuse,
    GroupAggregate,
    KnownKeys,
    SharedDistinct,
)
from tidemill.physical.nodes.base import (
    PhysicalNode,
    Traits,
    Unary,
    Versioned,
)
from tidemill.physical.nodes.joins import (
    IntervalJoin,
    Join,
    LookupJoin,
    TemporalJoin,
    TimeBounds,
)
from tidemill.physical.nodes.orders import (
    Match,
    OverAggregate,
    Rank,
    Sort,
    SortLimit,
)
from tidemill.physical.nodes.relations import (
    Calc,
    ChangelogNormalize,
    Correlate,
    DataFrameScan,
    DropUpdateBefore,
    Exchange,
    Expand,
    FromChangelog,
    MiniBatchAssigner,
    Sink,
    TableSourceScan,
    ToChangelog,
    Union,
    Values,
    WatermarkAssigner,
)
from tidemill.physical.nodes.windows import (
    AttachedWindow,
    Emit,
    Spread,
    Window,
    WindowAggregate,
    WindowJoin,
    WindowRank,
    WindowsOfRows,
    WindowTableFunction,
)

__all__ = [
    "DistinctReuse",
    "AggregatePart",
    "AttachedWindow",
    "Calc",
    "ChangelogNormalize",
    "Correlate",
    "DataFrameScan",
    "DropUpdateBefore",
    "Emit",
    "Exchange",
    "Expand",
    "FromChangelog",
    "GroupAggregate",
    "IntervalJoin",
    "Join",
    "KnownKeys",
    "LookupJoin",
    "Match",
    "MiniBatchAssigner",
    "OverAggregate",
    "PhysicalNode",
    "Rank",
    "SharedDistinct",
    "Sink",
    "Sort",
    "SortLimit",
    "Spread",
    "TableSourceScan",
    "TemporalJoin",
    "TimeBounds",
    "ToChangelog",
    "Traits",
    "Unary",
    "Union",
    "Values",
    "Versioned",
    "WatermarkAssigner",
    "Window",
    "WindowAggregate",
    "WindowJoin",
    "WindowRank",
    "WindowTableFunction",
    "WindowsOfRows",
]
