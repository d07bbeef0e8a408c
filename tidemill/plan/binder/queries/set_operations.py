"""UNION, INTERSECT, EXCEPT [ALL]: the first branch's names, and the least restrictive column types."""

from __future__ import annotations

from sqlglot import exp

from tidemill.errors import ValidationError
from tidemill.functions.coercion import common_type
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import BoundQuery, Context
from tidemill.plan.binder.expressions.binding import QueryBinder
from tidemill.plan.binder.expressions.calls import coerce
from tidemill.plan.binder.naming import all_columns
from tidemill.plan.binder.queries import ordering
from tidemill.plan.binder.relations.values import varying
from tidemill.plan.binder.scope import unique_names
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

KINDS: dict[type[exp.Expr], n.SetKind] = {
    exp.Union: n.SetKind.UNION,
    exp.Intersect: n.SetKind.INTERSECT,
    exp.Except: n.SetKind.EXCEPT,
}


def bind(binder: QueryBinder, tree: exp.Expr, context: Context) -> BoundQuery:
    kind, keep_all = KINDS[type(tree)], not tree.args.get("distinct")
    trees = _branches(tree, kind, keep_all)
    queries = [ordering.unordered(binder.bind(b, context)) for b in trees]
    text = f"{kind.value} ALL" if keep_all else kind.value
    _check_counts(queries, text, trees)
    fields = _fields(queries, text, trees)
    branches = tuple(_typed(q.plan, fields) for q in queries)
    node = n.SetOp(fields=fields, kind=kind, all=keep_all, branches=branches)
    return ordering.apply(binder, tree, BoundQuery(plan=node, names=queries[0].names), context)


def _check_counts(queries: list[BoundQuery], text: str, trees: list[exp.Expr]) -> None:
    first = len(queries[0].names)
    for query, tree in zip(queries, trees, strict=True):
        if len(query.names) != first:
            message = f"Column count mismatch in {text}: {first} and {len(query.names)} columns"
            raise ValidationError(message, position=position_of(tree))


def _branches(tree: exp.Expr, kind: n.SetKind, keep_all: bool) -> list[exp.Expr]:
    """The branches of a set operation: ``a UNION b UNION c`` is one node with three branches."""
    trees: list[exp.Expr] = []
    while True:
        trees.append(tree.expression)
        left = tree.this
        if kind is n.SetKind.UNION and _continues(left, keep_all):
            tree = left
            continue
        return [left, *reversed(trees)]


def _continues(tree: exp.Expr, keep_all: bool) -> bool:
    plain = not any(tree.args.get(k) for k in ("order", "limit", "offset", "with_", "with"))
    return isinstance(tree, exp.Union) and plain and (not tree.args.get("distinct")) == keep_all


def _fields(queries: list[BoundQuery], text: str, trees: list[exp.Expr]) -> tuple[t.Field, ...]:
    fields = []
    names = unique_names(list(queries[0].names))
    for index, name in enumerate(names):
        members = tuple(q.plan.fields[index].type for q in queries)
        kind = common_type(members)
        if kind is None:
            raise _mismatch(members, index, text, trees)
        fields.append(t.Field(name, varying(kind, members)))
    return tuple(fields)


def _mismatch(
    members: tuple[t.LogicalType, ...], index: int, text: str, trees: list[exp.Expr]
) -> ValidationError:
    """The error at the first branch whose type does not fit the branches before it."""
    wrong = next(i for i in range(1, len(members)) if common_type(members[: i + 1]) is None)
    message = f"Type mismatch in column {index + 1} of {text}: {members[0]} and {members[wrong]}"
    return ValidationError(message, position=position_of(trees[wrong]))


def _typed(plan: n.LogicalNode, fields: tuple[t.Field, ...]) -> n.LogicalNode:
    """A branch with the node's names and types; the branch itself if it already has them."""
    if plan.fields == fields:
        return plan
    pairs = zip(all_columns(plan), fields, strict=True)
    return n.Project(fields=fields, input=plan, expressions=tuple(coerce(x, f.type) for x, f in pairs))
