"""GROUP BY: from bound expressions with pending aggregates to Project, Expand and Aggregate nodes.

    before:  SELECT a + 1, SUM(b * 2) FROM t GROUP BY a + 1
    after:   Aggregate(keys=[k], calls=[SUM(x)]) over Project(k = a + 1, x = b * 2)

The aggregate's input has the keys, then the distinct arguments and filters. Its output has the keys, then
one column per distinct call. ``Lowered`` rewrites the expressions above over that output: an expression
equal to a key becomes the key's column, a call becomes its column, and any other column is an error.

GROUPING SETS become an Expand that copies each row once per set, with NULL for keys outside of the set. The
column ``$e`` is a further key: bit i from the left is set if the set leaves key i out. So, as in Flink, the
set () beside other sets gives no row if the input has no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.columns import Columns, column_name
from tidemill.plan.binder.expressions import literals
from tidemill.plan.binder.expressions.calls import Retype
from tidemill.plan.binder.queries.pending import AggregateExpr, GroupingExpr
from tidemill.plan.binder.scope import unique_name
from tidemill.plan.expanded_windows import below_windows
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, OuterRef
from tidemill.plan.rewrite import map_down, map_outer_refs, subplan, with_children, with_subplan
from tidemill.types import logical as t

Mentions = Mapping[int, tuple[str, Position | None]]
EXPAND_ID = "$e"
_ROWS = AggregateCall(function="COUNT", args=(), type=t.BigIntType(nullable=False), name="$rows")
"""The call of a global aggregation without calls, which needs at least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """A bound GROUP BY: distinct keys and, unless it is one plain set, the sets as key numbers."""

    keys: tuple[Expr, ...]
    sets: tuple[tuple[int, ...], ...] | None = None


def lower(
    source: n.LogicalNode,
    grouping: Grouping,
    roots: Sequence[Expr],
    items: Sequence[tuple[str, Expr]],
    hints: tuple[tuple[str, str], ...] = (),
) -> tuple[n.LogicalNode, Lowered]:
    """The aggregation of ``source`` that ``roots`` need, and how to rewrite them over it.

    ``items``: the select items with their names.
    """
    columns = Columns()
    for key in grouping.keys:
        columns.append(key, column_name(key, source.fields, columns.next_name()))
    pending = _distinct_calls(roots)
    call_inputs = [_call_inputs(call, columns, source) for call in pending]
    if not columns.fields:
        columns.append(literals.integer(0), "$f0")
    plan = columns.project(source)
    keys = tuple(range(len(grouping.keys)))
    if grouping.sets is not None and not keys:
        whole = _repeated_global_rows(
            plan, _calls(pending, call_inputs, [], items), len(grouping.sets), hints
        )
        return whole, Lowered(grouping=grouping, calls=tuple(pending), fields=whole.fields, keys=1)
    if grouping.sets is not None:
        expanded, keys = _expand(plan, len(grouping.keys), grouping.sets)
        plan = _in_windows(source, expanded, keys)
        call_inputs = [_on_key_copies(p, len(grouping.keys), len(columns.fields)) for p in call_inputs]
    elif not all(isinstance(k, InputRef) for k in grouping.keys):
        refs = tuple(InputRef(type=f.type, index=i) for i, f in enumerate(plan.fields))
        once = n.Expand(fields=plan.fields, input=plan, projections=(refs,))
        plan = _in_windows(source, once, keys) if _makes_windows(source) else plan
    key_fields = [plan.fields[k] for k in keys]
    calls = _calls(pending, call_inputs, key_fields, items)
    if not (keys or calls):
        calls = (_ROWS,)
    fields = (*key_fields, *(t.Field(c.name, c.type) for c in calls))
    node = n.Aggregate(fields=fields, input=plan, keys=keys, calls=calls, hints=hints)
    return node, Lowered(grouping=grouping, calls=tuple(pending), fields=fields, keys=len(keys))


def _in_windows(source: n.LogicalNode, plan: n.Expand, keys: tuple[int, ...]) -> n.LogicalNode:
    """Moves the Expand below a data-driven window, which belongs to one combination of a set's keys."""
    if not _makes_windows(source):
        return plan
    assert isinstance(source, n.WindowTableFunction)
    moved = below_windows(plan, keys)
    if moved is None:
        raise NotSupportedError(
            f"{source.kind.name} in GROUP BY is not supported if a grouping set lacks it",
            position=source.position,
            hint="Write one query for each set, and combine the queries with UNION ALL.",
        )
    return moved


