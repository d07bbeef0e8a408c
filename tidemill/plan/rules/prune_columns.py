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
Places = Mapping[int, int]
Narrowed = tuple[n.LogicalNode, Places]


def prune_columns(root: n.LogicalNode) -> n.LogicalNode | None:
    """``root`` over narrower inputs, with its own columns unchanged. None if there is nothing to drop."""
    plan, places = narrow(root, _all(root))
    restored = _restore(plan, places, root.fields)
    return None if restored is root else restored


def _all(node: n.LogicalNode) -> Needed:
    return frozenset(range(len(node.fields)))


def _restore(plan: n.LogicalNode, places: Places, fields: tuple[Field, ...]) -> n.LogicalNode:
    if plan.fields == fields and all(places[i] == i for i in range(len(fields))):
        return plan
    columns = tuple(InputRef(type=f.type, index=places[i]) for i, f in enumerate(fields))
    return n.Project(fields=fields, input=plan, expressions=columns)


def _some(node: n.LogicalNode, needed: Needed) -> list[int]:
    """The needed columns in order, the first one where none is."""
    return sorted(needed) or ([0] if node.fields else [])


def _positions(kept: Iterable[int]) -> Places:
    return {old: new for new, old in enumerate(kept)}


def _reads(expressions: Iterable[Expr]) -> Needed:
    return frozenset().union(*(input_indexes(x) for x in expressions)) if expressions else frozenset()


def _moved(expr: Expr, places: Places) -> Expr:
    """``expr`` over a narrowed input, its subqueries pruned too."""

    def inner(found: Expr) -> Expr:
        plan = subplan(found)
        return found if plan is None else with_subplan(found, prune_columns(plan) or plan)

    return map_expr(move_inputs(expr, lambda i: places[i]), inner)


def _pick(fields: tuple[Field, ...], kept: Iterable[int]) -> tuple[Field, ...]:
    return tuple(fields[i] for i in kept)


@once_per_node
def narrow(node: n.LogicalNode, needed: Needed) -> Narrowed:
    """``node`` itself if nothing below it changes, so the driver sees by identity that a pass did nothing."""
    changed, places = _narrow(node, needed)
    return (node if _is_equal(changed, node) else changed), places


def _is_equal(a: n.LogicalNode, b: n.LogicalNode) -> bool:
    """Equality of one node: the inputs are compared by identity."""
    pairs = zip(a.inputs, b.inputs, strict=False)
    return type(a) is type(b) and len(a.inputs) == len(b.inputs) and all(x is y for x, y in pairs) and a == b


@singledispatch
def _narrow(node: n.LogicalNode, needed: Needed) -> Narrowed:
    """A node that cannot be narrowed: its inputs are, as far as they go, behind a Project."""
    inputs = []
    for child in node.inputs:
        plan, places = narrow(child, _all(child))
        inputs.append(_restore(plan, places, child.fields))
    same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
    changed = node if same else with_inputs(node, tuple(inputs))
    return changed, {i: i for i in range(len(node.fields))}


@_narrow.register
def _(node: n.Scan, needed: Needed) -> Narrowed:
    kept = _some(node, needed | _reads(node.filters))
    places = _positions(kept)
    scan = replace(
        node,
        fields=_pick(node.fields, kept),
        columns=tuple(node.columns[i] for i in kept),
        filters=tuple(_moved(f, places) for f in node.filters),
    )
    return scan, places


@_narrow.register
def _(node: n.Values, needed: Needed) -> Narrowed:
    kept = _some(node, needed)
    rows = tuple(tuple(row[i] for i in kept) for row in node.rows)
    return replace(node, fields=_pick(node.fields, kept), rows=rows), _positions(kept)


@_narrow.register
def _(node: n.Project, needed: Needed) -> Narrowed:
    kept = _some(node, needed)
    used = [node.expressions[i] for i in kept]
    source, places = narrow(node.input, _reads(used))
    expressions = tuple(_moved(x, places) for x in used)
    project = n.Project(fields=_pick(node.fields, kept), input=source, expressions=expressions)
    return project, _positions(kept)


@_narrow.register
def _(node: n.Filter, needed: Needed) -> Narrowed:
    source, places = narrow(node.input, needed | input_indexes(node.condition))
    condition = _moved(node.condition, places)
    return n.Filter(fields=source.fields, input=source, condition=condition), places


