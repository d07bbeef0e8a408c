"""Give each call of a user function its own column of a Project, over arguments without user functions.

    before: SELECT f(g(x)) + 1 FROM t
    after:  SELECT c2 + 1 FROM (SELECT f(c1) AS c2 FROM (SELECT g(x) AS c1 FROM t))

Python functions run outside of Spark's expressions. The other conjuncts of a Filter stay below the
call, so the function sees only the rows that pass them. In a join, a call that reads one side moves to
that side. If a conjunct of an inner join calls a function over both sides, the conjunct becomes a
Filter above the join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef, UserCall
from tidemill.plan.predicates import conjunction, conjuncts
from tidemill.plan.rewrite import (
    input_indexes,
    map_down,
    move_inputs,
    node_expressions,
    shift_inputs,
    with_expressions,
    with_inputs,
)
from tidemill.plan.rules.determinism import has_user_call, is_deterministic
from tidemill.plan.rules.push_filters import filtered
from tidemill.types.logical import Field

Exprs = tuple[Expr, ...]


def isolate_user_calls(node: n.LogicalNode) -> n.LogicalNode | None:
    expressions = node_expressions(node)
    if not any(map(has_user_call, expressions)):
        return None
    rule = _RULES.get(type(node), _below)
    return rule(node)


def _project(node: n.LogicalNode) -> n.LogicalNode | None:
    """A call that is a whole column of the Project stays in it."""
    assert isinstance(node, n.Project)
    inner = tuple(x for e in node.expressions for x in (e.args if isinstance(e, UserCall) else (e,)))
    if not any(map(has_user_call, inner)):
        return None
    source, call_columns = _filtered_calls(node.input)
    readers = tuple(map_down(e, call_columns.get) for e in node.expressions)
    source, expressions = computed(source, readers)
    return replace(node, input=source, expressions=expressions)


def _filtered_calls(source: n.LogicalNode) -> tuple[n.LogicalNode, dict[Expr, Expr]]:
    """If ``source`` is a Filter over calls: the Filter with all its columns, and the calls' columns, so the
    Project does not compute the calls again. Otherwise ``source`` and no columns."""
    below = source.input if isinstance(source, n.Project) else None
    if not isinstance(below, n.Filter) or not isinstance(below.input, n.Project):
        return source, {}
    assert isinstance(source, n.Project)
    if source.expressions != _columns(below)[: len(source.fields)]:
        return source, {}
    calls: dict[Expr, Expr] = {
        x: InputRef(type=x.type, index=i)
        for i, x in enumerate(below.input.expressions)
        if isinstance(x, UserCall) and is_deterministic(x)
    }
    passed = below.input.expressions[: len(source.fields)] == source.expressions
    return (below, calls) if calls and passed else (source, {})


def _columns(node: n.LogicalNode) -> Exprs:
    return tuple(InputRef(type=f.type, index=i) for i, f in enumerate(node.fields))


def _filter(node: n.LogicalNode) -> n.LogicalNode | None:
    assert isinstance(node, n.Filter)
    parts = conjuncts(node.condition)
    plain = tuple(p for p in parts if not has_user_call(p))
    calling = tuple(p for p in parts if has_user_call(p))
    source, moved = computed(filtered(node.input, plain), calling)
    return _restored(filtered(source, moved), node.fields)


def _below(node: n.LogicalNode) -> n.LogicalNode | None:
    """Any other node with one input: its calls become columns of the input."""
    (below,) = node.inputs
    width = len(below.fields)
    source, moved = computed(below, node_expressions(node))
    if isinstance(node, n.Expand):
        return with_expressions(with_inputs(node, (source,)), moved)
    fields = (*source.fields, *node.fields[width:])
    changed = replace(with_expressions(with_inputs(node, (source,)), moved), fields=fields)
    extra = len(source.fields) - width
    if isinstance(changed, n.Unnest) and changed.condition is not None:
        condition = move_inputs(changed.condition, lambda i: i if i < width else i + extra)
        changed = replace(changed, condition=condition)
    return _picked(changed, lambda i: i if i < width else i + extra, node.fields)


def _join(node: n.LogicalNode) -> n.LogicalNode | None:
    assert isinstance(node, n.Join)
    width = len(node.left.fields)
    parts = conjuncts(node.condition)
    across = tuple(p for p in parts if _calls_across(p, width))
    if node.kind is n.JoinKind.INNER and across:
        local_condition = conjunction(p for p in parts if p not in across)
        return filtered(replace(node, condition=local_condition), across)
    left, left_calls = _side(node.left, node.condition, 0)
    right, right_calls = _side(node.right, node.condition, width)
    if left is node.left and right is node.right:
        return None
    shift = len(left.fields) - width
    call_indexes = {**left_calls, **{c: i + len(left.fields) for c, i in right_calls.items()}}

    def moved(index: int) -> int:
        return index if index < width else index + shift

    def place(part: Expr) -> Expr | None:
        if part in call_indexes:
            return InputRef(type=part.type, index=call_indexes[part])
        return move_inputs(part, moved) if isinstance(part, InputRef) else None

    fields = _join_fields(node, left, right)
    joined = replace(node, left=left, right=right, condition=map_down(node.condition, place), fields=fields)
    return _picked(joined, moved, node.fields)


def _calls_across(part: Expr, width: int) -> bool:
    return any(isinstance(x, UserCall) and _reads_both(x, width) for x in part.walk())


def _reads_both(expr: Expr, width: int) -> bool:
    return len({i >= width for i in input_indexes(expr)}) == 2


def _side(side: n.LogicalNode, condition: Expr, offset: int) -> tuple[n.LogicalNode, dict[Expr, int]]:
    """The side with the calls that read only it as extra columns, and the index of each call."""
    end = offset + len(side.fields)
    calls: dict[Expr, None] = {}

    def collect(expr: Expr) -> Expr | None:
        reads = input_indexes(expr)
        own = all(offset <= i < end for i in reads) and (bool(reads) or offset == 0)
        if isinstance(expr, UserCall) and own:
            calls.setdefault(expr)
            return expr
        return None

    map_down(condition, collect)
    if not calls:
        return side, {}
    source, moved = computed(side, tuple(shift_inputs(c, -offset) for c in calls))
    return source, {c: m.index for c, m in zip(calls, moved, strict=True) if isinstance(m, InputRef)}


def _join_fields(node: n.Join, left: n.LogicalNode, right: n.LogicalNode) -> tuple[Field, ...]:
    """The join's fields with the sides' new columns, which are nullable because a join may pad them."""
    width = len(node.left.fields)
    extra = [replace(f, type=f.type.with_nullable(True)) for f in left.fields[width:]]
    fields = [*node.fields[:width], *extra]
    if len(node.fields) > width:
        added = right.fields[len(node.right.fields) :]
        fields += [*node.fields[width:], *(replace(f, type=f.type.with_nullable(True)) for f in added)]
    return _apart(fields)


def computed(source: n.LogicalNode, expressions: Exprs) -> tuple[n.LogicalNode, Exprs]:
    """``source`` with all user calls of ``expressions`` as extra columns, and the expressions over these
    columns. Nested calls need several Projects."""
    while any(map(has_user_call, expressions)):
        source, call_columns = _with_columns(source, _innermost(expressions))

        def place(part: Expr, columns: dict[object, InputRef] = call_columns) -> Expr | None:
            return columns.get(_identity(part))

        expressions = tuple(map_down(e, place) for e in expressions)
    return source, expressions


def _innermost(expressions: Exprs) -> list[UserCall]:
    """The calls whose arguments contain no user call, each once."""
    calls: dict[object, UserCall] = {}
    for expression in expressions:
        for x in expression.walk():
            if isinstance(x, UserCall) and not any(map(has_user_call, x.args)):
                calls.setdefault(_identity(x), x)
    return list(calls.values())


def _identity(expr: Expr) -> object:
    """Equal calls share one column, unless the function is non-deterministic."""
    return id(expr) if isinstance(expr, UserCall) and not is_deterministic(expr) else expr


def _with_columns(
    source: n.LogicalNode, calls: Sequence[UserCall]
) -> tuple[n.LogicalNode, dict[object, InputRef]]:
    width = len(source.fields)
    added = [Field(f"f{i}", c.type) for i, c in enumerate(calls)]
    fields = _apart([*source.fields, *added])
    project = n.Project(fields=fields, input=source, expressions=(*_columns(source), *calls))
    return project, {_identity(c): InputRef(type=c.type, index=width + i) for i, c in enumerate(calls)}


def _apart(fields: Sequence[Field]) -> tuple[Field, ...]:
    """The fields under unique names."""
    used: set[str] = set()
    renamed = []
    for f in fields:
        name, number = f.name, 0
        while name in used:
            name, number = f"{f.name}{number}", number + 1
        used.add(name)
        renamed.append(Field(name, f.type))
    return tuple(renamed)


def _restored(node: n.LogicalNode, fields: tuple[Field, ...]) -> n.LogicalNode:
    return _picked(node, lambda i: i, fields)


def _picked(node: n.LogicalNode, index_of: Callable[[int], int], fields: tuple[Field, ...]) -> n.LogicalNode:
    """A Project that picks ``fields`` from a node with more columns."""
    columns = tuple(InputRef(type=f.type, index=index_of(i)) for i, f in enumerate(fields))
    return n.Project(fields=fields, input=node, expressions=columns)


_RULES: dict[type[n.LogicalNode], Callable[[n.LogicalNode], n.LogicalNode | None]] = {
    n.Project: _project,
    n.Filter: _filter,
    n.Join: _join,
}
