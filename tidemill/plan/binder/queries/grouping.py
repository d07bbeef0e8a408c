"""The GROUP BY clause: keys, GROUPING SETS, ROLLUP and CUBE, multiplied out to sets of keys.

GROUP BY DISTINCT leaves out equal sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product

from sqlglot import exp

from tidemill.errors import ValidationError
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions.binding import Clause, ExpressionBinder, GroupWindow, QueryBinder
from tidemill.plan.binder.queries import group_windows
from tidemill.plan.binder.queries.aggregates import Grouping
from tidemill.plan.binder.scope import Scope
from tidemill.plan.expressions import Expr
from tidemill.sql.positions import position_of

GROUP_BY = Clause(name="GROUP BY")
Keys = tuple[Expr, ...]


def bind(
    binder: QueryBinder, tree: exp.Expr, scope: Scope, context: Context, window: GroupWindow | None = None
) -> Grouping | None:
    """None without a GROUP BY; ``window``: the group window that it names."""
    group = tree.args.get("group")
    if group is None:
        return None
    expressions = binder.expressions(context, scope, GROUP_BY)
    expressions.group_window = window
    parts = [_sets(expressions, node) for node in _elements(group)]
    sets = [tuple(k for keys in choice for k in keys) for choice in product(*parts)]
    keys = _distinct(k for part in parts for chosen in part for k in chosen)
    numbers = tuple(tuple(sorted({keys.index(k) for k in chosen})) for chosen in sets)
    if group.args.get("distinct"):
        numbers = tuple(dict.fromkeys(numbers))
    plain = len(numbers) == 1 and len(numbers[0]) == len(keys)
    return Grouping(keys=keys, sets=None if plain else numbers)


def _elements(group: exp.Expr) -> list[exp.Expr]:
    nodes = list(group.expressions)
    for name in ("grouping_sets", "rollup", "cube"):
        nodes += [x for x in group.args.get(name) or () if isinstance(x, exp.Expr)]
    return nodes


def _sets(binder: ExpressionBinder, node: exp.Expr) -> list[Keys]:
    """The alternatives that one GROUP BY element stands for."""
    if isinstance(node, exp.GroupingSets):
        return [chosen for part in node.expressions for chosen in _sets(binder, part)]
    if isinstance(node, exp.Rollup):
        parts = [_keys(binder, part) for part in node.expressions]
        return [_concatenated(parts[:count]) for count in range(len(parts), -1, -1)]
    if isinstance(node, exp.Cube):
        parts = [_keys(binder, part) for part in node.expressions]
        counts = range(len(parts), -1, -1)
        return [_concatenated(chosen) for count in counts for chosen in combinations(parts, count)]
    return [_keys(binder, node)]


def _concatenated(parts: tuple[Keys, ...] | list[Keys]) -> Keys:
    return tuple(k for keys in parts for k in keys)


def _keys(binder: ExpressionBinder, node: exp.Expr) -> Keys:
    """The keys of one element: (a, b) has two. A constant, also an ordinal, is no key."""
    if isinstance(node, exp.Paren):
        return _keys(binder, node.this)
    if isinstance(node, exp.Tuple):
        return tuple(k for part in node.expressions for k in _keys(binder, part))
    if binder.group_window is not None and group_windows.is_window(node):
        return binder.group_window.columns
    key = binder.bind(node)
    if key.type.text() == "NULL":
        raise ValidationError("Illegal use of 'NULL'", position=position_of(node))
    return (key,)


def _distinct(keys: Iterable[Expr]) -> Keys:
    return tuple(dict.fromkeys(keys))