def _makes_windows(source: n.LogicalNode) -> bool:
    """Whether ``source`` is a data-driven group window, such as SESSION."""
    return isinstance(source, n.WindowTableFunction) and source.group and source.kind.is_data_driven


def _distinct_calls(roots: Sequence[Expr]) -> list[AggregateExpr]:
    calls: dict[AggregateExpr, None] = {}
    for root in roots:
        for expr in root.walk():
            if isinstance(expr, AggregateExpr):
                calls.setdefault(expr)
    return list(calls)


@dataclass(frozen=True, slots=True)
class _CallInputs:
    args: tuple[int, ...]
    filter: int | None


def _call_inputs(call: AggregateExpr, columns: Columns, source: n.LogicalNode) -> _CallInputs:
    def put(value: Expr) -> int:
        return columns.add(value, column_name(value, source.fields, columns.next_name()))

    condition = call.filter
    args = tuple(put(a) for a in call.args)
    if condition is None:
        return _CallInputs(args, None)
    is_true = Call(type=t.BooleanType(nullable=False), function="IS TRUE", args=(condition,))
    return _CallInputs(args, put(is_true if condition.type.nullable else condition))


def _calls(
    pending: list[AggregateExpr],
    call_inputs: list[_CallInputs],
    key_fields: list[t.Field],
    items: Sequence[tuple[str, Expr]],
) -> tuple[AggregateCall, ...]:
    """A select item that is nothing but one aggregate names its call."""
    names = {expr: name for name, expr in reversed(items) if isinstance(expr, AggregateExpr)}
    parts = {call: name for name, expr in reversed(items) for call in _distinct_calls([expr])}
    used = {f.name for f in key_fields}
    calls = []
    for number, (call, inputs) in enumerate(zip(pending, call_inputs, strict=True)):
        name = unique_name(names.get(call, f"EXPR${len(key_fields) + number}"), used)
        used.add(name)
        calls.append(
            AggregateCall(
                function=call.function,
                args=inputs.args,
                type=call.type,
                name=name,
                distinct=call.distinct,
                filter=inputs.filter,
                options=call.options,
                user=call.user,
                item=names.get(call, parts.get(call, "")),
            )
        )
    return tuple(calls)


def _repeated_global_rows(
    plan: n.LogicalNode, calls: tuple[AggregateCall, ...], sets: int, hints: tuple[tuple[str, str], ...]
) -> n.Expand:
    """The rows of ``GROUPING SETS ((), ())``: the global aggregate's row once per set, even over no rows."""
    calls = calls or (_ROWS,)
    own = tuple(t.Field(c.name, c.type) for c in calls)
    whole = n.Aggregate(fields=own, input=plan, keys=(), calls=calls, hints=hints)
    values = tuple(InputRef(type=f.type, index=i) for i, f in enumerate(own))
    number = t.Field(unique_name(EXPAND_ID, {f.name for f in own}), t.BigIntType(nullable=False))
    rows = tuple((literals.bigint(i), *values) for i in range(sets))
    return n.Expand(fields=(number, *own), input=whole, projections=rows)


def _expand(
    plan: n.LogicalNode, keys: int, sets: tuple[tuple[int, ...], ...]
) -> tuple[n.Expand, tuple[int, ...]]:
    """Fields: the keys (nullable if a set leaves one out), the other columns, copies of the keys
    (for arguments), ``$e``.

    A repeated set gives its rows each time: a number above the bits of ``$e`` tells them apart.
    """
    refs = tuple(InputRef(type=f.type, index=i) for i, f in enumerate(plan.fields))
    used = {f.name for f in plan.fields}
    copies = [t.Field(unique_name(f"{f.name}_", used), f.type) for f in plan.fields[:keys]]
    left_out = {i for i in range(keys) for chosen in sets if i not in chosen}
    nulled = [
        t.Field(f.name, f.type.with_nullable(True)) if i in left_out else f
        for i, f in enumerate(plan.fields[:keys])
    ]
    expand_id = t.Field(unique_name(EXPAND_ID, used), t.BigIntType(nullable=False))
    rows, repeats = [], dict[int, int]()
    for chosen in sets:
        bits = set_bits(chosen, keys)
        again = repeats.get(bits, 0)
        repeats[bits] = again + 1
        marked = literals.bigint(bits + (again << keys))
        heads = tuple(refs[i] if i in chosen else literals.null(refs[i].type) for i in range(keys))
        rows.append((*heads, *refs[keys:], *refs[:keys], marked))
    fields = (*nulled, *plan.fields[keys:], *copies, expand_id)
    node = n.Expand(fields=fields, input=plan, projections=tuple(rows))
    return node, (*range(keys), len(fields) - 1)


