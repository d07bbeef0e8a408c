"""Drop columns that nothing reads, down to the Scans.

    before: SELECT a FROM (SELECT a, b + c AS d FROM t)      t reads a, b, c, e
    after:  SELECT a FROM (SELECT a FROM t)                  t reads a

One walk from the root: ``narrow(node, needed)`` gives a node that has at least the ``needed`` columns,
and the new place of each old column. A column stays if its node needs it for its rows, such as the keys
of a DISTINCT or the inputs of an INTERSECT. A node never loses its last column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import singledispatch

from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Expr, InputRef, OverCall, SortKey
from tidemill.plan.once import once_per_node
from tidemill.plan.rewrite import input_indexes, map_expr, move_inputs, subplan, with_inputs, with_subplan
from tidemill.types.logical import Field

Needed = frozenset[int]
NewIndex = Mapping[int, int]
Narrowed = tuple[n.LogicalNode, NewIndex]


def prune_columns(root: n.LogicalNode) -> n.LogicalNode | None:
    """``root`` over narrower inputs, with its own columns unchanged. None if there is nothing to drop."""
    plan, new_index = narrow(root, _all(root))
    restored = _restore(plan, new_index, root.fields)
    return None if restored is root else restored


def _all(node: n.LogicalNode) -> Needed:
    return frozenset(range(len(node.fields)))


def _restore(plan: n.LogicalNode, new_index: NewIndex, fields: tuple[Field, ...]) -> n.LogicalNode:
    if plan.fields == fields and all(new_index[i] == i for i in range(len(fields))):
        return plan
    columns = tuple(InputRef(type=f.type, index=new_index[i]) for i, f in enumerate(fields))
    return n.Project(fields=fields, input=plan, expressions=columns)


def _some(node: n.LogicalNode, needed: Needed) -> list[int]:
    """The needed columns in order; the first column if no column is needed."""
    return sorted(needed) or ([0] if node.fields else [])


def _new_indexes(indexes: Iterable[int]) -> NewIndex:
    return {old: new for new, old in enumerate(indexes)}


def _reads(expressions: Iterable[Expr]) -> Needed:
    return frozenset().union(*(input_indexes(x) for x in expressions)) if expressions else frozenset()


def _moved(expr: Expr, new_index: NewIndex) -> Expr:
    """``expr`` over a narrowed input, its subqueries pruned too."""

    def inner(part: Expr) -> Expr:
        plan = subplan(part)
        return part if plan is None else with_subplan(part, prune_columns(plan) or plan)

    return map_expr(move_inputs(expr, lambda i: new_index[i]), inner)


def _pick(fields: tuple[Field, ...], indexes: Iterable[int]) -> tuple[Field, ...]:
    return tuple(fields[i] for i in indexes)


@once_per_node
def narrow(node: n.LogicalNode, needed: Needed) -> Narrowed:
    """``node`` itself if nothing below it changes, so the driver sees by identity that a pass did nothing."""
    changed, new_index = _narrow(node, needed)
    return (node if _is_equal(changed, node) else changed), new_index


def _is_equal(a: n.LogicalNode, b: n.LogicalNode) -> bool:
    """Equality of one node: the inputs are compared by identity."""
    pairs = zip(a.inputs, b.inputs, strict=False)
    return type(a) is type(b) and len(a.inputs) == len(b.inputs) and all(x is y for x, y in pairs) and a == b


@singledispatch
def _narrow(node: n.LogicalNode, needed: Needed) -> Narrowed:
    """A node that keeps its columns: its inputs are narrowed, and a Project restores their columns."""
    inputs = []
    for child in node.inputs:
        plan, new_index = narrow(child, _all(child))
        inputs.append(_restore(plan, new_index, child.fields))
    same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
    changed = node if same else with_inputs(node, tuple(inputs))
    return changed, {i: i for i in range(len(node.fields))}


@_narrow.register
def _(node: n.Scan, needed: Needed) -> Narrowed:
    indexes = _some(node, needed | _reads(node.filters))
    new_index = _new_indexes(indexes)
    scan = replace(
        node,
        fields=_pick(node.fields, indexes),
        columns=tuple(node.columns[i] for i in indexes),
        filters=tuple(_moved(f, new_index) for f in node.filters),
    )
    return scan, new_index


@_narrow.register
def _(node: n.Values, needed: Needed) -> Narrowed:
    indexes = _some(node, needed)
    rows = tuple(tuple(row[i] for i in indexes) for row in node.rows)
    return replace(node, fields=_pick(node.fields, indexes), rows=rows), _new_indexes(indexes)


@_narrow.register
def _(node: n.Project, needed: Needed) -> Narrowed:
    indexes = _some(node, needed)
    used = [node.expressions[i] for i in indexes]
    source, new_index = narrow(node.input, _reads(used))
    expressions = tuple(_moved(x, new_index) for x in used)
    project = n.Project(fields=_pick(node.fields, indexes), input=source, expressions=expressions)
    return project, _new_indexes(indexes)


@_narrow.register
def _(node: n.Filter, needed: Needed) -> Narrowed:
    source, new_index = narrow(node.input, needed | input_indexes(node.condition))
    condition = _moved(node.condition, new_index)
    return n.Filter(fields=source.fields, input=source, condition=condition), new_index


@_narrow.register
def _(node: n.Watermark, needed: Needed) -> Narrowed:
    read = needed | {node.rowtime} | input_indexes(node.expression)
    source, new_index = narrow(node.input, read)
    indexes = sorted(new_index, key=new_index.__getitem__)
    watermark = n.Watermark(
        fields=_pick(node.fields, indexes),
        input=source,
        rowtime=new_index[node.rowtime],
        expression=_moved(node.expression, new_index),
    )
    return watermark, new_index


@_narrow.register
def _(node: n.Expand, needed: Needed) -> Narrowed:
    indexes = _some(node, needed)
    used = [[row[i] for i in indexes] for row in node.projections]
    source, new_index = narrow(node.input, _reads([x for row in used for x in row]))
    rows = tuple(tuple(_moved(x, new_index) for x in row) for row in used)
    return n.Expand(fields=_pick(node.fields, indexes), input=source, projections=rows), _new_indexes(indexes)


@_narrow.register
def _(node: n.Aggregate, needed: Needed) -> Narrowed:
    """Drops calls that nothing reads. Keys stay, because they define the rows."""
    width = len(node.keys)
    calls = [(i, c) for i, c in enumerate(node.calls, start=width) if i in needed]
    if not width and not calls:
        calls = [(width, node.calls[0])]
    source, new_index = narrow(node.input, frozenset(node.keys) | _call_reads(c for _, c in calls))
    indexes = [*range(width), *(i for i, _ in calls)]
    aggregate = replace(
        node,
        fields=_pick(node.fields, indexes),
        input=source,
        keys=tuple(new_index[k] for k in node.keys),
        calls=tuple(_moved_call(c, new_index) for _, c in calls),
    )
    return aggregate, _new_indexes(indexes)


def _call_reads(calls: Iterable[AggregateCall]) -> Needed:
    return frozenset(i for c in calls for i in (*c.args, *(() if c.filter is None else (c.filter,))))


def _moved_call(call: AggregateCall, new_index: NewIndex) -> AggregateCall:
    condition = None if call.filter is None else new_index[call.filter]
    return replace(call, args=tuple(new_index[a] for a in call.args), filter=condition)


@_narrow.register
def _(node: n.Over, needed: Needed) -> Narrowed:
    """Drops calls that nothing reads. An Over without calls becomes its input."""
    width = len(node.input.fields)
    calls = [(i, c) for i, c in enumerate(node.calls, start=width) if i in needed]
    own = frozenset(i for i in needed if i < width)
    source, new_index = narrow(node.input, own | _over_reads(c for _, c in calls))
    if not calls:
        return source, new_index
    below = sorted(new_index, key=new_index.__getitem__)
    after = len(source.fields)
    moved = {**new_index, **{old: after + new for new, (old, _) in enumerate(calls)}}
    fields = (*source.fields, *_pick(node.fields, (i for i, _ in calls)))
    assert len(below) == after
    return n.Over(
        fields=fields, input=source, calls=tuple(_moved_over(c, new_index) for _, c in calls)
    ), moved


def _over_reads(calls: Iterable[OverCall]) -> Needed:
    return frozenset(i for c in calls for i in (*c.args, *c.partition, *(k.index for k in c.order)))


def _moved_over(call: OverCall, new_index: NewIndex) -> OverCall:
    return replace(
        call,
        args=tuple(new_index[a] for a in call.args),
        partition=tuple(new_index[p] for p in call.partition),
        order=_moved_keys(call.order, new_index),
    )


def _moved_keys(keys: tuple[SortKey, ...], new_index: NewIndex) -> tuple[SortKey, ...]:
    return tuple(replace(k, index=new_index[k.index]) for k in keys)


@_narrow.register
def _(node: n.Sort, needed: Needed) -> Narrowed:
    source, new_index = narrow(node.input, needed | {k.index for k in node.keys})
    return replace(
        node, fields=source.fields, input=source, keys=_moved_keys(node.keys, new_index)
    ), new_index


@_narrow.register
def _(node: n.Unnest, needed: Needed) -> Narrowed:
    width = len(node.input.fields)
    condition = () if node.condition is None else (node.condition,)
    # All columns of the element stay, so the condition only needs its columns of the input.
    condition_reads = frozenset(i for i in _reads(condition) if i < width)
    pruned, new_index = _appending(
        node, needed | condition_reads, (node.collection,), lambda xs: {"collection": xs[0]}
    )
    assert isinstance(pruned, n.Unnest)
    moved = None if node.condition is None else _moved(node.condition, new_index)
    return replace(pruned, condition=moved), new_index


@_narrow.register
def _(node: n.TableFunction, needed: Needed) -> Narrowed:
    return _appending(node, needed, node.args, lambda xs: {"args": xs})


def _appending(node: n.Unary, needed: Needed, expressions: tuple[Expr, ...], rebuild: object) -> Narrowed:
    """A node that adds columns to its input's columns: all added columns stay."""
    width = len(node.input.fields)
    own = frozenset(i for i in needed if i < width)
    source, new_index = narrow(node.input, own | _reads(expressions))
    after = len(source.fields)
    added = range(width, len(node.fields))
    moved = {**new_index, **{old: after + new for new, old in enumerate(added)}}
    parts = tuple(_moved(x, new_index) for x in expressions)
    assert callable(rebuild)
    changes = {"fields": (*source.fields, *_pick(node.fields, added)), "input": source, **rebuild(parts)}
    return replace(node, **changes), moved


