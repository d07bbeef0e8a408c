"""The bound query as Flink's abstract syntax tree: Logical* nodes with positional columns."""

from __future__ import annotations

from functools import singledispatch

from tidemill.physical.explain.patterns import match_text
from tidemill.physical.explain.printer import Form, Printer, interval_text, record_text, rows_text
from tidemill.plan import expressions as e
from tidemill.plan import nodes as n
from tidemill.plan.rules.merge_projects import is_identity
from tidemill.types import logical as t

_JOIN_TYPES = {
    n.JoinKind.INNER: "inner",
    n.JoinKind.LEFT: "left",
    n.JoinKind.RIGHT: "right",
    n.JoinKind.FULL: "full",
    n.JoinKind.SEMI: "semi",
    n.JoinKind.ANTI: "anti",
}
_POSITIONS = Printer((), Form.INDEXED)


def syntax_tree(root: n.LogicalNode) -> str:
    lines: list[str] = []
    _visit(_without_needless_project(root), "", "", lines)
    return "\n".join(lines)


def _visit(node: n.LogicalNode, head: str, indent: str, lines: list[str]) -> None:
    below = tuple(map(_without_needless_project, node.inputs))
    folded = _binary_union(node)
    if folded is not None:
        node, below = folded
    lines.append(f"{head}{line(node)}")
    for child in below[:-1]:
        _visit(child, indent + ":- ", indent + ":  ", lines)
    for child in below[-1:]:
        _visit(child, indent + "+- ", indent + "   ", lines)


def _without_needless_project(node: n.LogicalNode) -> n.LogicalNode:
    """Drops a Project that only passes on an aggregation's columns, as Flink's tree does."""
    if isinstance(node, n.Project) and isinstance(node.input, n.Aggregate) and is_identity(node):
        return node.input
    return node


def _binary_union(node: n.LogicalNode) -> tuple[n.SetOp, tuple[n.LogicalNode, ...]] | None:
    """A set operation of more than two branches as a left-deep tree of binary operations."""
    if not isinstance(node, n.SetOp) or len(node.branches) <= 2:
        return None
    first = n.SetOp(fields=node.fields, kind=node.kind, all=node.all, branches=node.branches[:-1])
    return node, (first, node.branches[-1])


@singledispatch
def line(node: n.LogicalNode) -> str:
    return f"Logical{type(node).__name__}()"


def _assignments(fields: tuple[t.Field, ...], texts: list[str]) -> str:
    return ", ".join(f"{f.name}=[{x}]" for f, x in zip(fields, texts, strict=True))


@line.register
def _(node: n.Scan) -> str:
    path = node.table.path
    return f"LogicalTableScan(table=[[{path.catalog}, {path.database}, {path.name}]])"


@line.register
def _(node: n.FrameScan) -> str:
    return f"LogicalTableScan(table=[[{node.key}]])"


@line.register
def _(node: n.Values) -> str:
    return f"LogicalValues(tuples={rows_text(node.rows)})"


@line.register
def _(node: n.Project) -> str:
    return f"LogicalProject({_assignments(node.fields, [_POSITIONS.text(x) for x in node.expressions])})"


@line.register
def _(node: n.Filter) -> str:
    return f"LogicalFilter(condition=[{_POSITIONS.text(node.condition)}])"


@line.register
def _(node: n.Watermark) -> str:
    name = node.fields[node.rowtime].name
    return f"LogicalWatermarkAssigner(rowtime=[{name}], watermark=[{_POSITIONS.text(node.expression)}])"


@line.register
def _(node: n.Expand) -> str:
    rows = ["{" + ", ".join(_POSITIONS.text(x) for x in row) + "}" for row in node.projections]
    return f"LogicalExpand(projects=[{', '.join(rows)}])"


@line.register
def _(node: n.Aggregate) -> str:
    group = ", ".join(str(k) for k in node.keys)
    calls = [f"{c.name}=[{_call(c)}]" for c in node.calls]
    return f"LogicalAggregate({', '.join([f'group=[{{{group}}}]', *calls])})"


def _call(call: e.AggregateCall) -> str:
    distinct = "DISTINCT " if call.distinct else ""
    filtered = "" if call.filter is None else f" FILTER ${call.filter}"
    return f"{call.function}({distinct}{_POSITIONS.columns(call.args)}){filtered}"


@line.register
def _(node: n.MatchRecognize) -> str:
    return f"LogicalMatch({match_text(node)})"


