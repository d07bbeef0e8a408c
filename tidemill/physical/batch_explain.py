"""EXPLAIN of batch statements: Flink's node names for what Spark runs (see ``batch_nodes``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce, singledispatch

from tidemill.config.option import Configuration
from tidemill.errors import NotSupportedError
from tidemill.physical import batch_nodes as b
from tidemill.physical.batch_aggregates import batch_aggregate
from tidemill.physical.batch_nodes import BatchNode
from tidemill.physical.conditions import conjuncts
from tidemill.physical.digest import Form, Printer, order_text, record_text, rows_text
from tidemill.physical.explain import draw
from tidemill.physical.joins import split_condition
from tidemill.physical.ranks import lowered, top_n
from tidemill.physical.syntax_tree import syntax_tree
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef, OverCall, SortKey, UserCall
from tidemill.types.logical import Field


def explain_batch_text(
    logical: Sequence[n.LogicalNode], optimized: Sequence[n.LogicalNode], config: Configuration
) -> str:
    """The three sections; ``logical`` are the bound plans, ``optimized`` the same after the rules."""
    trees = [batch_plan(x, config) for x in optimized]
    texts = [draw(x, _line, lambda node: node.inputs) for x in trees]
    sections = (
        ("Abstract Syntax Tree", [syntax_tree(x) for x in logical]),
        ("Optimized Physical Plan", texts),
        ("Optimized Execution Plan", texts),
    )
    return "\n".join(f"== {title} ==\n" + "\n\n".join(parts) + "\n" for title, parts in sections)


def _line(node: BatchNode) -> str:
    return f"{node.name}({', '.join(f'{k}={v}' for k, v in node.attributes)})"


@singledispatch
def batch_plan(node: n.LogicalNode, config: Configuration) -> BatchNode:
    raise NotSupportedError(f"EXPLAIN of {type(node).__name__} in batch mode is not supported.")


@batch_plan.register
def _(node: n.Scan, config: Configuration) -> BatchNode:
    path = node.table.path
    parts = [path.catalog, path.database, path.name]
    if node.columns != tuple(c.name for c in node.table.physical_columns):
        parts += [f"project=[{', '.join(node.columns)}]", "metadata=[]"]
    fields = ", ".join(f.name for f in node.fields)
    attributes = (("table", f"[[{', '.join(parts)}]]"), ("fields", f"[{fields}]"))
    sized = dict(node.options).get("connector") == "filesystem"
    reduced = bool(node.filters)
    return BatchNode(
        name="TableSourceScan", fields=node.fields, attributes=attributes, sized=sized, reduced=reduced
    )


@batch_plan.register
def _(node: n.FrameScan, config: Configuration) -> BatchNode:
    return BatchNode(name="DataFrameScan", fields=node.fields, attributes=(("table", f"[[{node.key}]]"),))


@batch_plan.register
def _(node: n.Values, config: Configuration) -> BatchNode:
    names = ", ".join(f.name for f in node.fields)
    attributes = (("tuples", rows_text(node.rows)), ("values", f"[{names}]"))
    return BatchNode(name="Values", fields=node.fields, attributes=attributes, sized=True)


@batch_plan.register
def _(node: n.Watermark, config: Configuration) -> BatchNode:
    return replace(batch_plan(node.input, config), fields=node.fields)


def _calc(
    child: BatchNode, fields: tuple[Field, ...], expressions: tuple[Expr, ...], condition: Expr | None = None
) -> BatchNode:
    printer = Printer.over(child.fields)
    shown = [printer.named(x, f.name) for x, f in zip(expressions, fields, strict=True)]
    where = (("where", f"[{printer.text(condition)}]"),) if condition is not None else ()
    name = "PythonCalc" if any(isinstance(x, UserCall) for x in expressions) else "Calc"
    calc = b.above(child, name, (("select", b.bracketed(shown)), *where), fields)
    places = {x.index: i for i, x in enumerate(expressions) if isinstance(x, InputRef)}
    kept = all(k in places for k in child.partitioned)
    partitioned = tuple(places[k] for k in child.partitioned) if kept else ()
    return replace(calc, partitioned=partitioned, reduced=child.reduced or condition is not None)


def _references(fields: tuple[Field, ...]) -> tuple[Expr, ...]:
    return tuple(InputRef(type=f.type, index=i) for i, f in enumerate(fields))


@batch_plan.register
def _(node: n.Filter, config: Configuration) -> BatchNode:
    over_rank = lowered(node)
    if over_rank is not None:
        return batch_plan(over_rank, config)
    ranked = _rank(node, config)
    if ranked is not None:
        return ranked
    child = batch_plan(node.input, config)
    return _calc(child, node.fields, _references(node.fields), node.condition)


@batch_plan.register
def _(node: n.Project, config: Configuration) -> BatchNode:
    child = batch_plan(node.input, config)
    if node.fields == child.fields and node.expressions == _references(child.fields):
        return child
    return _calc(child, node.fields, node.expressions)


@batch_plan.register
def _(node: n.Expand, config: Configuration) -> BatchNode:
    child = batch_plan(node.input, config)
    printer = Printer.over(child.fields)
    rows = [
        "{" + ", ".join(printer.named(x, f.name) for x, f in zip(row, node.fields, strict=True)) + "}"
        for row in node.projections
    ]
    return b.above(child, "Expand", (("projects", b.bracketed(rows)),), node.fields)


@batch_plan.register
def _(node: n.Aggregate, config: Configuration) -> BatchNode:
    child = batch_plan(node.input, config)
    return batch_aggregate(child, node.keys, node.calls, node.fields, config)


@batch_plan.register
def _(node: n.Sort, config: Configuration) -> BatchNode:
    child = batch_plan(node.input, config)
    if node.fetch is None and not node.offset:
        return b.sort(b.exchange(child, ()), node.keys)
    local = _limit(child, node, local=True)
    return _limit(b.exchange(local, ()), node, local=False)


def _limit(child: BatchNode, node: n.Sort, *, local: bool) -> BatchNode:
    """The local phase takes the skipped rows along."""
    offset = 0 if local else node.offset
    fetch = node.fetch if node.fetch is None or not local else node.fetch + node.offset
    shown = (
        ("offset", f"[{offset}]"),
        ("fetch", f"[{'unlimited' if fetch is None else fetch}]"),
        ("global", f"[{str(not local).lower()}]"),
    )
    if not node.keys:
        return b.above(child, "Limit", shown)
    printer = Printer.over(child.fields)
    order = ("orderBy", b.bracketed([order_text(k, printer) for k in node.keys]))
    return b.above(child, "SortLimit", (order, *shown))


def _rank(node: n.Filter, config: Configuration) -> BatchNode | None:
    """RANK and DENSE_RANK are cut before and after the exchange; ROW_NUMBER is an OverAggregate."""
    found = top_n(node)
    if found is None or found.call.function != "RANK" or found.rest:
        return None
    child = batch_plan(found.over.input, config)
    order = (*b.ascending(found.call.partition), *found.call.order)
    local = _rank_node(b.sort(child, order), found.call, (1, found.end), child.fields, local=True)
    ready = b.sort(b.exchange(local, found.call.partition), order)
    return _rank_node(ready, found.call, (found.start, found.end), node.fields, local=False)


def _rank_node(
    child: BatchNode, call: OverCall, ranks: tuple[int, int], fields: tuple[Field, ...], *, local: bool
) -> BatchNode:
    printer = Printer.over(child.fields)
    attributes = (
        ("rankType", f"[{call.function}]"),
        ("rankRange", f"[rankStart={ranks[0]}, rankEnd={ranks[1]}]"),
        ("partitionBy", f"[{printer.columns(call.partition)}]"),
        ("orderBy", b.bracketed([order_text(k, printer) for k in call.order])),
        ("global", f"[{str(not local).lower()}]"),
        ("select", b.bracketed([f.name for f in fields])),
    )
    return b.above(child, "Rank", attributes, fields)


@batch_plan.register
def _(node: n.Over, config: Configuration) -> BatchNode:
    child = batch_plan(node.input, config)
    partitions = list(dict.fromkeys((c.partition, c.order) for c in node.calls))
    width = len(node.input.fields)
    for partition, order in partitions:
        members = [i for i, c in enumerate(node.calls) if (c.partition, c.order) == (partition, order)]
        child = _over(node, child, members, tuple(node.fields[width + i] for i in members))
    return replace(child, fields=node.fields)


def _over(node: n.Over, child: BatchNode, members: list[int], made: tuple[Field, ...]) -> BatchNode:
    calls = [node.calls[i] for i in members]
    first = calls[0]
    order: tuple[SortKey, ...] = (*b.ascending(first.partition), *first.order)
    moved = b.exchange(child, first.partition)
    ready = b.sort(moved, order) if order else moved
    printer = Printer.over(ready.fields)
    shown = ", ".join(f"{c.function}({printer.columns(c.args) or '*'}) AS {c.name}" for c in calls)
    attributes = (
        ("partitionBy", f"[{printer.columns(first.partition)}]"),
        ("orderBy", b.bracketed([order_text(k, printer) for k in first.order])),
        ("window#0", f"[{shown}]"),
    )
    return b.above(ready, "OverAggregate", attributes, (*ready.fields, *made))


@batch_plan.register
def _(node: n.Unnest, config: Configuration) -> BatchNode:
    child = batch_plan(node.input, config)
    call = f"$UNNEST_ROWS$1({Printer.over(child.fields).text(node.collection)})"
    return _correlate(child, node.fields, call, outer=node.outer)


@batch_plan.register
def _(node: n.TableFunction, config: Configuration) -> BatchNode:
    child = batch_plan(node.input, config)
    printer = Printer.over(child.fields)
    call = f"{node.function.name}({', '.join(printer.text(a) for a in node.args)})"
    return _correlate(child, node.fields, call, outer=node.outer)


def _correlate(child: BatchNode, fields: tuple[Field, ...], call: str, *, outer: bool) -> BatchNode:
    attributes = (
        ("invocation", f"[{call}]"),
        ("correlate", f"[table({call})]"),
        ("select", f"[{','.join(f.name for f in fields)}]"),
        ("rowType", f"[{record_text(fields)}]"),
        ("joinType", "[LEFT]" if outer else "[INNER]"),
    )
    return b.above(child, "Correlate", attributes, fields)


@batch_plan.register
def _(node: n.WindowTableFunction, config: Configuration) -> BatchNode:
    child = batch_plan(node.input, config)
    time = child.fields[node.time].name
    window = f"{node.kind.value}(time_col=[{time}], size=[{node.size // 1000} s])"
    table = b.above(child, "WindowTableFunction", (("window", f"[{window}]"),), node.fields)
    return replace(table, sized=False, reduced=False)


@batch_plan.register
def _(node: n.SetOp, config: Configuration) -> BatchNode:
    branches = [batch_plan(x, config) for x in node.branches]
    if node.all and node.kind is not n.SetKind.UNION:
        raise NotSupportedError(f"EXPLAIN of {node.kind.value} ALL in batch mode is not supported.")
    combined = reduce(lambda left, right: _combined(node, left, right), branches)
    if node.all:
        return combined
    keys = tuple(range(len(node.fields)))
    return batch_aggregate(combined, keys, (), node.fields, config)


def _combined(node: n.SetOp, left: BatchNode, right: BatchNode) -> BatchNode:
    if node.kind is n.SetKind.UNION:
        names = ", ".join(f.name for f in node.fields)
        return replace(
            b.above(left, "Union", (("all", "[true]"), ("union", f"[{names}]")), node.fields),
            inputs=(left, right),
            sized=left.sized and right.sized,
        )
    kind = n.JoinKind.SEMI if node.kind is n.SetKind.INTERSECT else n.JoinKind.ANTI
    pairs = zip(left.fields, right.fields, strict=True)
    where = ", ".join(f"IS NOT DISTINCT FROM({a.name}, {c.name})" for a, c in pairs)
    keys = tuple(range(len(left.fields)))
    return _join(kind, left, right, (keys, keys), where, left.fields)


@batch_plan.register
def _(node: n.Join, config: Configuration) -> BatchNode:
    left, right = batch_plan(node.left, config), batch_plan(node.right, config)
    keys, _ = split_condition(node.condition, len(left.fields))
    printer = Printer.over((*left.fields, *right.fields), Form.PREFIX)
    where = printer.text(node.condition) if conjuncts(node.condition) else "true"
    placed = [
        (k.left.index, k.right.index)
        for k in keys
        if isinstance(k.left, InputRef) and isinstance(k.right, InputRef) and not node.null_aware
    ]
    by = (tuple(a for a, _ in placed), tuple(c for _, c in placed))
    return _join(node.kind, left, right, by, where, node.fields)


def _join(
    kind: n.JoinKind,
    left: BatchNode,
    right: BatchNode,
    keys: tuple[tuple[int, ...], tuple[int, ...]],
    where: str,
    fields: tuple[Field, ...],
) -> BatchNode:
    """Small inputs and conditions without keys: nested loops over a broadcast side; inputs that are
    partitioned by the keys already: a merge join; else a hash join."""
    shown = (
        ("joinType", f"[{kind.value}]"),
        ("where", f"[{where}]"),
        ("select", b.bracketed([f.name for f in fields])),
    )
    in_place = keys[0] != () and left.partitioned == keys[0] and right.partitioned == keys[1]
    build = _build_side(kind, left, right)
    extra: tuple[tuple[str, str], ...] = (("build", f"[{build}]"),)
    if in_place:
        name, inputs, extra = "SortMergeJoin", (left, right), ()
    elif not keys[0] or (left.sized and right.sized):
        name, inputs = "NestedLoopJoin", _nested_inputs(kind, left, right, build)
    else:
        name, inputs = "HashJoin", (b.exchange(left, keys[0]), b.exchange(right, keys[1]))
    return BatchNode(
        name=name,
        fields=fields,
        attributes=(*shown, *extra),
        inputs=inputs,
        sized=left.sized and right.sized,
        reduced=True,
        partitioned=keys[0] if name == "HashJoin" else (),
    )


def _build_side(kind: n.JoinKind, left: BatchNode, right: BatchNode) -> str:
    if kind in (n.JoinKind.LEFT, n.JoinKind.SEMI, n.JoinKind.ANTI):
        return "right"
    if kind is n.JoinKind.RIGHT or len(left.fields) <= len(right.fields):
        return "left"
    return "right"


def _nested_inputs(
    kind: n.JoinKind, left: BatchNode, right: BatchNode, build: str
) -> tuple[BatchNode, BatchNode]:
    if kind is n.JoinKind.FULL:
        return (b.exchange(left, ()), b.exchange(right, ()))
    return (b.broadcast(left), right) if build == "left" else (left, b.broadcast(right))


@batch_plan.register
def _(node: n.Sink, config: Configuration) -> BatchNode:
    child = batch_plan(node.input, config)
    fields = ", ".join(f.name for f in child.fields)
    attributes = (("table", f"[{node.table.path}]"), ("fields", f"[{fields}]"))
    return b.above(child, "Sink", attributes, node.fields)