@_narrow.register
def _(node: n.WindowTableFunction, needed: Needed) -> Narrowed:
    width = len(node.input.fields)
    own = frozenset(i for i in needed if i < width) | {node.time, *node.partition}
    source, new_index = narrow(node.input, own)
    after = len(source.fields)
    added = range(width, len(node.fields))
    window = replace(
        node,
        fields=(*source.fields, *_pick(node.fields, added)),
        input=source,
        time=new_index[node.time],
        partition=tuple(new_index[p] for p in node.partition),
    )
    return window, {**new_index, **{old: after + new for new, old in enumerate(added)}}


@_narrow.register
def _(node: n.Join, needed: Needed) -> Narrowed:
    width = len(node.left.fields)
    read = needed | input_indexes(node.condition)
    left, left_places = narrow(node.left, frozenset(i for i in read if i < width))
    right, right_places = narrow(node.right, frozenset(i - width for i in read if i >= width))
    after = len(left.fields)
    new_index = {**left_places, **{i + width: after + p for i, p in right_places.items()}}
    indexes = {i: p for i, p in new_index.items() if i < len(node.fields)}
    join = replace(
        node,
        fields=_pick(node.fields, sorted(indexes, key=indexes.__getitem__)),
        left=left,
        right=right,
        condition=_moved(node.condition, new_index),
    )
    return join, indexes