@line.register
def _(node: n.Over) -> str:
    inputs = [f"{f.name}=[${i}]" for i, f in enumerate(node.input.fields)]
    calls = [f"{c.name}=[{_over(c)}]" for c in node.calls]
    return f"LogicalProject({', '.join([*inputs, *calls])})"


def _over(call: e.OverCall) -> str:
    parts = []
    if call.partition:
        parts.append(f"PARTITION BY {_POSITIONS.columns(call.partition)}")
    if call.order:
        parts.append("ORDER BY " + ", ".join(_over_order(k) for k in call.order))
    return f"{call.function}({_POSITIONS.columns(call.args)}) OVER ({' '.join(parts)})"


def _over_order(key: e.SortKey) -> str:
    direction = "" if key.ascending else " DESC"
    return f"${key.index}{direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


@line.register
def _(node: n.Sort) -> str:
    columns = [f"sort{i}=[${k.index}]" for i, k in enumerate(node.keys)]
    directions = [f"dir{i}=[{_direction(k)}]" for i, k in enumerate(node.keys)]
    offset = [f"offset=[{node.offset}]"] if node.offset else []
    fetch = [] if node.fetch is None else [f"fetch=[{node.fetch}]"]
    return f"LogicalSort({', '.join([*columns, *directions, *offset, *fetch])})"


def _direction(key: e.SortKey) -> str:
    return f"{'ASC' if key.ascending else 'DESC'}-nulls-{'first' if key.nulls_first else 'last'}"


@line.register
def _(node: n.Unnest) -> str:
    kind = "left" if node.outer else "inner"
    condition = "" if node.condition is None else f", condition=[{_POSITIONS.text(node.condition)}]"
    return f"LogicalCorrelate(joinType=[{kind}], unnest=[{_POSITIONS.text(node.collection)}]{condition})"


@line.register
def _(node: n.TableFunction) -> str:
    kind = "left" if node.outer else "inner"
    call = f"{node.function.name}({', '.join(_POSITIONS.text(a) for a in node.args)})"
    return f"LogicalCorrelate(joinType=[{kind}], invocation=[{call}])"


@line.register
def _(node: n.WindowTableFunction) -> str:
    months = node.months or n.Months()
    day, month = (interval_text(kind) for kind in (t.DayTimeIntervalType(), t.YearMonthIntervalType()))
    spans = ((node.slide, day), (months.slide, month), (node.size, day), (months.size, month))
    texts = [f"{x}:{unit}" for x, unit in spans if x]
    time = node.input.fields[node.time].name
    invocation = f"{node.kind.name}(TABLE(#0), DESCRIPTOR(_UTF-16LE'{time}'), {', '.join(texts)})"
    return f"LogicalTableFunctionScan(invocation=[{invocation}], rowType=[{record_text(node.fields)}])"


@line.register
def _(node: n.Join) -> str:
    kind = _JOIN_TYPES[node.kind]
    return f"LogicalJoin(condition=[{_POSITIONS.text(node.condition)}], joinType=[{kind}])"


@line.register
def _(node: n.LateralJoin) -> str:
    kind = _JOIN_TYPES[node.kind]
    return f"LogicalCorrelate(condition=[{_POSITIONS.text(node.condition)}], joinType=[{kind}])"


@line.register
def _(node: n.TemporalJoin) -> str:
    """Flink's tree has a LogicalCorrelate over a LogicalSnapshot of the right side."""
    kind, time = _JOIN_TYPES[node.kind], node.left.fields[node.time].name
    condition = _POSITIONS.text(node.condition)
    return f"LogicalTemporalJoin(condition=[{condition}], joinType=[{kind}], period=[{time}])"


@line.register
def _(node: n.SetOp) -> str:
    names = {n.SetKind.UNION: "Union", n.SetKind.INTERSECT: "Intersect", n.SetKind.EXCEPT: "Minus"}
    return f"Logical{names[node.kind]}(all=[{str(node.all).lower()}])"


@line.register
def _(node: n.Sink) -> str:
    columns = [c.name for c in node.table.columns]
    targets = ",".join(f"[{columns.index(c)}]" for c in node.target_columns)
    fields = ", ".join(f.name for f in node.input.fields)
    parts = [f"table=[{node.table.path}]", *([f"targetColumns=[{targets}]"] if targets else [])]
    return f"LogicalSink({', '.join(parts)}, fields=[{fields}])"