@_narrow.register
def _(node: n.Watermark, needed: Needed) -> Narrowed:
    wanted = needed | {node.rowtime} | input_indexes(node.expression)
    source, places = narrow(node.input, wanted)
    kept = sorted(places, key=places.__getitem__)
    watermark = n.Watermark(
        fields=_pick(node.fields, kept),
        input=source,
        rowtime=places[node.rowtime],
        expression=_moved(node.expression, places),
    )
    return watermark, places


@_narrow.register
def _(node: n.Expand, needed: Needed) -> Narrowed:
    kept = _some(node, needed)
    used = [[row[i] for i in kept] for row in node.projections]
    source, places = narrow(node.input, _reads([x for row in used for x in row]))
    rows = tuple(tuple(_moved(x, places) for x in row) for row in used)
    return n.Expand(fields=_pick(node.fields, kept), input=source, projections=rows), _positions(kept)


@_narrow.register
def _(node: n.Aggregate, needed: Needed) -> Narrowed:
    """Calls that nothing reads go; keys stay, they make the rows."""
    width = len(node.keys)
    calls = [(i, c) for i, c in enumerate(node.calls, start=width) if i in needed]
    if not width and not calls:
        calls = [(width, node.calls[0])]
    source, places = narrow(node.input, frozenset(node.keys) | _call_reads(c for _, c in calls))
    kept = [*range(width), *(i for i, _ in calls)]
    aggregate = replace(
        node,
        fields=_pick(node.fields, kept),
        input=source,
        keys=tuple(places[k] for k in node.keys),
        calls=tuple(_moved_call(c, places) for _, c in calls),
    )
    return aggregate, _positions(kept)


def _call_reads(calls: Iterable[AggregateCall]) -> Needed:
    return frozenset(i for c in calls for i in (*c.args, *(() if c.filter is None else (c.filter,))))


def _moved_call(call: AggregateCall, places: Places) -> AggregateCall:
    condition = None if call.filter is None else places[call.filter]
    return replace(call, args=tuple(places[a] for a in call.args), filter=condition)


@_narrow.register
def _(node: n.Over, needed: Needed) -> Narrowed:
    """Calls that nothing reads go; an Over without calls is its input."""
    width = len(node.input.fields)
    calls = [(i, c) for i, c in enumerate(node.calls, start=width) if i in needed]
    own = frozenset(i for i in needed if i < width)
    source, places = narrow(node.input, own | _over_reads(c for _, c in calls))
    if not calls:
        return source, places
    below = sorted(places, key=places.__getitem__)
    after = len(source.fields)
    moved = {**places, **{old: after + new for new, (old, _) in enumerate(calls)}}
    fields = (*source.fields, *_pick(node.fields, (i for i, _ in calls)))
    assert len(below) == after
    return n.Over(fields=fields, input=source, calls=tuple(_moved_over(c, places) for _, c in calls)), moved


def _over_reads(calls: Iterable[OverCall]) -> Needed:
    return frozenset(i for c in calls for i in (*c.args, *c.partition, *(k.index for k in c.order)))


def _moved_over(call: OverCall, places: Places) -> OverCall:
    return replace(
        call,
        args=tuple(places[a] for a in call.args),
        partition=tuple(places[p] for p in call.partition),
        order=_moved_keys(call.order, places),
    )


def _moved_keys(keys: tuple[SortKey, ...], places: Places) -> tuple[SortKey, ...]:
    return tuple(replace(k, index=places[k.index]) for k in keys)


@_narrow.register
def _(node: n.Sort, needed: Needed) -> Narrowed:
    source, places = narrow(node.input, needed | {k.index for k in node.keys})
    return replace(node, fields=source.fields, input=source, keys=_moved_keys(node.keys, places)), places


@_narrow.register
def _(node: n.Unnest, needed: Needed) -> Narrowed:
    width = len(node.input.fields)
    condition = () if node.condition is None else (node.condition,)
    # The elements' columns all stay, so the condition needs its own of the input.
    asked = frozenset(i for i in _reads(condition) if i < width)
    pruned, places = _appending(node, needed | asked, (node.collection,), lambda xs: {"collection": xs[0]})
    assert isinstance(pruned, n.Unnest)
    moved = None if node.condition is None else _moved(node.condition, places)
    return replace(pruned, condition=moved), places


