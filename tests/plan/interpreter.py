"""A naive interpreter of logical plans over Python rows: nested loops, subqueries run per outer row.

Knows what the optimiser's tests need. Three-valued logic: None is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key, singledispatchmethod
from typing import Any

from tidemill.plan import expressions as e
from tidemill.plan import nodes as n

Row = tuple[Any, ...]
Tables = Mapping[str, Sequence[Row]]


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: None if None in args else function(*args)


def _and(*args: Any) -> Any:
    return False if False in args else None if None in args else True


def _or(*args: Any) -> Any:
    return True if True in args else None if None in args else False


def _case(*args: Any) -> Any:
    pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
    return next((value for condition, value in pairs if condition is True), args[-1])


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "=": _strict(lambda a, b: a == b),
    "<>": _strict(lambda a, b: a != b),
    "<": _strict(lambda a, b: a < b),
    "<=": _strict(lambda a, b: a <= b),
    ">": _strict(lambda a, b: a > b),
    ">=": _strict(lambda a, b: a >= b),
    "+": _strict(lambda a, b: a + b),
    "-": _strict(lambda a, b: a - b),
    "*": _strict(lambda a, b: a * b),
    "||": _strict(lambda a, b: a + b),
    "AND": _and,
    "OR": _or,
    "NOT": _strict(lambda a: not a),
    "CASE": _case,
    "COALESCE": lambda *args: next((a for a in args if a is not None), None),
    "NULLIF": lambda a, b: None if a == b else a,
    "IS NULL": lambda a: a is None,
    "IS NOT NULL": lambda a: a is not None,
    "IS NOT FALSE": lambda a: a is not False,
    "IS TRUE": lambda a: a is True,
    "IS NOT TRUE": lambda a: a is not True,
    "IS NOT DISTINCT FROM": lambda a, b: a == b,
    "IS DISTINCT FROM": lambda a, b: a != b,
    "IN": lambda a, *options: _or(*(_strict(lambda x, y: x == y)(a, o) for o in options)),
}


class Interpreter:
    """Evaluates plans over ``tables``: rows in the order of each table's declared columns. ``streaming``: as
    a stream, whose global aggregates have no row over no rows; those of subqueries have theirs."""

    def __init__(self, tables: Tables, *, streaming: bool = False) -> None:
        self.tables = tables
        self.streaming = streaming

    def rows(self, plan: n.LogicalNode, outer: tuple[Row, ...] = ()) -> list[Row]:
        """The rows of ``plan``; ``outer`` are the enclosing rows, innermost first."""
        return self._rows(plan, outer)

    @singledispatchmethod
    def _rows(self, plan: n.LogicalNode, outer: tuple[Row, ...]) -> list[Row]:
        raise NotImplementedError(type(plan).__name__)

    @_rows.register
    def _(self, plan: n.Scan, outer: tuple[Row, ...]) -> list[Row]:
        declared = [c.name for c in plan.table.columns]
        places = [declared.index(c) for c in plan.columns]
        rows = [tuple(row[p] for p in places) for row in self.tables[plan.table.path.name]]
        return [r for r in rows if all(self.value(f, r, outer) is True for f in plan.filters)]

    @_rows.register
    def _(self, plan: n.Values, outer: tuple[Row, ...]) -> list[Row]:
        return [tuple(c.value for c in row) for row in plan.rows]

    @_rows.register
    def _(self, plan: n.Project, outer: tuple[Row, ...]) -> list[Row]:
        rows = self.rows(plan.input, outer)
        return [tuple(self.value(x, r, outer) for x in plan.expressions) for r in rows]

    @_rows.register
    def _(self, plan: n.Filter, outer: tuple[Row, ...]) -> list[Row]:
        return [r for r in self.rows(plan.input, outer) if self.value(plan.condition, r, outer) is True]

    @_rows.register
    def _(self, plan: n.Expand, outer: tuple[Row, ...]) -> list[Row]:
        rows = self.rows(plan.input, outer)
        return [tuple(self.value(x, r, outer) for x in p) for r in rows for p in plan.projections]

    @_rows.register
    def _(self, plan: n.Aggregate, outer: tuple[Row, ...]) -> list[Row]:
        missing = plan.keys or (self.streaming and not outer)
        groups: dict[Row, list[Row]] = {} if missing else {(): []}
        for row in self.rows(plan.input, outer):
            groups.setdefault(tuple(row[k] for k in plan.keys), []).append(row)
        return [(*key, *(_aggregate(c, rows) for c in plan.calls)) for key, rows in groups.items()]

    @_rows.register
    def _(self, plan: n.Over, outer: tuple[Row, ...]) -> list[Row]:
        rows = self.rows(plan.input, outer)
        columns = [_numbered(call, rows) for call in plan.calls]
        return [(*row, *(column[i] for column in columns)) for i, row in enumerate(rows)]

    @_rows.register
    def _(self, plan: n.Sort, outer: tuple[Row, ...]) -> list[Row]:
        rows = sorted(self.rows(plan.input, outer), key=cmp_to_key(_comparer(plan.keys)))
        end = None if plan.fetch is None else plan.offset + plan.fetch
        return rows[plan.offset : end]

    @_rows.register
    def _(self, plan: n.Join, outer: tuple[Row, ...]) -> list[Row]:
        left, right = self.rows(plan.left, outer), self.rows(plan.right, outer)

        def matches(a: Row, b: Row) -> bool:
            found = self.value(plan.condition, (*a, *b), outer)
            return found is True or (plan.null_aware and found is None)

        pairs = [(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if matches(a, b)]
        return _joined(plan, left, right, pairs)

    @_rows.register
    def _(self, plan: n.LateralJoin, outer: tuple[Row, ...]) -> list[Row]:
        found: list[Row] = []
        for a in self.rows(plan.left, outer):
            both = ((*a, *b) for b in self.rows(plan.right, (a, *outer)))
            met = [row for row in both if self.value(plan.condition, row, outer) is True]
            pad = [(*a, *(None,) * len(plan.right.fields))] if plan.kind is n.JoinKind.LEFT else []
            found += met or pad
        return found

    @_rows.register
    def _(self, plan: n.SetOp, outer: tuple[Row, ...]) -> list[Row]:
        branches = [self.rows(b, outer) for b in plan.branches]
        found = [r for b in branches for r in b] if plan.kind is n.SetKind.UNION else branches[0]
        if plan.all:
            assert plan.kind is n.SetKind.UNION
            return found
        distinct = dict.fromkeys(found)
        if plan.kind is n.SetKind.UNION:
            return list(distinct)
        return [r for r in distinct if (r in branches[1]) == (plan.kind is n.SetKind.INTERSECT)]

    def value(self, expr: e.Expr, row: Row, outer: tuple[Row, ...]) -> Any:
        """The value of ``expr`` over ``row``."""
        match expr:
            case e.InputRef():
                return row[expr.index]
            case e.OuterRef():
                return outer[expr.level - 1][expr.index]
            case e.Literal():
                return expr.value
            case e.Cast():
                return self.value(expr.operand, row, outer)
            case e.Call():
                return FUNCTIONS[expr.function](*(self.value(a, row, outer) for a in expr.args))
            case n.Exists():
                return bool(self.rows(expr.plan, (row, *outer)))
            case n.ScalarSubquery():
                found = self.rows(expr.plan, (row, *outer))
                assert len(found) <= 1, "a scalar subquery gave several rows"
                return found[0][0] if found else None
            case n.InSubquery():
                wanted = [self.value(x, row, outer) for x in expr.operands]
                members = self.rows(expr.plan, (row, *outer))
                return _or(*(_and(*map(FUNCTIONS["="], wanted, m)) for m in members))
        raise NotImplementedError(type(expr).__name__)


def _aggregate(call: e.AggregateCall, rows: list[Row]) -> Any:
    if call.filter is not None:
        rows = [r for r in rows if r[call.filter] is True]
    if not call.args:
        return len(rows)
    values = [r[call.args[0]] for r in rows if r[call.args[0]] is not None]
    if call.distinct:
        values = list(dict.fromkeys(values))
    if call.function == "COUNT":
        return len(values)
    if call.function == "SINGLE_VALUE":
        assert len(rows) <= 1, "SINGLE_VALUE over several rows"
    functions: dict[str, Callable[[list[Any]], Any]] = {
        "SUM": sum,
        "MIN": min,
        "MAX": max,
        "SINGLE_VALUE": lambda found: found[0],
    }
    return functions[call.function](values) if values else None


def _comparer(keys: tuple[e.SortKey, ...]) -> Callable[[Row, Row], int]:
    def compare(a: Row, b: Row) -> int:
        for key in keys:
            x, y = a[key.index], b[key.index]
            if x == y:
                continue
            if x is None or y is None:
                return -1 if (x is None) == key.nulls_first else 1
            return -1 if (x < y) == key.ascending else 1
        return 0

    return compare


def _numbered(call: e.OverCall, rows: list[Row]) -> list[int]:
    assert call.function == "ROW_NUMBER"
    numbers = [0] * len(rows)
    counts: dict[Row, int] = {}
    compare = _comparer(call.order)
    sort_key = cmp_to_key(compare)
    for i in sorted(range(len(rows)), key=lambda i: sort_key(rows[i])):
        key = tuple(rows[i][p] for p in call.partition)
        counts[key] = numbers[i] = counts.get(key, 0) + 1
    return numbers


def _joined(plan: n.Join, left: list[Row], right: list[Row], pairs: list[tuple[int, int]]) -> list[Row]:
    met_left, met_right = {i for i, _ in pairs}, {j for _, j in pairs}
    if plan.kind is n.JoinKind.SEMI:
        return [a for i, a in enumerate(left) if i in met_left]
    if plan.kind is n.JoinKind.ANTI:
        return [a for i, a in enumerate(left) if i not in met_left]
    rows = [(*left[i], *right[j]) for i, j in pairs]
    if plan.kind in (n.JoinKind.LEFT, n.JoinKind.FULL):
        pad = (None,) * len(plan.right.fields)
        rows += [(*a, *pad) for i, a in enumerate(left) if i not in met_left]
    if plan.kind in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        pad = (None,) * len(plan.left.fields)
        rows += [(*pad, *b) for j, b in enumerate(right) if j not in met_right]
    return rows