@_narrow.register
def _(node: n.TemporalJoin, needed: Needed) -> Narrowed:
    width = len(node.left.fields)
    read = needed | input_indexes(node.condition) | {node.time}
    read |= set() if node.version is None else {width + node.version}
    left, left_places = narrow(node.left, frozenset(i for i in read if i < width))
    right, right_places = narrow(node.right, frozenset(i - width for i in read if i >= width))
    after = len(left.fields)
    new_index = {**left_places, **{i + width: after + p for i, p in right_places.items()}}
    join = replace(
        node,
        fields=_pick(node.fields, sorted(new_index, key=new_index.__getitem__)),
        left=left,
        right=right,
        condition=_moved(node.condition, new_index),
        time=left_places[node.time],
        version=None if node.version is None else right_places[node.version],
    )
    return join, new_index


@_narrow.register
def _(node: n.SetOp, needed: Needed) -> Narrowed:
    """UNION ALL passes columns on. Other set operations compare whole rows."""
    if node.kind is not n.SetKind.UNION or not node.all:
        needed = _all(node)
    indexes = _some(node, needed)
    fields = _pick(node.fields, indexes)
    branches = tuple(_branch(b, indexes, fields) for b in node.branches)
    return replace(node, fields=fields, branches=branches), _new_indexes(indexes)


def _branch(branch: n.LogicalNode, indexes: list[int], fields: tuple[Field, ...]) -> n.LogicalNode:
    plan, new_index = narrow(branch, frozenset(indexes))
    if [f.type for f in plan.fields] == [f.type for f in fields] and [new_index[i] for i in indexes] == [
        *range(len(indexes))
    ]:
        return plan
    columns = tuple(InputRef(type=f.type, index=new_index[i]) for i, f in zip(indexes, fields, strict=True))
    return n.Project(fields=fields, input=plan, expressions=columns)


@_narrow.register
def _(node: n.Sink, needed: Needed) -> Narrowed:
    plan, new_index = narrow(node.input, _all(node.input))
    source = _restore(plan, new_index, node.input.fields)
    return replace(node, input=source), {i: i for i in range(len(node.fields))}