@_narrow.register
def _(node: n.TableFunction, needed: Needed) -> Narrowed:
    return _appending(node, needed, node.args, lambda xs: {"args": xs})


def _appending(node: n.Unary, needed: Needed, expressions: tuple[Expr, ...], rebuild: object) -> Narrowed:
    """A node that adds columns to its input's: the added ones all stay."""
    width = len(node.input.fields)
    own = frozenset(i for i in needed if i < width)
    source, places = narrow(node.input, own | _reads(expressions))
    after = len(source.fields)
    added = range(width, len(node.fields))
    moved = {**places, **{old: after + new for new, old in enumerate(added)}}
    parts = tuple(_moved(x, places) for x in expressions)
    assert callable(rebuild)
    changes = {"fields": (*source.fields, *_pick(node.fields, added)), "input": source, **rebuild(parts)}
    return replace(node, **changes), moved


@_narrow.register
def _(node: n.WindowTableFunction, needed: Needed) -> Narrowed:
    width = len(node.input.fields)
    own = frozenset(i for i in needed if i < width) | {node.time, *node.partition}
    source, places = narrow(node.input, own)
    after = len(source.fields)
    added = range(width, len(node.fields))
    window = replace(
        node,
        fields=(*source.fields, *_pick(node.fields, added)),
        input=source,
        time=places[node.time],
        partition=tuple(places[p] for p in node.partition),
    )
    return window, {**places, **{old: after + new for new, old in enumerate(added)}}


@_narrow.register
def _(node: n.Join, needed: Needed) -> Narrowed:
    width = len(node.left.fields)
    wanted = needed | input_indexes(node.condition)
    left, left_places = narrow(node.left, frozenset(i for i in wanted if i < width))
    right, right_places = narrow(node.right, frozenset(i - width for i in wanted if i >= width))
    after = len(left.fields)
    places = {**left_places, **{i + width: after + p for i, p in right_places.items()}}
    kept = {i: p for i, p in places.items() if i < len(node.fields)}
    join = replace(
        node,
        fields=_pick(node.fields, sorted(kept, key=kept.__getitem__)),
        left=left,
        right=right,
        condition=_moved(node.condition, places),
    )
    return join, kept


@_narrow.register
def _(node: n.TemporalJoin, needed: Needed) -> Narrowed:
    width = len(node.left.fields)
    wanted = needed | input_indexes(node.condition) | {node.time}
    wanted |= set() if node.version is None else {width + node.version}
    left, left_places = narrow(node.left, frozenset(i for i in wanted if i < width))
    right, right_places = narrow(node.right, frozenset(i - width for i in wanted if i >= width))
    after = len(left.fields)
    places = {**left_places, **{i + width: after + p for i, p in right_places.items()}}
    join = replace(
        node,
        fields=_pick(node.fields, sorted(places, key=places.__getitem__)),
        left=left,
        right=right,
        condition=_moved(node.condition, places),
        time=left_places[node.time],
        version=None if node.version is None else right_places[node.version],
    )
    return join, places


@_narrow.register
def _(node: n.SetOp, needed: Needed) -> Narrowed:
    """UNION ALL passes columns on; the others compare whole rows."""
    if node.kind is not n.SetKind.UNION or not node.all:
        needed = _all(node)
    kept = _some(node, needed)
    fields = _pick(node.fields, kept)
    branches = tuple(_branch(b, kept, fields) for b in node.branches)
    return replace(node, fields=fields, branches=branches), _positions(kept)


def _branch(branch: n.LogicalNode, kept: list[int], fields: tuple[Field, ...]) -> n.LogicalNode:
    plan, places = narrow(branch, frozenset(kept))
    if [f.type for f in plan.fields] == [f.type for f in fields] and [places[i] for i in kept] == [
        *range(len(kept))
    ]:
        return plan
    columns = tuple(InputRef(type=f.type, index=places[i]) for i, f in zip(kept, fields, strict=True))
    return n.Project(fields=fields, input=plan, expressions=columns)


@_narrow.register
def _(node: n.Sink, needed: Needed) -> Narrowed:
    plan, places = narrow(node.input, _all(node.input))
    source = _restore(plan, places, node.input.fields)
    return replace(node, input=source), {i: i for i in range(len(node.fields))}
