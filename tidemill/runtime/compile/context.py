"""What compiling one job's plan gathers: sources by id, operator ids, and the session's facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from tidemill.connectors.api import Source, SourceRequest
from tidemill.connectors.filters import AllOf, AnyOf, ColumnFilter
from tidemill.files.fence import OPEN, Fence
from tidemill.operators.api import OperatorSpec
from tidemill.physical import nodes as p
from tidemill.physical.digests import PASSING, Digests, table_digest
from tidemill.physical.explain.attributes import describe
from tidemill.physical.sinks import arrives_by_time
from tidemill.physical.traits.arrival import Arrival, arrival
from tidemill.physical.traits.determinism import keeps_values
from tidemill.physical.traits.event_time import timed_nodes
from tidemill.physical.tree import walk
from tidemill.plan.column_filters import column_filters
from tidemill.plan.expressions import Expr, InputRef
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.operator_schema import OperatorSchema
from tidemill.runtime.compile.row_names import NamedRows, rows_schema
from tidemill.runtime.compile.state_names import NamedCalls, StateNames, operator_schema, unused
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.logical import Field

MakeSource = Callable[[SourceRequest], Source]


@dataclass(slots=True, kw_only=True)
class CompileContext:
    """Mutable while one plan is compiled, then read-only.

    - ``per_record``: mini-batch is off, so kernels emit Flink's intermediate rows.
    - ``per_event``: mini-batch was not requested, so ChangelogNormalize emits every event, as Flink does.
    - ``compact``: a deduplication by event time emits one change per key and epoch.
    - ``frames``: registered DataFrames by key.
    - ``made``: exec nodes by digest; ``sequenced``: the digests whose nodes give ``$seq``; ``behind``: one of
      these nodes was made before that was known.
    - ``descriptions``: by operator id its node as in EXPLAIN, by source its name for people.
    - ``tables``: by source the path of its table; ``sub_plans``: by operator id the digest of its plan.
    - ``idle_timeout``: the milliseconds without rows after which a source is idle, if its table does not say.
    - ``bundle``: the most rows of a mini-batch, None if there is no limit.
    - ``arrays``: expressions are evaluated over Arrow batches if possible.
    - ``keeps_late``: late rows are kept as they came.
    - ``fence``: limits where links among files may lead.
    - ``digests``: identify equal parts of the plans; ``state``: the state that an operator takes over.
    - ``timed``: ids, and ``timed_digests``: digests, of the nodes whose rows carry their watermark.
    - ``told``: digests of the nodes whose every change counts for itself: such a watermark is computed over
      their rows, or a sink takes their last row by arrival.
    """

    make_source: MakeSource
    frames: Mapping[str, DataFrame]
    zone: str
    parallelism: int
    per_record: bool
    per_event: bool = False
    compact: bool = False
    idle_timeout: int = 0
    bundle: int | None = None
    keeps_late: bool = False
    fence: Fence = OPEN
    streaming: bool = True
    arrays: bool = True
    sources: dict[str, Source] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    sub_plans: dict[str, str] = field(default_factory=dict)
    operators: dict[str, OperatorSpec] = field(default_factory=dict)
    schemas: dict[str, OperatorSchema] = field(default_factory=dict)
    digests: Digests = field(default_factory=Digests)
    state: StateNames = field(default_factory=StateNames)
    timed: set[int] = field(default_factory=set)
    timed_digests: set[str] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    made: dict[str, g.ExecNode] = field(default_factory=dict)
    sequenced: set[str] = field(default_factory=set)
    behind: bool = False
    _fullest: dict[str, p.PhysicalNode] = field(default_factory=dict)
    _scans: dict[str, p.TableSourceScan] = field(default_factory=dict)
    _wanted: dict[str, list[ColumnFilter]] = field(default_factory=dict)

    def survey(self, roots: Sequence[p.PhysicalNode]) -> None:
        """Looks at all plans of the job before the first is compiled: what their equal parts must give."""
        for root in roots:
            self.state.survey(walk(root))
            if isinstance(root, p.Sink) and root.materialize and arrival(root.input) is Arrival.SOURCE:
                self.told.update(map(self.digests.of, walk(root.input)))
            for node in timed_nodes(root, isinstance(root, p.Sink) and arrives_by_time(root)):
                self.timed.add(id(node))
                self.timed_digests.add(self.digests.of(node))
                if isinstance(node, p.WatermarkAssigner):
                    self.told.update(map(self.digests.of, walk(node.input)))
            for node in walk(root):
                digest = self.digests.of(node)
                if not isinstance(node, PASSING) and self._is_fuller(node, self._fullest.get(digest)):
                    self._fullest[digest] = node
        for root in roots:
            self._read(root, None)
            for node in walk(root):
                for below in () if self._hands_on(node) else node.inputs:
                    self._read(below, node)

    def _is_fuller(self, node: p.PhysicalNode, known: p.PhysicalNode | None) -> bool:
        """Whether ``node`` gives more than the equal node ``known``: -U, or its watermark."""
        if known is None or known.traits.kinds < node.traits.kinds:
            return True
        is_timed = id(node) in self.timed and id(known) not in self.timed
        return is_timed and known.traits.kinds == node.traits.kinds

    def _read(self, node: p.PhysicalNode, reader: p.PhysicalNode | None) -> None:
        """Notes the columns of the scan, if any, whose rows ``node`` hands on to ``reader``. A watermark that
        nobody works by asks for no time."""
        while self._hands_on(node):
            (node,) = node.inputs
        if isinstance(node, p.TableSourceScan):
            wanted = frozenset(range(len(node.columns)))
            if isinstance(reader, p.Calc) and not keeps_values(reader):
                wanted = used_fields((*reader.projections, reader.condition))
            self._widen(node, wanted)

    def _hands_on(self, node: p.PhysicalNode) -> bool:
        if isinstance(node, p.WatermarkAssigner):
            return self.digests.of(node) not in self.timed_digests
        return isinstance(node, PASSING)

    def fullest(self, digest: str, node: p.PhysicalNode) -> p.PhysicalNode:
        """Of the nodes of this digest one that gives -U if any of them does. If several do, it is one whose
        inputs carry their watermark."""
        return self._fullest.get(digest, node)

    def whole_scan(self, scan: p.TableSourceScan) -> p.TableSourceScan:
        """The one scan of the table with all columns that are read of it, at least one; maybe ``scan``."""
        place = table_digest(scan.table, dict(scan.options))
        if place not in self._scans:
            self._read(scan, None)
        whole = self._scans[place]
        same = scan.columns == whole.columns and scan.fields == whole.fields
        return scan if same else whole

    def offered(self, scan: p.TableSourceScan) -> tuple[ColumnFilter, ...]:
        """What holds for every row of the table that any of the job's scans asks for."""
        return (AnyOf(tuple(self._wanted[table_digest(scan.table, dict(scan.options))])),)

    def _widen(self, scan: p.TableSourceScan, wanted: frozenset[int]) -> None:
        place = table_digest(scan.table, dict(scan.options))
        self._wanted.setdefault(place, []).append(AllOf(column_filters(scan.filters, scan.columns)))
        known = self._scans.get(place)
        pairs = [] if known is None else list(zip(known.columns, known.fields, strict=True))
        read = {c for c, _ in pairs}
        pairs += [
            (c, Field(c, f.type))
            for i, (c, f) in enumerate(zip(scan.columns, scan.fields, strict=True))
            if i in wanted and c not in read
        ]
        if not pairs:
            # Only the rows count (COUNT(*)): one column tells how many there are.
            first = scan.table.physical_columns[0]
            pairs = [(first.name, Field(first.name, first.type))]
        places = {c.name: place for place, c in enumerate(scan.table.columns)}
        pairs.sort(key=lambda pair: places[pair[0]])
        columns, fields = zip(*pairs, strict=True)
        self._scans[place] = replace(scan, columns=columns, fields=fields)

    def restart(self) -> None:
        """Forgets what was compiled, not what was learned."""
        self.behind = False
        self.state.restart()
        for gathered in (
            self.made,
            self.sources,
            self.operators,
            self.schemas,
            self.descriptions,
            self.tables,
            self.sub_plans,
        ):
            gathered.clear()

    def ask_sequence(self, digest: str) -> None:
        if digest not in self.sequenced:
            self.sequenced.add(digest)
            self.behind |= digest in self.made

    def translator(self, node: p.PhysicalNode) -> Translator:
        """Translates expressions over the fields of ``node``."""
        return Translator(columns=tuple(f.name for f in node.fields), zone=self.zone)

    def add_source(self, source: Source, name: str, shown: str, table: str = "") -> str:
        """Registers a source under ``name``, with a number if the name is taken. ``shown``: its name for
        people; ``table``: the path of the table that it reads."""
        key = unused(name, self.sources)
        self.sources[key] = source
        self.descriptions[key] = shown
        if table:
            self.tables[key] = table
        return key

    def sink_fields(self, sink: p.Sink) -> tuple[Field, ...]:
        """The columns that a sink gets, under the names that operators before it use: the sink's names, which
        stay the same when the query changes; by older rules the query's names."""
        if self.state.ids.named:
            return sink.input.fields
        named = zip(sink.fields, sink.input.fields, strict=True)
        return tuple(replace(given, name=own.name) for own, given in named)

    def add_operator(
        self,
        kind: str,
        node: p.PhysicalNode,
        spec: OperatorSpec,
        calls: NamedCalls | None = None,
        rows: NamedRows | None = None,
    ) -> str:
        """Registers the stateful operator of ``node``; ``calls`` or ``rows``: its own, if it has any, and its
        id then."""
        named = calls or rows
        key = (named.operator if named is not None else "") or self.state.operator(kind, node)
        self.operators[key] = spec
        if rows is None or rows.late is None:
            self.schemas[key] = operator_schema(kind, node, spec, self.state, calls)
        else:
            self.schemas[key] = rows_schema(kind, node, spec, self.state, rows)
        self.sub_plans[key] = self.digests.of(node)
        self.descriptions[key] = describe(node)
        return key


def used_fields(expressions: Iterable[Expr | None]) -> frozenset[int]:
    """The fields of the input that the expressions look at."""
    parts = (part for expr in expressions if expr is not None for part in expr.walk())
    return frozenset(part.index for part in parts if isinstance(part, InputRef))