def _on_key_copies(inputs: _CallInputs, keys: int, width: int) -> _CallInputs:
    """Redirects arguments that are keys to the keys' copies, because a key is NULL in some sets."""

    def move(index: int) -> int:
        return width + index if index < keys else index

    condition = None if inputs.filter is None else move(inputs.filter)
    return _CallInputs(tuple(move(a) for a in inputs.args), condition)


def set_bits(chosen: tuple[int, ...], keys: int) -> int:
    return sum(1 << (keys - 1 - i) for i in range(keys) if i not in chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """Rewrites expressions over the aggregate's input into expressions over its output."""

    grouping: Grouping
    calls: tuple[AggregateExpr, ...]
    fields: tuple[t.Field, ...]
    keys: int

    def rewrite(self, expr: Expr, mentions: Mentions, retype: Retype) -> Expr:
        """``expr`` over the aggregate's fields; ValidationError for a column that is not grouped."""

        def replace(part: Expr) -> Expr | None:
            if isinstance(part, AggregateExpr):
                return self._field(self.keys + self.calls.index(part))
            if isinstance(part, GroupingExpr):
                return self._grouping_bits(part)
            if part in self.grouping.keys:
                return self._field(self.grouping.keys.index(part))
            if isinstance(part, InputRef):
                raise not_grouped(part.index, mentions)
            return self._in_subquery(part, mentions)

        rewritten = map_down(expr, replace)
        return retype.fix(rewritten) if self.grouping.sets is not None else rewritten

    def _field(self, index: int) -> InputRef:
        return InputRef(type=self.fields[index].type, index=index)

    def _in_subquery(self, expr: Expr, mentions: Mentions) -> Expr | None:
        """A subquery that refers to the grouped row. It may only refer to keys."""
        plan = subplan(expr)
        if plan is None:
            return None

        def outer(ref: OuterRef) -> Expr:
            column = InputRef(type=ref.type, index=ref.index)
            if column not in self.grouping.keys:
                raise not_grouped(ref.index, mentions)
            field = self._field(self.grouping.keys.index(column))
            return OuterRef(type=field.type, level=ref.level, index=field.index)

        moved = map_outer_refs(plan, outer)
        children = tuple(self.rewrite(c, mentions, Retype.none()) for c in expr.children)
        return with_children(with_subplan(expr, moved), children)

    def _grouping_bits(self, expr: GroupingExpr) -> Expr:
        """The bits of ``$e`` for the arguments of GROUPING, as a CASE over the sets that occur."""
        key_indexes = []
        for arg in expr.args:
            if arg not in self.grouping.keys:
                message = "Argument to GROUPING operator must be a grouped expression"
                raise ValidationError(message, position=expr.position)
            key_indexes.append(self.grouping.keys.index(arg))
        if self.grouping.sets is None:
            return literals.bigint(0)
        return self._by_set(key_indexes, repeat=expr.repeat)

    def _by_set(self, key_indexes: list[int], *, repeat: bool) -> Expr:
        sets = self.grouping.sets or ()
        keys = len(self.grouping.keys)
        expand_id = self._field(keys)
        args: list[Expr] = []
        repeats: dict[int, int] = {}
        for chosen in sets:
            bits = set_bits(chosen, keys)
            again = repeats.get(bits, 0)
            number = bits + (again << keys)
            repeats[bits] = again + 1
            left_out = sum(
                1 << (len(key_indexes) - 1 - i) for i, key in enumerate(key_indexes) if key not in chosen
            )
            equals = Call(
                type=t.BooleanType(nullable=False), function="=", args=(expand_id, literals.bigint(number))
            )
            args += [equals, literals.bigint(again if repeat else left_out)]
        return Call(type=t.BigIntType(nullable=False), function="CASE", args=(*args[:-2], args[-1]))


def not_grouped(index: int, mentions: Mentions) -> ValidationError:
    name, position = mentions.get(index, (f"column {index + 1}", None))
    return ValidationError(f"Expression '{name}' is not being grouped", position=position)
